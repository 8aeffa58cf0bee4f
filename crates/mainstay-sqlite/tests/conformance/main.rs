//! The conformance suite on the SQLite store, each case on a file of its own.

mod trouble;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use mainstay_conformance::{Backend, Lasting, Trouble};
use mainstay_sqlite::{Config, Sqlite};
use mainstay_store::{Capabilities, Capability, Env, Result, Store, StoreClock};
use tempfile::TempDir;

/// A directory with one file.
struct File(TempDir);

impl File {
    fn path(&self) -> PathBuf {
        self.0.path().join("store.db")
    }
}

#[async_trait]
impl Backend for File {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(Capability::Durable).with(Capability::Shared).with(Capability::ProvesDeath)
    }

    async fn open(&self, env: Env, clock: StoreClock) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Sqlite::open(&env, Config::new(self.path()), clock).await?))
    }

    fn can_trouble(&self, trouble: Trouble) -> bool {
        trouble::can(trouble)
    }

    async fn trouble(&self, trouble: Trouble) -> Lasting {
        trouble::make(&self.path(), trouble)
    }
}

fn main() -> ExitCode {
    mainstay_conformance::run("sqlite", || Box::new(File(TempDir::new().expect("a directory for the file"))))
}
