//! The conformance suite on the memory store.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use mainstay_conformance::{Backend, Lasting, Trouble};
use mainstay_memory::Memory;
use mainstay_store::{Capabilities, Capability, Env, Result, Store, StoreClock};

/// One state; a later handle is another process on it.
#[derive(Default)]
struct Fresh(OnceLock<Memory>);

#[async_trait]
impl Backend for Fresh {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(Capability::Shared)
    }

    async fn open(&self, env: Env, clock: StoreClock) -> Result<Arc<dyn Store>> {
        let memory = match self.0.get() {
            Some(memory) => memory.attach(env),
            None => self.0.get_or_init(|| Memory::open(env, clock)).clone(),
        };
        Ok(Arc::new(memory))
    }

    fn can_trouble(&self, _trouble: Trouble) -> bool {
        true
    }

    /// Switches of the store: memory has no machinery of its own that could fail.
    async fn trouble(&self, trouble: Trouble) -> Lasting {
        let memory = self.0.get().expect("an open store");
        match trouble {
            Trouble::Fails(kind, method) => return Box::new(memory.fail(method, kind)),
            Trouble::MalformedQueue(name) => memory.damage_queue(name),
            Trouble::MalformedWorkflow(id) => memory.damage_row(id),
            other => unreachable!("{other} was not offered"),
        }
        Box::new(())
    }
}

fn main() -> ExitCode {
    mainstay_conformance::run("memory", || Box::new(Fresh::default()))
}
