//! The claim: its request and its reply.

use serde::{Deserialize, Serialize};

use mainstay_env::Timestamp;

use super::at_least_1;
use crate::admission::{Local, Stop};
use crate::error::FieldError;
use crate::fence::Fence;
use crate::model::{
    AppName, Bounds, ClassName, ConfigName, ExecutorId, Input, PartitionKey, QueueName, Revision, Steps, Token,
    VersionName, WorkflowId, WorkflowName, WorkflowRow, wire,
};

/// A function that a process can run: only rows of these are claimed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Registered {
    /// Its name.
    pub name: WorkflowName,
    /// Its class.
    pub class: Option<ClassName>,
    /// Its configured instance.
    pub config: Option<ConfigName>,
    /// Most executions of a row between two resumes; a claim parks a row that has had them.
    pub max_attempts: u32,
}

impl Registered {
    /// A function without class and instance, with the usual 100 attempts.
    #[must_use]
    pub fn new(name: impl Into<WorkflowName>) -> Self {
        Self { name: name.into(), class: None, config: None, max_attempts: wire::MAX_ATTEMPTS }
    }

    /// Whether a row is of this function.
    #[must_use]
    pub fn runs(&self, row: &WorkflowRow) -> bool {
        self.name == row.name && self.class == row.class && self.config == row.config
    }
}

/// Checks functions by the rules for the names of their rows.
pub(super) fn check_names(bounds: &Bounds, field: &str, names: &[Registered]) -> Result<(), FieldError> {
    names.iter().try_for_each(|known| {
        bounds.name(field, known.name.as_str())?;
        bounds.class_if(field, known.class.as_ref())?;
        bounds.class_if(field, known.config.as_ref())
    })
}

record! {
    /// Asks for enqueued rows of one queue for one executor.
    Claim {
        required {
            /// The queue; the internal one is always there and never limited.
            queue: QueueName,
            /// Who claims; its lease must live.
            executor: ExecutorId,
            /// Its application: rows of it and unowned ones are eligible, and become its own.
            app: AppName,
            /// Its version: rows of it are eligible, and unversioned ones when it is the latest registered or none is.
            version: VersionName,
            /// Identity of this claim; a new one for each, the same one only with `repeat`.
            token: Token,
        }
        optional {
            /// The queue's revision that the claim was planned with; another one answers `Stale`. Not for the internal queue.
            revision: Revision,
            /// Last key served in a partitioned queue; the rotation goes on after it.
            cursor: PartitionKey,
        }
        default {
            /// Functions that the process can run.
            names: Vec<Registered> = Vec::new(),
            /// Most rows taken, parked ones included; at least 1.
            budget: u32 = 64,
            /// What runs in this process.
            local: Local = Local::default(),
            /// Bytes of inputs and recorded steps in the reply.
            claim_bytes: u64 = 4 << 20,
            /// The same for one row.
            row_bytes: u64 = 256 << 10,
            /// Whether this token was sent before: its rows are looked for first, and answered if there are any.
            repeat: bool = false,
        }
    }

    /// A claimed row: all that starting it needs.
    ClaimedRow {
        required {
            /// The row as the claim left it.
            row: WorkflowRow,
            /// The right to write for this execution.
            fence: Fence,
            /// Its input.
            input: Input,
            /// Its recorded steps, looked up for every row.
            steps: Steps,
        }
        optional {}
        default {}
    }

    /// What a claim took.
    Claimed {
        required {
            /// The store's clock.
            now: Timestamp,
            /// Why no more was taken.
            stop: Stop,
        }
        optional {
            /// Last key served, for the next claim.
            cursor: PartitionKey,
        }
        default {
            /// Rows in the order in which they must be started: priority, created, id.
            rows: Vec<ClaimedRow> = Vec::new(),
            /// Rows found over their attempts, or unreadable, and parked, in the same order.
            parked: Vec<WorkflowId> = Vec::new(),
        }
    }
}

impl Claim {
    /// Checks every field against what no backend may take.
    ///
    /// # Errors
    /// Names the first bad field.
    pub fn check(&self, bounds: &Bounds) -> Result<(), FieldError> {
        bounds.name("claim.queue", self.queue.as_str())?;
        bounds.name("claim.executor", self.executor.as_str())?;
        bounds.name("claim.app", self.app.as_str())?;
        bounds.name("claim.version", self.version.as_str())?;
        bounds.token("claim.token", self.token.as_str())?;
        bounds.name_if("claim.cursor", self.cursor.as_ref())?;
        check_names(bounds, "claim.names", &self.names)?;
        at_least_1("claim.budget", self.budget)
    }

    /// The registration that runs a row, where there is one.
    #[must_use]
    pub fn registered(&self, row: &WorkflowRow) -> Option<&Registered> {
        self.names.iter().find(|name| name.runs(row))
    }
}
