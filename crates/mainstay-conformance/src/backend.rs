//! What the suite needs of a backend: an empty store, and more handles on it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use mainstay_env::Env;
use mainstay_store::{Capabilities, Result, Store, StoreClock};

use crate::trouble::{Lasting, Trouble};

/// One store of a backend under test: empty at first, gone with everything it left on disk when this is dropped.
///
/// The suite makes a new one for every case and runs cases on several threads at once.
#[async_trait]
pub trait Backend: Send + Sync {
    /// What the store can do; cases that need more are skipped. [`Store::capabilities`] must say the same.
    fn capabilities(&self) -> Capabilities;

    /// Whether `StoreClock::Server` is a clock of the database's own, which no test moves: the cases that go by the clock of
    /// the environment are skipped then.
    fn has_own_clock(&self) -> bool {
        false
    }

    /// Opens a handle on the store; the first call makes the store.
    ///
    /// Called again while a handle is open only with capability `shared`: a second process, as far as one process can show
    /// it. Called again after the last handle was dropped only with capability `durable`: a restart. Errors: as opening.
    async fn open(&self, env: Env, clock: StoreClock) -> Result<Arc<dyn Store>>;

    /// Opens a handle that works off its calls one after the other, in the order in which they were made; for cases that drop
    /// a call and go on when it has ended. A backend whose handles always do so needs nothing here. Errors: as opening.
    async fn open_in_order(&self, env: Env, clock: StoreClock) -> Result<Arc<dyn Store>> {
        self.open(env, clock).await
    }

    /// Whether [`Backend::trouble`] can make this trouble; the cases that ask for it are skipped otherwise, by name.
    ///
    /// False for a kind that the backend never answers, and for one that nothing in a test brings about.
    fn can_trouble(&self, _trouble: Trouble) -> bool {
        false
    }

    /// Brings the open store into trouble until the answer is dropped, by the backend's own machinery where that is possible.
    ///
    /// Called only for what [`Backend::can_trouble`] says, one at a time. Afterwards the store works again, and has lost
    /// nothing; a malformed row may stay so.
    async fn trouble(&self, trouble: Trouble) -> Lasting {
        unreachable!("{trouble} was not offered")
    }
}

/// A backend by name, and how its stores are made. A cheap clone.
#[derive(Clone)]
pub struct Subject {
    name: Arc<str>,
    factory: Arc<dyn Fn() -> Box<dyn Backend> + Send + Sync>,
}

impl Subject {
    /// `factory` makes a new [`Backend`] at every call.
    pub fn new(name: impl Into<Arc<str>>, factory: impl Fn() -> Box<dyn Backend> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), factory: Arc::new(factory) }
    }

    /// The backend's name, as `cargo xtask conformance` takes it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A new store.
    #[must_use]
    pub fn backend(&self) -> Box<dyn Backend> {
        (self.factory)()
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("name", &self.name).finish_non_exhaustive()
    }
}
