//! Queues and versions.

use async_trait::async_trait;
use mainstay_env::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::error::{FieldError, Result};
use crate::model::{AppName, Bounds, Limits, Queue, QueueChange, QueueName, Revision, VersionName, wire};

/// What a registration does with a queue that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnConflict {
    /// Leaves it.
    Keep,
    /// Replaces limits and interval.
    Update,
    /// Replaces them when this is the application's latest version, or none is registered.
    UpdateIfLatest(VersionName),
}

record! {
    /// Registers a queue.
    RegisterQueue {
        required {
            /// Its name; the internal queue's is refused.
            name: QueueName,
            /// The application that registers it, and owns it from then on unless another does.
            app: AppName,
        }
        optional {}
        default {
            /// Its limits.
            limits: Limits = Limits::default(),
            /// Interval of the poll that backs up wakeups; at least a millisecond.
            polling: Duration = Duration::from_millis(wire::POLL_MILLIS),
            /// What happens when it exists.
            on_conflict: OnConflict = OnConflict::Update,
        }
    }

    /// Changes some fields of a queue.
    UpdateQueue {
        required {
            /// The queue.
            name: QueueName,
            /// The application that changes it.
            app: AppName,
            /// The changes; an empty one writes nothing.
            change: QueueChange,
        }
        optional {}
        default {}
    }

    /// A registered version of an application.
    Version {
        required {
            /// Its name, unique over all applications.
            name: VersionName,
            /// When it was last promoted; the greatest is the latest, ties by name.
            promoted_at: Timestamp,
        }
        optional {
            /// Its owner.
            app: AppName,
        }
        default {}
    }
}

impl RegisterQueue {
    /// The queue that it asks for, to be checked by [`Queue::check`] and stored under a revision.
    #[must_use]
    pub fn queue(&self, revision: Revision, now: Timestamp) -> Queue {
        Queue::new(self.name.clone(), revision)
            .app(self.app.clone())
            .stored(self.limits)
            .partition_flag(self.limits.partitioned())
            .polling(self.polling)
            .created_at(now)
    }

    /// Checks every field against what no backend may take.
    ///
    /// # Errors
    /// Names the first bad field.
    pub fn check(&self, bounds: &Bounds) -> std::result::Result<(), FieldError> {
        bounds.name("app", self.app.as_str())?;
        if let OnConflict::UpdateIfLatest(version) = &self.on_conflict {
            bounds.name("on_conflict", version.as_str())?;
        }
        self.queue(Revision(0), Timestamp::EPOCH).check()
    }
}

/// What a registration or change of a queue did; the queue is as it stands afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum QueueReply {
    /// The queue is new.
    Created(Queue),
    /// The queue was changed.
    Updated(Queue),
    /// The queue was left as it is.
    Kept(Queue),
    /// Another application owns it; nothing was written.
    Owned(AppName),
    /// There is no such queue; nothing was written.
    Missing,
}

/// What a registration or promotion of a version did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum VersionReply {
    /// It is new, and the latest.
    Created,
    /// It was there; a registration leaves its age, a promotion makes it the latest.
    Known,
    /// Another application has the name; nothing was written.
    Owned(AppName),
    /// There is no such version to promote.
    Missing,
}

/// Queues and versions.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Registers a queue, or updates it by policy.
    ///
    /// Atomic: yes. Idempotent: yes. Answers: [`QueueReply`], never `Missing`; an unowned queue becomes the caller's, one
    /// that would stay the same is `Kept` with its revision.
    /// Errors: `Invalid` (with the field), `Unsupported` for limits of a partition without the capability, `Unavailable`,
    /// `Timeout`. Conformance: group `limits`, such as
    /// `limits::a_repeated_registration_ends_alike`.
    async fn queue_register(&self, request: RegisterQueue) -> Result<QueueReply>;

    /// Changes some fields of a queue, checked against what is stored.
    ///
    /// Atomic: read, check and write. Idempotent: yes. Answers: [`QueueReply`], never `Created`. Errors: as registering.
    /// Conformance: group `limits`, such as
    /// `limits::a_change_is_checked_against_what_is_stored` and
    /// `limits::a_repeated_change_ends_alike`.
    async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply>;

    /// Deletes a queue of this application or of none; its rows stay.
    ///
    /// Atomic: yes. Idempotent: yes. Answers: whether it was there and is gone. Errors: `Invalid`, `Unavailable`,
    /// `Timeout`. Conformance: group `limits`, such as
    /// `limits::a_deleted_queue_is_gone_and_its_rows_stay`.
    async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool>;

    /// The queues of this application and of none, by name.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Answers: without the internal queue. Errors: `Unavailable`, `Timeout`.
    /// Conformance: group `limits`, such as
    /// `limits::only_one_s_own_queues_are_listed`.
    async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>>;

    /// Registers a version of an application as the latest, if it is new.
    ///
    /// Atomic: yes. Idempotent: yes. Answers: [`VersionReply`], never `Missing`. Errors: `Invalid`, `Unavailable`, `Timeout`.
    /// Conformance: group `claim`, such as
    /// `claim::a_version_registered_again_keeps_its_age`.
    async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply>;

    /// Makes a registered version the latest.
    ///
    /// Atomic: yes. Idempotent: yes. Answers: [`VersionReply`], never `Created`. Errors: `Invalid`, `Unavailable`, `Timeout`.
    /// Conformance: group `claim`, such as
    /// `claim::a_promoted_version_is_the_latest`.
    async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply>;

    /// The versions of an application and of none, latest first.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Answers: all. Errors: `Unavailable`, `Timeout`. Conformance: group `claim`, such as
    /// `claim::versions_are_listed_latest_first`.
    async fn version_list(&self, app: &AppName) -> Result<Vec<Version>>;
}
