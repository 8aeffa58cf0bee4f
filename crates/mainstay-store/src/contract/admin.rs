//! Looking at and moving workflows in bulk.

use async_trait::async_trait;
use mainstay_env::Timestamp;

use crate::error::{Result, StoreError};
use crate::model::{AppName, Payload, QueueName, Status, WorkflowId, WorkflowName, WorkflowRow};

record! {
    /// Which workflows are meant; all that is given must hold.
    WorkflowFilter {
        required {}
        optional {
            /// Of this application or of none.
            app: AppName,
            /// Of this function.
            name: WorkflowName,
            /// On this queue.
            queue: QueueName,
            /// In this state.
            status: Status,
            /// Submitted at or after this.
            since: Timestamp,
            /// Submitted before this.
            until: Timestamp,
            /// After this id in the order of the list.
            after: WorkflowId,
        }
        default {
            /// Most rows of a page.
            limit: u32 = 100,
            /// Newest first.
            newest_first: bool = false,
        }
    }

    /// A page of workflows, by (created, id).
    WorkflowPage {
        required {}
        optional {
            /// Where the next page goes on, when there may be more.
            next: WorkflowId,
        }
        default {
            /// The rows.
            rows: Vec<WorkflowRow> = Vec::new(),
        }
    }

    /// How workflows are counted.
    Aggregate {
        required {
            /// Which ones.
            filter: WorkflowFilter,
        }
        optional {}
        default {
            /// Count by state.
            by_status: bool = true,
            /// Count by function.
            by_name: bool = false,
            /// Count by queue.
            by_queue: bool = false,
        }
    }

    /// One count.
    Group {
        required {
            /// How many.
            count: u64,
        }
        optional {
            /// Their state.
            status: Status,
            /// Their function.
            name: WorkflowName,
            /// Their queue.
            queue: QueueName,
        }
        default {}
    }

    /// A workflow with all that hangs on it, as the portable export record.
    Archive {
        required {
            /// The workflow.
            id: WorkflowId,
            /// The record.
            record: Payload,
        }
        optional {}
        default {}
    }
}

/// Looking at and moving workflows in bulk; capability `admin`.
#[async_trait]
pub trait AdminStore: Send + Sync {
    /// Workflows that match, by page.
    ///
    /// Atomic: one snapshot a page. Idempotent: yes. Errors: `Unsupported`, `Unavailable`, `Timeout`.
    async fn workflow_list(&self, _filter: WorkflowFilter) -> Result<WorkflowPage> {
        Err(StoreError::unsupported("workflow_list", "admin"))
    }

    /// Counts of workflows that match.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Errors: `Unsupported`, `Unavailable`, `Timeout`.
    async fn workflow_aggregate(&self, _request: Aggregate) -> Result<Vec<Group>> {
        Err(StoreError::unsupported("workflow_aggregate", "admin"))
    }

    /// Workflows as records that another store can import.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Errors: `Unsupported`, `NotFound`, `Unavailable`, `Timeout`.
    async fn workflow_export(&self, _ids: &[WorkflowId]) -> Result<Vec<Archive>> {
        Err(StoreError::unsupported("workflow_export", "admin"))
    }

    /// Takes exported workflows; ids that exist are left alone. Answers the ids that were taken.
    ///
    /// Atomic: all. Idempotent: yes. Errors: `Unsupported`, `Invalid`, `Unavailable`, `Timeout`.
    async fn workflow_import(&self, _archives: &[Archive]) -> Result<Vec<WorkflowId>> {
        Err(StoreError::unsupported("workflow_import", "admin"))
    }
}
