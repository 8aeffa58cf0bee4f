//! The nine traits of a store, their requests and replies.
//!
//! Every method is one atomic operation: it never waits for an event, sleeps, retries, reads a clock other than the
//! store's, or invents an id. Replies that carry `now` give the store's clock as the operation read it.
//!
//! Three kinds of error are those of many methods: every one that writes may answer `Full`, and all but a claim `Contended`;
//! `Timeout` is answered by [`crate::wrap::WithDeadline`] and by backends that have limits of their own. The conformance group `errors` holds every method to what
//! the kinds promise.

mod admin;
mod claim;
mod executor;
mod maintenance;
mod queue;
mod registry;
mod schedule;
mod signal;
mod store;
mod workflow;
mod write;

use crate::error::FieldError;

/// Refuses 0 where a request counts from 1.
fn at_least_1(field: &str, number: impl Into<u64>) -> std::result::Result<(), FieldError> {
    if number.into() == 0 { Err(FieldError::new(field, "must be at least 1")) } else { Ok(()) }
}

pub use admin::{AdminStore, Aggregate, Archive, Group, WorkflowFilter, WorkflowPage};
pub use claim::{Claim, Claimed, ClaimedRow, Registered};
pub use executor::{Beat, Beaten, ExecutorStore, Lease, Leases, TakeOver, TakenOver};
pub use maintenance::{Collect, Collected, Maintenance, RegistryStamp, Tick, Ticked};
pub use queue::{Audit, AuditCursor, Audited, HeldRow, Probe, Probed, QueueStore};
pub use registry::{OnConflict, QueueReply, RegisterQueue, Registry, UpdateQueue, Version, VersionReply};
pub use schedule::{ScheduleRow, ScheduleStore};
pub use signal::{Message, SignalStore, StreamPage};
pub use store::{Capabilities, Capability, Store, StoreClock};
pub use workflow::{ReadSteps, WorkflowStore};
pub use write::{Committed, WriteStore};
