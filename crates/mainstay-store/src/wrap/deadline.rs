//! Puts every call under a deadline, in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mainstay_env::{Env, Tasks};

use super::call::{Call, Layer};
use super::wrapped::Wrapped;
use crate::contract::Store;
use crate::error::{ErrorKind, Result, StoreError};

/// Longest time that a caller waits for an answer (architecture: a call that never returns must not stop a loop).
const LIMIT: Duration = Duration::from_secs(30);

/// Runs a call in a task that its environment owns: past the limit the caller gets `Timeout` and the call runs on; a
/// caller that goes away leaves no half-sent call behind either.
#[derive(Debug)]
pub(super) struct Deadline {
    env: Env,
    tasks: Tasks,
    limit: Duration,
}

/// Names the wrapper that limits time.
#[derive(Debug)]
pub struct WithDeadline;

impl WithDeadline {
    /// The store with 30 s for every call, by its environment's clock.
    #[must_use]
    #[allow(clippy::new_ret_no_self, reason = "a wrapped store is a store")]
    pub fn new(inner: Arc<dyn Store>) -> Arc<dyn Store> {
        Self::after(inner, LIMIT)
    }

    /// The same with another limit.
    #[must_use]
    pub fn after(inner: Arc<dyn Store>, limit: Duration) -> Arc<dyn Store> {
        let env = inner.env().clone();
        let layer = Deadline { tasks: env.tasks().group("store calls"), env, limit };
        Arc::new(Wrapped { inner, layer })
    }
}

#[async_trait]
impl Layer for Deadline {
    async fn around<T: Send + 'static>(&self, call: Call<T>) -> Result<T> {
        let op = call.method.name();
        let task = self.tasks.spawn(op, call.first());
        match self.env.timeout(self.limit, task).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(died)) => Err(StoreError::new(ErrorKind::Bug, op).with_source(died)),
            Err(elapsed) => Err(StoreError::new(ErrorKind::Timeout, op).with_source(elapsed)),
        }
    }
}
