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
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # #[workflow]
/// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
/// #     Ok(2 * number)
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let orders = Queue::new("orders").concurrency(16).worker_concurrency(4);
/// let engine = Engine::builder(mainstay::memory()).app("shop").queue(orders).register(double).launch().await?;
/// assert_eq!(engine.start(double(4)).queue("orders").await?.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
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
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let engine = Engine::builder(mainstay::memory()).app("shop").queue(Queue::new("orders")).launch().await?;
    /// let queues = engine.store().queue_list(&"shop".into()).await?;
    /// assert!(queues.iter().any(|queue| queue.name == "orders" && queue.limits().concurrency.is_none()));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn new(name: impl Into<QueueName>) -> Self {
        Self {
            name: name.into(),
            limits: Limits::default(),
            polling: Duration::from_millis(wire::POLL_MILLIS),
            conflict: Conflict::Update,
        }
    }

    /// Most workflows running at once over all processes; at least 1.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let orders = Queue::new("orders").concurrency(16);
    /// let engine = Engine::builder(mainstay::memory()).app("shop").queue(orders).launch().await?;
    /// let queue = engine.store().queue_list(&"shop".into()).await?.remove(0);
    /// assert_eq!(queue.limits().concurrency, Some(16));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn concurrency(mut self, most: u32) -> Self {
        self.limits.concurrency = Some(most);
        self
    }

    /// Most workflows running at once in one process; at least 1, and not over the concurrency.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let orders = Queue::new("orders").worker_concurrency(4);
    /// let engine = Engine::builder(mainstay::memory()).app("shop").queue(orders).launch().await?;
    /// let queue = engine.store().queue_list(&"shop".into()).await?.remove(0);
    /// assert_eq!(queue.limits().worker_concurrency, Some(4));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn worker_concurrency(mut self, most: u32) -> Self {
        self.limits.worker_concurrency = Some(most);
        self
    }

    /// Most starts in any window of `period`, over all processes.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let hourly = Queue::new("mail").rate(2, Duration::from_secs(3600));
    /// let engine = Engine::builder(mainstay::memory()).app("shop").queue(hourly).register(double).launch().await?;
    /// let mut handles = Vec::new();
    /// for number in [1, 2, 3] {
    ///     handles.push(engine.start(double(number)).queue("mail").await?);
    /// }
    /// assert_eq!((handles[0].result().await?, handles[1].result().await?), (2, 4));
    /// assert_eq!(handles[2].status().await?, mainstay::Status::Enqueued);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn rate(mut self, starts: u32, period: Duration) -> Self {
        self.limits.rate = Some(Rate { starts, period });
        self
    }

    /// Most workflows of one partition running at once over all processes. No backend of this version has partitions: a launch
    /// is refused.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let customers = Queue::new("customers").partition_concurrency(1);
    /// let launch = Engine::builder(mainstay::memory()).app("shop").queue(customers).launch().await;
    /// // No store of this version has partitions yet, and a launch says so.
    /// assert_eq!(launch.unwrap_err().kind(), ErrorKind::Refused);
    /// # Ok(())
    /// # }
    /// ```
    pub fn partition_concurrency(mut self, most: u32) -> Self {
        self.limits.partition_concurrency = Some(most);
        self
    }

    /// Most workflows of one partition running at once in one process.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let customers = Queue::new("customers").partition_worker_concurrency(1);
    /// let launch = Engine::builder(mainstay::memory()).app("shop").queue(customers).launch().await;
    /// // No store of this version has partitions yet, and a launch says so.
    /// assert_eq!(launch.unwrap_err().kind(), ErrorKind::Refused);
    /// # Ok(())
    /// # }
    /// ```
    pub fn partition_worker_concurrency(mut self, most: u32) -> Self {
        self.limits.partition_worker_concurrency = Some(most);
        self
    }

    /// Most starts of one partition in any window of `period`, over all processes.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let customers = Queue::new("customers").partition_rate(5, Duration::from_secs(60));
    /// let launch = Engine::builder(mainstay::memory()).app("shop").queue(customers).launch().await;
    /// // No store of this version has partitions yet, and a launch says so.
    /// assert_eq!(launch.unwrap_err().kind(), ErrorKind::Refused);
    /// # Ok(())
    /// # }
    /// ```
    pub fn partition_rate(mut self, starts: u32, period: Duration) -> Self {
        self.limits.partition_rate = Some(Rate { starts, period });
        self
    }

    /// Interval of the poll that backs up wakeups; a second unless set.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let orders = Queue::new("orders").polling(Duration::from_millis(200));
    /// let engine = Engine::builder(mainstay::memory()).app("shop").queue(orders).launch().await?;
    /// let queue = engine.store().queue_list(&"shop".into()).await?.remove(0);
    /// assert_eq!(queue.polling, Duration::from_millis(200));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn polling(mut self, interval: Duration) -> Self {
        self.polling = interval;
        self
    }

    /// Leaves the limits of a queue that is registered already.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let store = mainstay::memory();
    /// for queue in [Queue::new("orders").concurrency(16), Queue::new("orders").concurrency(1).keep_existing()] {
    ///     let engine = Engine::builder(store.clone()).app("shop").queue(queue).launch().await?;
    ///     assert_eq!(store.queue_list(&"shop".into()).await?[0].limits().concurrency, Some(16));
    ///     engine.shutdown(Duration::from_secs(5)).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_existing(mut self) -> Self {
        self.conflict = Conflict::Keep;
        self
    }

    /// Changes the limits of a queue that is registered already only when this is the application's latest version.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let store = mainstay::memory();
    /// for (version, most) in [("v1", 1), ("v2", 16), ("v1", 1)] {
    ///     let orders = Queue::new("orders").concurrency(most).update_if_latest();
    ///     let engine = Engine::builder(store.clone()).app("shop").version(version).queue(orders).launch().await?;
    ///     engine.shutdown(Duration::from_secs(5)).await?;
    /// }
    /// assert_eq!(store.queue_list(&"shop".into()).await?[0].limits().concurrency, Some(16));
    /// # Ok(())
    /// # }
    /// ```
    pub fn update_if_latest(mut self) -> Self {
        self.conflict = Conflict::UpdateIfLatest;
        self
    }

    /// Its name.
    ///
    /// ```
    /// assert_eq!(mainstay::Queue::new("orders").name(), "orders");
    /// ```
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
