//! Queues and versions.

use std::time::Duration;

use async_trait::async_trait;
use mainstay_store::{
    AppName, Bounds, FieldError, OnConflict, Queue, QueueName, QueueReply, RegisterQueue, Registry, RegistryStamp,
    Result, Revision, StoreError, UpdateQueue, Version, VersionName, VersionReply, Wakeup,
};

use crate::memory::Memory;
use crate::operation::Operation;
use crate::state::owned_by;

#[async_trait]
impl Registry for Memory {
    async fn queue_register(&self, request: RegisterQueue) -> Result<QueueReply> {
        self.run("queue_register", move |operation| {
            request.check(&Bounds::default()).map_err(|error| StoreError::field_error("queue_register", error))?;
            if request.limits.partitioned() {
                return Err(StoreError::unsupported("queue_register", "partitions"));
            }
            Ok(operation.register(&request))
        })
        .await
    }

    async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply> {
        self.run("queue_update", move |operation| {
            let invalid = |error| StoreError::field_error("queue_update", error);
            Bounds::default().owned(&request.app, "name", request.name.as_str()).map_err(invalid)?;
            if request.change.sets_partition() {
                return Err(StoreError::unsupported("queue_update", "partitions"));
            }
            operation.update(&request).map_err(invalid)
        })
        .await
    }

    async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool> {
        self.run("queue_delete", |operation| {
            Bounds::default()
                .owned(app, "name", name.as_str())
                .map_err(|error| StoreError::field_error("queue_delete", error))?;
            Ok(operation.unregister(app, name))
        })
        .await
    }

    async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>> {
        self.run("queue_list", |operation| Ok(operation.queues(app))).await
    }

    async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        self.run("version_register", |operation| {
            Bounds::default()
                .owned(app, "version", version.as_str())
                .map_err(|error| StoreError::field_error("version_register", error))?;
            Ok(operation.add_version(app, version))
        })
        .await
    }

    async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        self.run("version_promote", |operation| {
            Bounds::default()
                .owned(app, "version", version.as_str())
                .map_err(|error| StoreError::field_error("version_promote", error))?;
            Ok(operation.promote(app, version))
        })
        .await
    }

    async fn version_list(&self, app: &AppName) -> Result<Vec<Version>> {
        self.run("version_list", |operation| Ok(operation.versions(app))).await
    }
}

impl Operation<'_> {
    /// The queues of an application and of none, by name.
    pub(crate) fn queues(&self, app: &AppName) -> Vec<Queue> {
        let damaged = &self.state.damage.queues;
        let readable = self.state.queues.values().filter(|queue| !damaged.contains(&queue.name));
        readable.filter(|queue| owned_by(queue.app.as_ref(), app)).cloned().collect()
    }

    /// The names of those whose row cannot be read.
    pub(crate) fn malformed(&self, app: &AppName) -> Vec<QueueName> {
        let damaged = self.state.damage.queues.iter().filter_map(|name| self.state.queues.get(name));
        damaged.filter(|queue| owned_by(queue.app.as_ref(), app)).map(|queue| queue.name.clone()).collect()
    }

    /// Stores a queue under a new revision, and answers it as it stands.
    pub(crate) fn store_queue(&mut self, mut queue: Queue) -> Queue {
        queue.revision = Revision(self.moved().0);
        self.stamped(queue.created_at);
        self.state.damage.queues.remove(&queue.name);
        self.state.queues.insert(queue.name.clone(), queue.clone());
        queue
    }

    /// The queue set has changed.
    fn moved(&mut self) -> RegistryStamp {
        self.state.stamp.0 += 1;
        self.hint(Wakeup::Registry);
        self.state.stamp
    }

    fn register(&mut self, request: &RegisterQueue) -> QueueReply {
        let Some(stored) = self.state.queues.get(&request.name).cloned() else {
            let queue = self.store_queue(request.queue(Revision(0), self.now));
            return QueueReply::Created(queue);
        };
        if let Some(owner) = stored.app.as_ref().filter(|owner| **owner != request.app) {
            return QueueReply::Owned(owner.clone());
        }
        let replaces = match &request.on_conflict {
            OnConflict::Keep => false,
            OnConflict::Update => true,
            OnConflict::UpdateIfLatest(version) => {
                self.state.latest_version(&request.app).is_none_or(|latest| latest.name == *version)
            }
        };
        let wanted = if replaces { request.queue(stored.revision, stored.created_at) } else { stored.clone() };
        self.replace(stored, wanted.app(request.app.clone()))
    }

    fn update(&mut self, request: &UpdateQueue) -> std::result::Result<QueueReply, FieldError> {
        let Some(stored) = self.state.queues.get(&request.name).cloned() else { return Ok(QueueReply::Missing) };
        if let Some(owner) = stored.app.as_ref().filter(|owner| **owner != request.app) {
            return Ok(QueueReply::Owned(owner.clone()));
        }
        if request.change.is_empty() {
            return Ok(QueueReply::Kept(stored));
        }
        let wanted = request.change.merge(&stored)?;
        Ok(self.replace(stored, wanted))
    }

    /// A queue that would be the same keeps its revision, so that a launch of each process makes no claim stale.
    fn replace(&mut self, stored: Queue, wanted: Queue) -> QueueReply {
        if wanted == stored {
            return QueueReply::Kept(stored);
        }
        QueueReply::Updated(self.store_queue(wanted))
    }

    fn unregister(&mut self, app: &AppName, name: &QueueName) -> bool {
        let known = self.state.queues.get(name).is_some_and(|queue| owned_by(queue.app.as_ref(), app));
        if known {
            self.state.queues.remove(name);
            self.moved();
        }
        known
    }

    fn add_version(&mut self, app: &AppName, version: &VersionName) -> VersionReply {
        match self.state.versions.get(version) {
            Some(known) if owned_by(known.app.as_ref(), app) => VersionReply::Known,
            Some(known) => VersionReply::Owned(known.app.clone().unwrap_or_else(|| app.clone())),
            None => {
                let at = self.promoted();
                let new = Version::new(version.clone(), at).app(app.clone());
                self.state.versions.insert(version.clone(), new);
                self.hint(Wakeup::Registry);
                VersionReply::Created
            }
        }
    }

    fn promote(&mut self, app: &AppName, version: &VersionName) -> VersionReply {
        let Some(known) = self.state.versions.get(version) else { return VersionReply::Missing };
        if let Some(owner) = known.app.as_ref().filter(|owner| *owner != app) {
            return VersionReply::Owned(owner.clone());
        }
        if self.state.latest_version(app).is_some_and(|latest| latest.name == *version) {
            return VersionReply::Known;
        }
        let at = self.promoted();
        if let Some(known) = self.state.versions.get_mut(version) {
            known.promoted_at = at;
        }
        self.hint(Wakeup::Registry);
        VersionReply::Known
    }

    /// A stamp later than that of every other version: two promotions in a millisecond have an order too.
    fn promoted(&mut self) -> mainstay_store::Timestamp {
        let others = self.state.versions.values().map(|version| version.promoted_at + Duration::from_millis(1));
        let at = others.max().map_or(self.now, |other| other.max(self.now));
        self.stamped(at);
        at
    }

    fn versions(&self, app: &AppName) -> Vec<Version> {
        let mut found: Vec<Version> =
            self.state.versions.values().filter(|version| owned_by(version.app.as_ref(), app)).cloned().collect();
        found.sort_by(|a, b| (b.promoted_at, &b.name).cmp(&(a.promoted_at, &a.name)));
        found
    }
}
