//! Leases of executors.

use async_trait::async_trait;
use mainstay_env::Timestamp;
use serde::{Deserialize, Serialize};

use super::at_least_1;
use crate::error::{FieldError, Result};
use crate::model::{AppName, Bounds, ExecutorId, QueueName, WorkflowId, wire};

record! {
    /// Moves an executor's beat counter; beat 1 opens its lease.
    Beat {
        required {
            /// The executor, whose id is new at every launch.
            executor: ExecutorId,
            /// Its application.
            app: AppName,
            /// Counts up from 1.
            beat: u64,
        }
        optional {}
        default {}
    }

    /// A lease as it stands in the store.
    Lease {
        required {
            /// The executor.
            executor: ExecutorId,
            /// Its application.
            app: AppName,
            /// Its latest beat.
            beat: u64,
        }
        optional {}
        default {
            /// Ended by a take-over that is not through yet.
            ended: bool = false,
            /// The backend has proof that its process is gone; `false` proves nothing.
            dead: bool = false,
        }
    }

    /// The leases of an application.
    Leases {
        required {
            /// The store's clock.
            now: Timestamp,
        }
        optional {}
        default {
            /// By executor.
            leases: Vec<Lease> = Vec::new(),
        }
    }

    /// Ends a lease and re-enqueues its rows.
    TakeOver {
        required {
            /// The executor that is held to be dead.
            executor: ExecutorId,
            /// Its beat as last seen; a beat since then refuses the take-over.
            beat: u64,
        }
        optional {}
        default {
            /// Where rows without a queue go.
            fallback: QueueName = QueueName::from(wire::INTERNAL_QUEUE),
            /// Most rows of one call; at least 1. A call may bring fewer, or none, and still say that there are more.
            limit: u32 = 1000,
        }
    }
}

impl Beat {
    /// Checks every field against what no backend may take.
    ///
    /// # Errors
    /// Names the first bad field.
    pub fn check(&self, bounds: &Bounds) -> std::result::Result<(), FieldError> {
        bounds.name("beat.executor", self.executor.as_str())?;
        bounds.name("beat.app", self.app.as_str())?;
        at_least_1("beat.beat", self.beat)
    }
}

impl TakeOver {
    /// Checks every field against what no backend may take.
    ///
    /// # Errors
    /// Names the first bad field.
    pub fn check(&self, bounds: &Bounds) -> std::result::Result<(), FieldError> {
        bounds.name("take_over.executor", self.executor.as_str())?;
        bounds.name("take_over.fallback", self.fallback.as_str())?;
        at_least_1("take_over.limit", self.limit)
    }
}

/// Answer to a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Beaten {
    /// The lease lives and has this beat, or a later one that came before.
    Alive,
    /// It was taken over, or was never opened: go on under a new executor id.
    Gone,
}

/// What a take-over did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TakenOver {
    /// The lease is ended; these rows are enqueued again, in order of id within the call.
    Rows {
        /// Their ids.
        ids: Vec<WorkflowId>,
        /// Whether rows are left; the lease is removed with the last.
        more: bool,
    },
    /// The beat has moved; nothing was written.
    Alive,
}

/// Leases of executors. An executor without one, such as another SDK's, is left alone.
#[async_trait]
pub trait ExecutorStore: Send + Sync {
    /// Moves the beat counter of a lease, or opens it at beat 1.
    ///
    /// Atomic: yes. Idempotent: by its number; an older one that comes late changes nothing.
    /// Answers: `Gone` after a take-over, or for a beat above 1 without a lease. Errors: `Invalid` for beat 0,
    /// `Unavailable`, `Timeout`. Conformance: group `lease`, such as
    /// `lease::a_repeated_beat_changes_nothing` and
    /// `lease::a_beat_after_a_take_over_finds_it_gone`.
    async fn lease_beat(&self, request: Beat) -> Result<Beaten>;

    /// The leases of an application, ended ones included; the observer decides who is dead.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Answers: by executor. Errors: `Unavailable`, `Timeout`.
    /// Conformance: group `lease`, such as
    /// `lease::only_one_s_own_leases_are_listed`.
    async fn lease_list(&self, app: &AppName) -> Result<Leases>;

    /// Ends a lease whose beat is still the observed one, and enqueues its pending rows again.
    ///
    /// Atomic: lease and rows of one call; no claim or start of that executor can come between. Idempotent: until the rows are
    /// gone; then, and for an executor that never had a lease, no rows. Rows keep age, priority, attempts and deadline.
    /// Answers: [`TakenOver`]. Errors: `Invalid` for a limit of 0, `Unavailable`, `Timeout`.
    /// Conformance: groups `lease`, `isolation` and `drops`, such as
    /// `lease::a_take_over_of_a_beat_that_moved_is_refused` and
    /// `lease::a_repeated_take_over_finds_no_rows`.
    async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver>;
}
