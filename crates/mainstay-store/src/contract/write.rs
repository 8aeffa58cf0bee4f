//! The one method that carries every write of a workflow.

use async_trait::async_trait;
use mainstay_env::Timestamp;

use crate::error::Result;
use crate::unit::{Unit, UnitReply};

/// Answers to a batch of units, in its order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Committed {
    /// The store's clock.
    pub now: Timestamp,
    /// One answer a unit; an error is that unit's alone, and then nothing of it is written.
    pub units: Vec<Result<UnitReply>>,
}

impl Committed {
    /// Makes the reply.
    #[must_use]
    pub fn new(now: Timestamp, units: Vec<Result<UnitReply>>) -> Self {
        Self { now, units }
    }
}

/// Writes of workflows.
#[async_trait]
pub trait WriteStore: Send + Sync {
    /// Commits each unit that may be committed and answers all of them in order.
    ///
    /// Atomic: each unit; the result is that of some serial order in which the units of one fence keep theirs.
    /// Idempotent: where [`Unit::repeatable`]; a submit by its token, steps by position, an outcome by its fence.
    /// Answers: [`UnitReply`]; a refused unit writes nothing and leaves the others done.
    /// Errors: outer `Unavailable`, `Timeout`, `Contended`, `Full`, of which nothing is known of any unit; inner `Invalid`
    /// (with the field) and `Unsupported`.
    /// Conformance: groups `units`, `fence`, `workflows`, `isolation` and `drops`, such as
    /// `units::a_refused_unit_leaves_the_others_done` and
    /// `drops::a_dropped_commit_is_whole_or_nothing`.
    async fn commit(&self, units: &[Unit]) -> Result<Committed>;
}
