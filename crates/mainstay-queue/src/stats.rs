//! Numbers that tell how an engine fares.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mainstay_store::QueueName;

/// What runs, and what was done since the launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Executions in this process, waiting ones included.
    pub running: u32,
    /// Executions that hold a place of `max_running`.
    pub active: u32,
    /// Executions of each queue that has some.
    pub queues: BTreeMap<QueueName, u32>,
    /// Queues that have a worker.
    pub workers: u32,
    /// Claims sent, repeats included.
    pub claims: u64,
    /// Claims sent again because their answer was lost.
    pub repeats: u64,
    /// Rows that claims brought.
    pub claimed: u64,
    /// Claims that brought none.
    pub empty_claims: u64,
    /// Claims that missed the queue's lock.
    pub contended: u64,
    /// Claims that failed or whose answer was lost.
    pub failed_claims: u64,
    /// Bodies launched.
    pub launched: u64,
    /// Launches that panicked.
    pub launch_panics: u64,
    /// Probes sent.
    pub probes: u64,
    /// Ticks sent.
    pub ticks: u64,
    /// Ticks that failed.
    pub failed_ticks: u64,
    /// Beats sent, in a tick or alone.
    pub beats: u64,
    /// Audits that went through all pages.
    pub audits: u64,
    /// Rows given back: of failed launches, of claims that came too late, and what audits found.
    pub given_back: u64,
    /// Rows of dead executors enqueued again.
    pub taken_over: u64,
    /// Bodies dropped because their fence is void.
    pub evicted: u64,
    /// Leases lost and replaced.
    pub renewals: u64,
    /// Workers started again after they had died.
    pub worker_restarts: u64,
    /// Supervisors and other tasks of the engine started again after they had died.
    pub service_restarts: u64,
}

/// The counters under their lock.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Stats>);

impl Counters {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Stats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
