//! A workflow row without its payloads.

use std::time::Duration;

use mainstay_env::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    AppName, ClassName, CodecName, ConfigName, DedupKey, ExecutorId, PartitionKey, Payload, QueueName, ScheduleName,
    Status, VersionName, WorkflowId, WorkflowName,
};

/// Who a workflow acts for; carried along, never checked by a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Name of the user.
    pub user: Option<String>,
    /// The role assumed.
    pub role: Option<String>,
    /// All roles, in order.
    pub roles: Vec<String>,
}

/// An input as a claim reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// The row has none: a peer of an older schema wrote it, or a function without parameters.
    Missing,
    /// The whole input.
    Inline(Payload),
    /// It is over the byte budget; [`crate::WorkflowStore::workflow_input`] reads it.
    Deferred {
        /// Its size.
        bytes: u64,
    },
}

record! {
    /// A workflow row; stamps are the store's, in milliseconds.
    WorkflowRow {
        required {
            /// Its id.
            id: WorkflowId,
            /// Name of its function.
            name: WorkflowName,
            /// Its state.
            status: Status,
            /// When it was submitted; with priority and id it fixes the order of a queue.
            created_at: Timestamp,
            /// When it last changed state; never goes back.
            updated_at: Timestamp,
        }
        optional {
            /// Class of its function.
            class: ClassName,
            /// Configured instance of the class.
            config: ConfigName,
            /// Its queue; none for a direct start, and none after a cancellation or parking.
            queue: QueueName,
            /// Its partition.
            key: PartitionKey,
            /// Its deduplication key, while held.
            dedup: DedupKey,
            /// Last executor that owned it.
            executor: ExecutorId,
            /// Owner; none means that the first named executor to claim it becomes it.
            app: AppName,
            /// Version it is bound to; none means the latest.
            version: VersionName,
            /// Codec of its input, output and error.
            codec: CodecName,
            /// Workflow that started it.
            parent: WorkflowId,
            /// Workflow that it was forked from.
            forked_from: WorkflowId,
            /// Schedule that made it.
            schedule: ScheduleName,
            /// When its present execution was claimed or started.
            started_at: Timestamp,
            /// When it ended.
            completed_at: Timestamp,
            /// When a delayed row is due.
            delay_until: Timestamp,
            /// When it is cancelled unless ended.
            deadline: Timestamp,
            /// Budget of one execution, in whole milliseconds; becomes a deadline at the first claim.
            timeout: Duration,
            /// A JSON object for searching.
            attributes: Payload,
        }
        default {
            /// Lower is first; 0 is "none given" and comes before every other.
            priority: i32 = 0,
            /// Executions begun since it was submitted or resumed.
            attempts: u32 = 0,
            /// Claimed from a queue with a rate limit.
            rate_limited: bool = false,
            /// Some workflow was forked from it.
            was_forked: bool = false,
            /// Who it acts for.
            caller: Caller = Caller::default(),
        }
    }
}

impl WorkflowRow {
    /// What orders a queue: priority, then age, then the id.
    #[must_use]
    pub fn rank(&self) -> (i32, Timestamp, WorkflowId) {
        (self.priority, self.created_at, self.id.clone())
    }
}
