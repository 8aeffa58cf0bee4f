//! Answers to units: lost races and duplicates are values, not errors.

use mainstay_env::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::model::{
    ClassName, ConfigName, ExecutorId, MessageId, Payload, RecordedStep, Standing, WorkflowId, WorkflowName,
};

record! {
    /// A workflow that this submit made, now or when it was sent before with the same token.
    Created {
        required {
            /// When its row was made.
            created_at: Timestamp,
        }
        optional {
            /// The right to write, where it runs at once and still belongs to this start.
            fence: Fence,
            /// When it is cancelled unless ended.
            deadline: Timestamp,
        }
        default {}
    }
}

/// What one effect of a committed unit did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EffectReply {
    /// It is written.
    Written,
    /// A submit made the row.
    Created(Created),
    /// A submit found its id taken by a workflow of the same name; nothing of that one changed.
    Existing(Standing),
    /// A cancel, resume or delete moved these, in order of id.
    Moved(Vec<WorkflowId>),
}

impl EffectReply {
    /// The form that [`crate::StepOutput::Answer`] stores: moved ids as a JSON array of strings, anything else `null`.
    #[must_use]
    pub fn answer(&self) -> Payload {
        match self {
            Self::Moved(ids) => {
                let ids = ids.iter().map(WorkflowId::as_str).map(serde_json::Value::from).collect();
                serde_json::Value::Array(ids).to_string().into()
            }
            _ => "null".into(),
        }
    }
}

/// Why an effect refused its unit; nothing of the unit is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Refusal {
    /// The deduplication key is held: go on with this workflow.
    Joined {
        /// Who holds it.
        holder: WorkflowId,
    },
    /// The deduplication key is held.
    Held {
        /// Who holds it.
        holder: WorkflowId,
    },
    /// The id is taken, and the submit wanted a new one.
    Exists(WorkflowId),
    /// The id belongs to a workflow of another function.
    Conflict {
        /// The id.
        id: WorkflowId,
        /// Name of the function that it belongs to.
        name: WorkflowName,
        /// Its class.
        class: Option<ClassName>,
        /// Its configured instance.
        config: Option<ConfigName>,
    },
    /// The message is consumed already, or not the receiver's.
    Consumed(MessageId),
    /// There is no such workflow, or it is not in the state that the effect needs.
    Missing(WorkflowId),
    /// The workflow is pending and the resume was not forced.
    Running(WorkflowId),
    /// The executor's lease is gone: nobody would take the row over.
    Unleased(ExecutorId),
    /// The backend does not know the effect.
    Unsupported,
}

/// Answer to one unit. All but `Done` have written nothing, and of `Unknown` nothing is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum UnitReply {
    /// All is written; one answer for each effect.
    Done {
        /// In the unit's order.
        effects: Vec<EffectReply>,
    },
    /// At least one of its positions is written already, under the same fence: these are the stored rows.
    Recorded {
        /// The stored rows of the unit's positions.
        rows: Vec<RecordedStep>,
    },
    /// The fence is void.
    Superseded {
        /// What the row is now.
        by: Standing,
    },
    /// An effect lost.
    Refused {
        /// Index of the effect.
        effect: usize,
        /// Why.
        why: Refusal,
    },
    /// Its answer was lost and it may not be repeated; no backend makes this one, only the retry wrapper.
    Unknown,
}

impl UnitReply {
    /// `Done` without effects.
    #[must_use]
    pub const fn done() -> Self {
        Self::Done { effects: Vec::new() }
    }

    /// Whether it is written.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }
}
