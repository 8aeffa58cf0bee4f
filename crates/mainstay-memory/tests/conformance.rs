//! The conformance suite on the memory store.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use mainstay_conformance::Backend;
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
}

fn main() -> ExitCode {
    mainstay_conformance::run("memory", || Box::new(Fresh::default()))
}
