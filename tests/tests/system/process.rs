//! A file in a folder of its own, and processes that work on it.

use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mainstay_env::Env;
use mainstay_sqlite::Sqlite;
use mainstay_store::{Store, StoreClock};
use mainstay_tests::ledger::Account;
use mainstay_tests::load;
use mainstay_tests::worker::Orders;
use tempfile::TempDir;

/// A place for the file and the ledger.
pub(crate) struct Shop(TempDir);

impl Shop {
    /// A place without a file.
    pub(crate) fn planned() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    /// This process's own handle on the file, which is made if it is missing.
    pub(crate) async fn opened(&self, env: &Env) -> Arc<dyn Store> {
        let file = self.0.path().join("store.db");
        Arc::new(Sqlite::open(env, file, StoreClock::Server).await.expect("the file"))
    }

    /// A new file with its queues.
    pub(crate) async fn open(env: &Env) -> (Self, Arc<dyn Store>) {
        let shop = Self::planned();
        let store = shop.opened(env).await;
        load::register(&*store).await.expect("queues");
        (shop, store)
    }

    /// What a process is told that has no trouble.
    pub(crate) fn orders(&self, name: &str) -> Orders {
        Orders {
            file: self.0.path().join("store.db"),
            ledger: self.0.path().join("ledger"),
            name: name.to_owned(),
            faults: 0.0,
            seed: name.bytes().map(u64::from).sum(),
            span: Duration::ZERO,
            body: Duration::from_millis(2),
        }
    }

    /// What the ledger says so far.
    pub(crate) fn account(&self) -> Account {
        let ledger = std::fs::read_to_string(self.0.path().join("ledger")).unwrap_or_default();
        Account::read(&ledger, load::queue_of).expect("whole lines")
    }
}

/// A process that is killed when this is dropped, so that a failed test leaves none behind.
pub(crate) struct Kept(pub(crate) Child);

impl Deref for Kept {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Kept {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Kept {
    /// Sends a signal: `INT`, `TERM`, `STOP`, `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let text = format!("kill -{name} {}", self.0.id());
        let sent = Command::new("sh").args(["-c", &text]).status().expect("a shell");
        assert!(sent.success(), "{text}");
    }
}

/// A process that works on the file.
pub(crate) struct Worker(Kept);

impl Worker {
    /// Starts it.
    pub(crate) fn start(orders: &Orders) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worker"));
        command.args(orders.to_args()).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(Kept(command.spawn().expect("a process")))
    }

    /// Its number in the ledger.
    pub(crate) fn number(&self) -> u32 {
        self.0.id()
    }

    /// Closes its input and hears what it did.
    pub(crate) fn end(mut self) -> String {
        drop(self.0.stdin.take());
        let mut told = String::new();
        self.0.stdout.take().expect("its output").read_to_string(&mut told).expect("its output");
        let status = self.0.wait().expect("its end");
        assert!(status.success(), "a process failed: {told}");
        told.trim().to_owned()
    }
}
