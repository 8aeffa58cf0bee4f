//! The worked example of `docs/writing-a-backend.md` under the whole suite.

mod journaled;

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use mainstay_conformance::Backend;
use mainstay_store::{Capabilities, Capability, Env, Result, Store, StoreClock};
use tempfile::TempDir;

struct Journaled(TempDir);

#[async_trait]
impl Backend for Journaled {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(Capability::Durable)
    }

    async fn open(&self, env: Env, clock: StoreClock) -> Result<Arc<dyn Store>> {
        journaled::open(env, clock, &self.0.path().join("requests.jsonl")).await
    }
}

fn main() -> ExitCode {
    let new = || Box::new(Journaled(TempDir::new().expect("a directory of its own"))) as Box<dyn Backend>;
    mainstay_conformance::run("journaled", new)
}
