//! Reads of workflows: what a waiter and a replay need.

use async_trait::async_trait;

use crate::error::Result;
use crate::model::{DedupKey, Payload, Position, QueueName, Standing, Steps, WorkflowId, WorkflowRow};

record! {
    /// Asks for recorded steps of a workflow.
    ReadSteps {
        required {
            /// The workflow.
            id: WorkflowId,
        }
        optional {}
        default {
            /// First position wanted.
            from: Position = Position(0),
            /// Bytes of outputs in one answer; at least one step is given whatever its size.
            bytes: u64 = 4 << 20,
        }
    }
}

/// Reads of workflows.
#[async_trait]
pub trait WorkflowStore: Send + Sync {
    /// Where each workflow stands, in the order asked.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Answers: `Gone` for an unknown id. Errors: `Unavailable`, `Timeout`.
    /// Conformance: group `workflows`, such as
    /// `workflows::a_standing_tells_each_state`.
    async fn workflow_standing(&self, ids: &[WorkflowId]) -> Result<Vec<Standing>>;

    /// The rows without payloads, in the order asked.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Answers: `None` for an unknown id. Errors: `Unavailable`, `Timeout`.
    /// Conformance: group `workflows`, such as
    /// `workflows::rows_follow_the_order_asked`.
    async fn workflow_rows(&self, ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>>;

    /// Recorded steps from a position on, in order, up to a budget of bytes.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Answers: `Partial` when more are left. Errors: `NotFound` for an unknown id,
    /// `Unavailable`, `Timeout`. Conformance: group `workflows`, such as
    /// `workflows::pages_of_steps_are_all_steps` and
    /// `workflows::steps_of_an_unknown_workflow_are_not_found`.
    async fn workflow_steps(&self, request: ReadSteps) -> Result<Steps>;

    /// The input of a workflow, for a claim that said `Deferred`.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Answers: `None` where the row has none. Errors: `NotFound` for an unknown id,
    /// `Unavailable`, `Timeout`. Conformance: group `workflows`, such as
    /// `workflows::an_input_is_read_as_it_was_written` and
    /// `workflows::an_input_of_an_unknown_workflow_is_not_found`.
    async fn workflow_input(&self, id: &WorkflowId) -> Result<Option<Payload>>;

    /// Who holds a deduplication key of a queue.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Answers: `None` when nobody does. Errors: `Unavailable`, `Timeout`.
    /// Conformance: group `workflows`, such as
    /// `workflows::delayed_enqueued_and_pending_rows_hold_their_key`.
    async fn workflow_holder(&self, queue: &QueueName, key: &DedupKey) -> Result<Option<WorkflowId>>;
}
