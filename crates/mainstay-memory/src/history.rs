//! Which executions began and how they stopped: the list that tests read.

use mainstay_store::{ExecutorId, PartitionKey, QueueName, Timestamp, WorkflowId, WorkflowRow};

/// What happened to an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FlipKind {
    /// A claim took an enqueued row.
    Claimed,
    /// A submit began a row at once.
    Started,
    /// A pending row is enqueued or delayed again: given back, taken over, or resumed by force.
    Returned,
    /// A pending row ended or was deleted.
    Ended,
}

/// One row that became pending or ceased to be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flip {
    /// What happened.
    pub kind: FlipKind,
    /// The clock of the operation.
    pub at: Timestamp,
    /// The workflow.
    pub id: WorkflowId,
    /// The executor of the execution.
    pub executor: Option<ExecutorId>,
    /// The queue that the row was on while pending; none for a direct start.
    pub queue: Option<QueueName>,
    /// Its partition.
    pub key: Option<PartitionKey>,
    /// Executions begun, this one included.
    pub attempts: u32,
}

impl Flip {
    /// Of a row as it is while pending.
    pub(crate) fn of(kind: FlipKind, row: &WorkflowRow, at: Timestamp) -> Self {
        Self {
            kind,
            at,
            id: row.id.clone(),
            executor: row.executor.clone(),
            queue: row.queue.clone(),
            key: row.key.clone(),
            attempts: row.attempts,
        }
    }
}
