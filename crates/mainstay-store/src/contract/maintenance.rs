//! What has to be done again and again: the tick and the collection of ended rows.

use async_trait::async_trait;
use mainstay_env::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use super::{Beat, Beaten, Lease, at_least_1};
use crate::error::{FieldError, Result};
use crate::model::{AppName, Bounds, Queue, QueueName, WorkflowId, wire};

/// Changes whenever the queues of a store do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RegistryStamp(pub i64);

record! {
    /// One round of a supervisor.
    Tick {
        required {
            /// Its application; rows, queues and leases of it are looked after, and unowned rows and queues.
            app: AppName,
        }
        optional {
            /// The executor's beat, when one is due.
            beat: Beat,
            /// Stamp of the queue set that the caller has.
            seen: RegistryStamp,
        }
        default {
            /// Most rows released, and most rows cancelled by deadline, in one tick.
            limit: u32 = 1000,
        }
    }

    /// What a tick did and found.
    Ticked {
        required {
            /// The store's clock.
            now: Timestamp,
            /// Stamp of the queue set as it is now.
            stamp: RegistryStamp,
        }
        optional {
            /// Answer to the beat, where one was given.
            beat: Beaten,
            /// The queues, by name, when the stamp differs from the one seen.
            queues: Vec<Queue>,
            /// When the next delayed row is due, or the next deadline passes.
            next_due: Duration,
        }
        default {
            /// Queues of which delayed rows were released.
            released: Vec<QueueName> = Vec::new(),
            /// Workflows cancelled because their deadline passed, in order of id.
            cancelled: Vec<WorkflowId> = Vec::new(),
            /// Queues whose stored row cannot be read; they are missing from `queues` and keep their last known form.
            malformed: Vec<QueueName> = Vec::new(),
            /// The leases of the application, by executor.
            leases: Vec<Lease> = Vec::new(),
            /// Number of the schema as recorded in the store.
            catalog: u32 = wire::CATALOG,
        }
    }

    /// Asks for the removal of old ended workflows.
    Collect {
        required {
            /// Application whose rows, and unowned ones, are removed.
            app: AppName,
            /// How long ago they ended, at least.
            age: Duration,
        }
        optional {}
        default {
            /// Most workflows of one call; at least 1.
            limit: u32 = 1000,
        }
    }

    /// What a collection removed.
    Collected {
        required {
            /// The store's clock.
            now: Timestamp,
        }
        optional {}
        default {
            /// Workflows removed.
            removed: u32 = 0,
            /// Whether more may be left.
            more: bool = false,
        }
    }
}

impl Tick {
    /// Checks every field against what no backend may take.
    ///
    /// # Errors
    /// Names the first bad field.
    pub fn check(&self, bounds: &Bounds) -> std::result::Result<(), FieldError> {
        bounds.name("tick.app", self.app.as_str())?;
        self.beat.as_ref().map_or(Ok(()), |beat| beat.check(bounds))
    }
}

impl Collect {
    /// Checks every field against what no backend may take.
    ///
    /// # Errors
    /// Names the first bad field.
    pub fn check(&self, bounds: &Bounds) -> std::result::Result<(), FieldError> {
        bounds.name("collect.app", self.app.as_str())?;
        at_least_1("collect.limit", self.limit)
    }
}

/// Upkeep.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Releases due delayed rows, cancels rows past their deadline, takes a beat and reads what a supervisor needs.
    ///
    /// Atomic: each part. Idempotent: yes. Rows held by another call are left to the next tick.
    /// Answers: [`Ticked`]. Errors: `Invalid` (as a beat), `Unavailable`, `Timeout`.
    /// Conformance: groups `claim`, `lease`, `limits` and `time`, such as
    /// `claim::a_repeated_tick_finds_nothing` and
    /// `claim::a_tick_cancels_rows_past_their_deadline`.
    async fn tick(&self, request: Tick) -> Result<Ticked>;

    /// Removes workflows that ended at least `age` ago, oldest first, with all that hangs on them.
    ///
    /// Atomic: each call. Idempotent: yes. Answers: how many went. Errors: `Invalid` for a limit of 0, `Unavailable`,
    /// `Timeout`. Conformance: groups `workflows` and `isolation`, such as
    /// `workflows::a_collection_takes_all_that_hangs_on_a_row` and
    /// `workflows::a_repeated_collection_removes_nothing`.
    async fn collect(&self, request: Collect) -> Result<Collected>;
}
