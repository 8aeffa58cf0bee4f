//! Tells `tracing` of every call.

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_env::Env;

use super::call::{Call, Layer};
use super::wrapped::Wrapped;
use crate::contract::Store;
use crate::error::Result;

/// Sends an event for every call to the target `mainstay::store`: fields `op`, `micros` and, for a failure, `error`.
///
/// Answers are at level trace, failures at debug: who receives the error decides what it is worth.
#[derive(Debug)]
pub(super) struct Trace {
    env: Env,
}

/// Names the wrapper that traces.
#[derive(Debug)]
pub struct WithTrace;

impl WithTrace {
    /// The store with every call traced.
    #[must_use]
    #[allow(clippy::new_ret_no_self, reason = "a wrapped store is a store")]
    pub fn new(inner: Arc<dyn Store>) -> Arc<dyn Store> {
        let layer = Trace { env: inner.env().clone() };
        Arc::new(Wrapped { inner, layer })
    }
}

#[async_trait]
impl Layer for Trace {
    async fn around<T: Send + 'static>(&self, call: Call<T>) -> Result<T> {
        let begun = self.env.monotonic();
        let answer = call.first().await;
        let micros = u64::try_from(self.env.monotonic().since(begun).as_micros()).unwrap_or(u64::MAX);
        let op = call.method.name();
        match &answer {
            Ok(_) => tracing::trace!(target: "mainstay::store", op, micros, "answered"),
            Err(error) => tracing::debug!(target: "mainstay::store", op, micros, %error, "failed"),
        }
        answer
    }
}
