//! The right to write for one execution.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::WorkflowId;

/// Issued by a claim or a start, carried by every unit of that execution, read by the issuing backend alone.
///
/// Two runs of one row never have equal fences, unless it was deleted and made again by the very same submit. A fence is
/// void as soon as its row has left the execution: by an outcome, a cancellation, a resume, a take-over, a give-back or a
/// delete.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence {
    workflow: WorkflowId,
    raw: Arc<str>,
}

impl Fence {
    /// For backends: a fence over one workflow; `raw` is what the backend compares.
    #[must_use]
    pub fn issue(workflow: WorkflowId, raw: impl Into<Arc<str>>) -> Self {
        Self { workflow, raw: raw.into() }
    }

    /// The workflow it lets write.
    #[must_use]
    pub const fn workflow(&self) -> &WorkflowId {
        &self.workflow
    }

    /// For backends: the text given to [`Fence::issue`].
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fence({} {})", self.workflow, self.raw)
    }
}
