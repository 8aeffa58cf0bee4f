//! A file in a folder of its own, and the writes that the tests make.

use std::path::{Path, PathBuf};
use std::task::{Context, Waker};
use std::time::Duration;

use mainstay_env::{BoxFuture, SimClock, block_on};
use mainstay_sqlite::{Config, Sqlite};
use mainstay_store::{Beat, Claim, Env, ExecutorStore, Place, Registered, StoreClock, Submit, Timestamp, Unit};
use rusqlite::Connection;
use tempfile::TempDir;

/// Real time within which what must happen does, on a slow machine too.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) const Q: &str = "_dbos_internal_queue";

/// A place for a file.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("store.db")
    }

    pub(crate) fn config(&self) -> Config {
        Config::new(self.file())
    }

    /// A handle in an environment of its own, as another process has it.
    pub(crate) fn open(&self) -> Sqlite {
        open(&env(), self.config())
    }

    /// A connection that knows nothing of the store.
    pub(crate) fn stranger(&self) -> Connection {
        Connection::open(self.file()).expect("a connection")
    }

    /// The lock files that are there.
    pub(crate) fn locks(&self) -> Vec<PathBuf> {
        let folder = self.0.path().join("store.db-exec");
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }
}

pub(crate) fn env() -> Env {
    Env::system("test").expect("a thread")
}

/// An environment whose waiting is virtual: patience ends when the clock is moved.
pub(crate) fn virtual_env() -> (Env, SimClock) {
    let clock = SimClock::new(Timestamp::from_millis(1_700_000_000_000));
    (env().with_clock(std::sync::Arc::new(clock.clone())), clock)
}

pub(crate) fn open(env: &Env, config: Config) -> Sqlite {
    block_on(Sqlite::open(env, config, StoreClock::Server)).expect("opened")
}

/// Awaits what must end soon in real time.
pub(crate) fn soon<F: Future>(future: F) -> F::Output {
    let env = env();
    block_on(env.timeout(SOON, future)).expect("it ends soon")
}

/// A call that has been sent to its thread, and is not yet answered.
pub(crate) fn sent<'a, T>(call: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    let mut call: BoxFuture<'a, T> = Box::pin(call);
    let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "it is answered already");
    call
}

pub(crate) fn submit(id: &str) -> Submit {
    Submit::new(id, "job", format!("token {id}"), Place::queue(Q))
}

pub(crate) fn enqueue(id: &str) -> Unit {
    Unit::new().effect(submit(id))
}

pub(crate) fn claim(executor: &str, token: &str) -> Claim {
    Claim::new(Q, executor, "app", "v1", token).names(vec![Registered::new("job")])
}

pub(crate) fn lease(store: &Sqlite, executor: &str) {
    soon(store.lease_beat(Beat::new(executor, "app", 1_u64))).expect("a beat");
}
