//! Questions about queues: claim, probe and audit.

use async_trait::async_trait;
use mainstay_env::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use super::claim::check_names;
use super::{Claim, Claimed, Registered, at_least_1};
use crate::error::{FieldError, Result};
use crate::fence::Fence;
use crate::model::{AppName, Bounds, ExecutorId, QueueName, Token, VersionName, WorkflowId};

record! {
    /// Asks which queues have work.
    Probe {
        required {
            /// Application of the asker.
            app: AppName,
            /// Version of the asker.
            version: VersionName,
        }
        optional {}
        default {
            /// The queues.
            queues: Vec<QueueName> = Vec::new(),
            /// Functions that the process can run.
            names: Vec<Registered> = Vec::new(),
        }
    }

    /// Which queues have work.
    Probed {
        required {
            /// The store's clock.
            now: Timestamp,
        }
        optional {
            /// When the next delayed row of the application is due.
            next_due: Duration,
        }
        default {
            /// Those of the queues that have an eligible row, limits aside, in the order asked.
            due: Vec<QueueName> = Vec::new(),
        }
    }

    /// Asks for what an executor owns, a page at a time.
    Audit {
        required {
            /// The executor.
            executor: ExecutorId,
        }
        optional {
            /// Where the last page ended.
            after: AuditCursor,
        }
        default {
            /// Most rows of a page; at least 1. A page may hold fewer, or none, and still name where the next begins.
            limit: u32 = 1000,
        }
    }

    /// One page of what an executor owns.
    Audited {
        required {
            /// The store's clock.
            now: Timestamp,
        }
        optional {
            /// Where this page ended, when there may be more.
            next: AuditCursor,
        }
        default {
            /// Its pending rows in order of (created, id).
            rows: Vec<HeldRow> = Vec::new(),
        }
    }

    /// A pending row of an executor.
    HeldRow {
        required {
            /// The right to write for it.
            fence: Fence,
            /// When it was submitted.
            created_at: Timestamp,
        }
        optional {
            /// Its queue; none for a direct start.
            queue: QueueName,
            /// The claim's or start's token.
            token: Token,
        }
        default {}
    }
}

impl Probe {
    /// Checks every field against what no backend may take.
    ///
    /// # Errors
    /// Names the first bad field.
    pub fn check(&self, bounds: &Bounds) -> std::result::Result<(), FieldError> {
        bounds.name("probe.app", self.app.as_str())?;
        bounds.name("probe.version", self.version.as_str())?;
        self.queues.iter().try_for_each(|queue| bounds.name("probe.queues", queue.as_str()))?;
        check_names(bounds, "probe.names", &self.names)
    }
}

impl Audit {
    /// Checks every field against what no backend may take. A cursor may be as long as any stored id.
    ///
    /// # Errors
    /// Names the first bad field.
    pub fn check(&self, bounds: &Bounds) -> std::result::Result<(), FieldError> {
        bounds.name("audit.executor", self.executor.as_str())?;
        if self.after.as_ref().is_some_and(|after| after.id.as_str().contains('\0')) {
            return Err(FieldError::new("audit.after", "contains a NUL character"));
        }
        at_least_1("audit.limit", self.limit)
    }
}

/// Where a page of an audit ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AuditCursor {
    /// Age of the last row.
    pub created_at: Timestamp,
    /// Its id.
    pub id: WorkflowId,
}

/// Questions about queues.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// Takes enqueued rows for one executor and parks those that are over their attempts.
    ///
    /// Atomic: lease, revision, counts, selection, flips, parking and the record of starts are one step against every other
    /// call; eligibility is judged again at the flip. It never waits on a peer.
    /// Idempotent: by token with `repeat`: the rows still held by that token, in order, then nothing more is taken; without
    /// any, a claim like the first. Answers: rows in order (priority, created, id) and one [`crate::Stop`].
    /// Errors: `Invalid`, `Unavailable`, `Timeout`.
    /// Conformance: groups `claim`, `limits`, `order`, `isolation`, `drops` and `seeds`, such as
    /// `claim::a_repeat_answers_the_same_rows` and
    /// `drops::a_dropped_claim_can_be_repeated`.
    async fn queue_claim(&self, request: Claim) -> Result<Claimed>;

    /// Which of these queues have an eligible row, limits aside, and when the next delayed row is due.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Answers: a hint; an unknown queue is not due. Errors: `Invalid`,
    /// `Unavailable`, `Timeout`. Conformance: group `claim`, such as
    /// `claim::a_probe_goes_by_eligibility` and
    /// `claim::a_probe_changes_nothing`.
    async fn queue_probe(&self, request: Probe) -> Result<Probed>;

    /// The pending rows of an executor, by page, with their fences.
    ///
    /// Atomic: one snapshot a page. Idempotent: yes. Answers: rows in order of (created, id); an executor without a lease
    /// has rows too. Errors: `Invalid`, `Unavailable`, `Timeout`. Conformance: group `lease`, such as
    /// `lease::an_audit_lists_pending_rows_with_their_fences` and
    /// `lease::an_audit_goes_on_after_its_cursor`.
    async fn queue_audit(&self, request: Audit) -> Result<Audited>;
}
