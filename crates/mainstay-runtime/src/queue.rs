//! Queues, as an application declares them.

use std::time::Duration;

use mainstay_store::{
    AppName, Limits, OnConflict, QueueName, QueueReply, Rate, RegisterQueue, Revision, Store, Timestamp, VersionName,
    wire,
};

use crate::error::{Error, Result};

/// A queue to be registered at launch: its name and limits.
///
/// Without a limit, all that is enqueued runs as far as the processes have places. Limits that are set all apply.
#[derive(Clone, Debug)]
#[must_use]
pub struct Queue {
    name: QueueName,
    limits: Limits,
    polling: Duration,
    conflict: Conflict,
}

/// What happens when the queue is registered with other limits.
#[derive(Clone, Copy, Debug)]
enum Conflict {
    Update,
    Keep,
    UpdateIfLatest,
}

impl Queue {
    /// A queue without limits.
    pub fn new(name: impl Into<QueueName>) -> Self {
        Self {
            name: name.into(),
            limits: Limits::default(),
            polling: Duration::from_millis(wire::POLL_MILLIS),
            conflict: Conflict::Update,
        }
    }

    /// Most workflows running at once over all processes; at least 1.
    pub fn concurrency(mut self, most: u32) -> Self {
        self.limits.concurrency = Some(most);
        self
    }

    /// Most workflows running at once in one process; at least 1, and not over the concurrency.
    pub fn worker_concurrency(mut self, most: u32) -> Self {
        self.limits.worker_concurrency = Some(most);
        self
    }

    /// Most starts in any window of `period`, over all processes.
    pub fn rate(mut self, starts: u32, period: Duration) -> Self {
        self.limits.rate = Some(Rate { starts, period });
        self
    }

    /// Most workflows of one partition running at once over all processes.
    pub fn partition_concurrency(mut self, most: u32) -> Self {
        self.limits.partition_concurrency = Some(most);
        self
    }

    /// Most workflows of one partition running at once in one process.
    pub fn partition_worker_concurrency(mut self, most: u32) -> Self {
        self.limits.partition_worker_concurrency = Some(most);
        self
    }

    /// Most starts of one partition in any window of `period`, over all processes.
    pub fn partition_rate(mut self, starts: u32, period: Duration) -> Self {
        self.limits.partition_rate = Some(Rate { starts, period });
        self
    }

    /// Interval of the poll that backs up wakeups; a second unless set.
    pub fn polling(mut self, interval: Duration) -> Self {
        self.polling = interval;
        self
    }

    /// Leaves the limits of a queue that is registered already.
    pub fn keep_existing(mut self) -> Self {
        self.conflict = Conflict::Keep;
        self
    }

    /// Changes the limits of a queue that is registered already only when this is the application's latest version.
    pub fn update_if_latest(mut self) -> Self {
        self.conflict = Conflict::UpdateIfLatest;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Judges name, limits and interval without a store.
    pub(crate) fn check(&self, app: &AppName) -> Result<()> {
        if self.name.as_str() == wire::INTERNAL_QUEUE {
            return Err(Error::refused(format!("queue {}: the name is the engine's own", self.name)));
        }
        let queue = self.request(app).queue(Revision(0), Timestamp::EPOCH);
        queue.check().map_err(|error| Error::refused(format!("queue {}: {error}", self.name)))
    }

    fn request(&self, app: &AppName) -> RegisterQueue {
        RegisterQueue::new(self.name.clone(), app.clone()).limits(self.limits).polling(self.polling)
    }

    pub(crate) async fn register(self, store: &dyn Store, app: &AppName, version: &VersionName) -> Result<()> {
        let on_conflict = match self.conflict {
            Conflict::Update => OnConflict::Update,
            Conflict::Keep => OnConflict::Keep,
            Conflict::UpdateIfLatest => OnConflict::UpdateIfLatest(version.clone()),
        };
        let request = self.request(app).on_conflict(on_conflict);
        match store.queue_register(request).await.map_err(Error::store)? {
            QueueReply::Owned(owner) => {
                Err(Error::conflict(format!("queue {} belongs to the application {owner}", self.name)))
            }
            _ => Ok(()),
        }
    }
}
