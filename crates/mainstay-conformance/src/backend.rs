//! What the suite needs of a backend: an empty store, and more handles on it.

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_env::Env;
use mainstay_store::{Capabilities, Result, Store, StoreClock};

/// One store of a backend under test: empty at first, gone with everything it left on disk when this is dropped.
///
/// The suite makes a new one for every case and runs cases on several threads at once.
#[async_trait]
pub trait Backend: Send + Sync {
    /// What the store can do; cases that need more are skipped. [`Store::capabilities`] must say the same.
    fn capabilities(&self) -> Capabilities;

    /// Opens a handle on the store; the first call makes the store.
    ///
    /// Called again while a handle is open only with capability `shared`: a second process, as far as one process can show
    /// it. Called again after the last handle was dropped only with capability `durable`: a restart. Errors: as opening.
    async fn open(&self, env: Env, clock: StoreClock) -> Result<Arc<dyn Store>>;
}
