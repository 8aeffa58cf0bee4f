//! Wrappers around a store, in fixed order from the outside: trace, retry, deadline, faults.
//!
//! ```
//! # use std::sync::Arc;
//! # use mainstay_store::{Store, wrap};
//! fn harden(store: Arc<dyn Store>) -> Arc<dyn Store> {
//!     wrap::standard(store)
//! }
//! ```

mod call;
mod deadline;
mod faults;
mod retry;
#[cfg(test)]
mod tests;
mod trace;
mod wrapped;

use std::sync::Arc;

pub use call::Method;
pub use deadline::WithDeadline;
pub use faults::{Fault, FaultPlan, Faults, Rates, WithFaults};
pub use retry::WithRetry;
pub use trace::WithTrace;

use crate::contract::Store;

/// The store as an engine uses it: traced, lost answers repeated, every call under a deadline of 30 s.
#[must_use]
pub fn standard(store: Arc<dyn Store>) -> Arc<dyn Store> {
    WithTrace::new(WithRetry::new(WithDeadline::new(store)))
}

/// [`standard`] with faults beneath, as a real store's troubles would come, and the handle that steers them.
#[must_use]
pub fn with_faults(store: Arc<dyn Store>, plan: FaultPlan) -> (Arc<dyn Store>, Faults) {
    let (store, faults) = WithFaults::new(store, plan);
    (standard(store), faults)
}
