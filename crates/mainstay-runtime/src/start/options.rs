//! What can be asked of a start besides the call.

use std::time::Duration;

use mainstay_store::{
    AppName, CodecName, DedupKey, Joining, OnHeld, PartitionKey, QueueName, VersionName, When, WorkflowId,
};
use serde::Serialize;

use super::Start;
use crate::codec;
use crate::invocation::Target;

impl<W: Target> Start<W> {
    /// Id of the workflow: a later start with the same id joins this one, whatever its arguments. A new one unless set; in a body it derives from
    /// the parent's id and the position.
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
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// let handle = engine.start(double(4)).id("order-42").await?;
    /// assert_eq!(*handle.id(), "order-42");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn id(self, id: impl Into<WorkflowId>) -> Self {
        self.set(|request| request.id = Some(id.into()))
    }

    /// Puts it on a queue instead of starting it here at once. Where no process serves the queue, it waits until one does.
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
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").queue(Queue::new("orders")).register(double);
    /// # let engine = builder.launch().await?;
    /// let handle = engine.start(double(4)).queue("orders").await?;
    /// assert_eq!(handle.result().await?, 8);
    /// assert_eq!(handle.row().await?.queue.unwrap(), "orders");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn queue(self, queue: impl Into<QueueName>) -> Self {
        self.set(|request| request.queue = Some(queue.into()))
    }

    /// The partition of the queue.
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
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").queue(Queue::new("orders")).register(double);
    /// # let engine = builder.launch().await?;
    /// let handle = engine.start(double(4)).queue("orders").partition("customer-7").await?;
    /// assert_eq!(handle.row().await?.key.unwrap(), "customer-7");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn partition(self, key: impl Into<PartitionKey>) -> Self {
        self.set(|request| request.partition = Some(key.into()))
    }

    /// How long it waits before it may be claimed from its queue.
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
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").queue(Queue::new("orders")).register(double);
    /// # let engine = builder.launch().await?;
    /// let handle = engine.start(double(4)).queue("orders").delay(Duration::from_secs(3600)).await?;
    /// assert_eq!(handle.status().await?, mainstay::Status::Delayed);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn delay(self, delay: Duration) -> Self {
        self.set(|request| request.delay = Some(When::In(delay)))
    }

    /// Its rank in the queue: lower is first, from 1; without one it comes before all that have one.
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
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").queue(Queue::new("orders")).register(double);
    /// # let engine = builder.launch().await?;
    /// let handle = engine.start(double(4)).queue("orders").priority(1).await?;
    /// assert_eq!(handle.row().await?.priority, 1);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn priority(self, priority: u32) -> Self {
        self.set(|request| request.priority = i32::try_from(priority).unwrap_or(i32::MAX))
    }

    /// At most one unfinished workflow of the queue carries this key; a second start is an error of kind
    /// [`Conflict`](crate::ErrorKind::Conflict).
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
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").queue(Queue::new("orders")).register(double);
    /// # let engine = builder.launch().await?;
    /// let hour = Duration::from_secs(3600);
    /// engine.start(double(4)).queue("orders").delay(hour).unique("customer-7").await?;
    /// let second = engine.start(double(5)).queue("orders").unique("customer-7").await;
    /// assert_eq!(second.unwrap_err().kind(), ErrorKind::Conflict);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn unique(self, key: impl Into<DedupKey>) -> Self {
        self.set(|request| request.dedup = Some(Joining { key: key.into(), on_held: OnHeld::Reject }))
    }

    /// As [`Start::unique`], and a second start gives the handle of the first one's workflow.
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
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").queue(Queue::new("orders")).register(double);
    /// # let engine = builder.launch().await?;
    /// let hour = Duration::from_secs(3600);
    /// let first = engine.start(double(4)).queue("orders").delay(hour).unique_or_join("customer-7").await?;
    /// let second = engine.start(double(5)).queue("orders").unique_or_join("customer-7").await?;
    /// assert_eq!(first.id(), second.id());
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn unique_or_join(self, key: impl Into<DedupKey>) -> Self {
        self.set(|request| request.dedup = Some(Joining { key: key.into(), on_held: OnHeld::Join }))
    }

    /// Its time budget: it is cancelled when it has not ended this long after its first execution began.
    ///
    /// Without one, a child inherits the deadline of its parent.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn wait(ctx: Ctx) -> Result<()> {
    /// #     ctx.sleep(Duration::from_secs(3600)).await
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(wait).launch().await?;
    /// let handle = engine.start(wait()).timeout(Duration::from_millis(20)).await?;
    /// assert_eq!(handle.result().await.unwrap_err().kind(), ErrorKind::Cancelled);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|request| request.timeout = Some(timeout))
    }

    /// Takes no deadline from the parent.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// #[workflow]
    /// async fn parent(ctx: Ctx) -> Result<u64> {
    ///     ctx.start(double(4)).id("child-1").no_timeout().await?.result().await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").register(double).register(parent);
    /// # let engine = builder.launch().await?;
    /// let parent = engine.start(parent()).timeout(Duration::from_secs(60)).await?;
    /// assert_eq!(parent.result().await?, 8);
    /// assert!(parent.row().await?.deadline.is_some());
    /// assert!(engine.handle(double, "child-1").row().await?.deadline.is_none());
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn no_timeout(self) -> Self {
        self.set(|request| request.detached = true)
    }

    /// A JSON object by which it can be found.
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
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// let handle = engine.start(double(4)).attributes(&serde_json::json!({ "customer": 7 })).await?;
    /// assert_eq!(handle.row().await?.attributes.unwrap().as_str(), r#"{"customer":7}"#);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn attributes(self, attributes: &impl Serialize) -> Self {
        let encoded = codec::encode(attributes).map_err(|error| error.to_string());
        self.set(|request| request.attributes = Some(encoded))
    }

    /// Names the application whose processes run it, for a workflow that is not registered here.
    ///
    /// Without it such a workflow becomes that of the first application that claims it from its queue. Another than this
    /// engine's own needs a queue.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
    /// let call = Invocation::named("invoice").arg(&42);
    /// let handle = engine.start(call).queue("invoices").app("billing").await?;
    /// assert_eq!(handle.row().await?.app.unwrap(), "billing");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn app(self, app: impl Into<AppName>) -> Self {
        self.set(|request| request.app = Some(app.into()))
    }

    /// Binds it to a version of the application; that of this process unless set, where it is registered here. Another than
    /// this engine's own needs a queue.
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
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").queue(Queue::new("orders")).register(double);
    /// # let engine = builder.launch().await?;
    /// let handle = engine.start(double(4)).queue("orders").version("v2").await?;
    /// assert_eq!(handle.row().await?.version.unwrap(), "v2");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn version(self, version: impl Into<VersionName>) -> Self {
        self.set(|request| request.version = Some(version.into()))
    }

    /// Writes its arguments, and lets its result be written, in this codec instead of the engine's: one that was added to the
    /// builder, `portable_json`, or `rust_serde` for programs that read the one parameter as bare JSON.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
    /// let call = Invocation::named("invoice").arg(&42);
    /// let handle = engine.start(call).queue("invoices").codec("rust_serde").await?;
    /// assert_eq!(handle.row().await?.codec.unwrap(), "rust_serde");
    /// let unknown = engine.start(Invocation::named("invoice")).queue("invoices").codec("py_pickle").await;
    /// assert_eq!(unknown.unwrap_err().kind(), ErrorKind::Refused);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn codec(self, codec: impl Into<CodecName>) -> Self {
        self.set(|request| request.codec = Some(codec.into()))
    }

    /// Makes an id that exists an error of kind [`Conflict`](crate::ErrorKind::Conflict) instead of joining it.
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
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// engine.start(double(4)).id("order-42").must_be_new().await?;
    /// let second = engine.start(double(5)).id("order-42").must_be_new().await;
    /// assert_eq!(second.unwrap_err().kind(), ErrorKind::Conflict);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn must_be_new(self) -> Self {
        self.set(|request| request.refuse_existing = true)
    }
}
