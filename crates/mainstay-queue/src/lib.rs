//! The queue and dispatch engine of mainstay: from enqueued rows to running workflows.
//!
//! [`Dispatch::launch`] opens a lease and starts a supervisor, a worker for each queue, a prober and an upkeep, all in one
//! group of tasks of the store's environment. The supervisor ticks once a second: the tick releases delayed rows, carries the
//! beat of the lease when it is due, and brings the leases of others and, when it changed, the set of queues. It spawns the
//! workers, tells them changed limits and hands them the store's wakeups. A worker claims for its queue and starts what
//! the claim brought through the [`Launcher`], which the runtime implements. Polls of all queues that fall together are one
//! call of the prober; only queues with work claim. The upkeep gives rows back, takes dead executors over, and audits that
//! every row the executor holds runs here.
//!
//! What to do is decided in pure cores, which take an input and answer with effects: [`QueueSet`] (which queues have a
//! worker), [`Lane`] (claim, probe, wait or end), [`Tally`] (what runs and who may take a place), [`Watch`] (whose lease is
//! dead), [`Pulse`] (when to tick and beat) and [`AuditPlan`]. The tasks around them are short loops: wait for a note, an
//! answer or a time, feed the core, do what it says. A core outlives its task, and a task that panics is started again:
//! the supervisor starts workers, a keeper starts the others.
//!
//! An execution owns a [`Slot`], which counts it from the claim on and frees its place when it is dropped, however it
//! ended. A claim whose answer is lost is sent again with its token until it is answered; a row that is held and runs
//! nowhere is found by the audit. When the lease is gone, all that runs is dropped and the process goes on under a new id.

mod audit;
mod backoff;
mod config;
mod dispatch;
mod failing;
mod lane;
mod lanes;
mod launcher;
mod launching;
mod mail;
mod prober;
mod pulse;
mod queue_set;
mod renewal;
mod service;
mod shared;
mod slot;
mod stats;
mod supervisor;
mod tally;
#[cfg(test)]
mod tests;
mod upkeep;
mod watch;
mod worker;

pub use audit::{AuditInput, AuditPlan, AuditStep, lost_rows};
pub use config::Config;
pub use dispatch::{Begun, Dispatch, Drained};
pub use lane::{Due, Lane, LaneEffect, LaneInput, LaneOutput, Pace, Plan, Standing};
pub use launcher::{Launcher, Work};
pub use pulse::{Pulse, PulseEffect, PulseInput};
pub use queue_set::{QueueSet, SetEffect, SetInput};
pub use slot::Slot;
pub use stats::Stats;
pub use tally::{Body, Count, Room, Tally, Wakes};
pub use watch::{Dead, Watch};
