//! A running engine.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mainstay_env::Tasks;
use mainstay_queue::Stats;
use mainstay_store::{Effect, ExecutorId, Refusal, Store, Unit, UnitReply, WorkflowId};
use serde::de::DeserializeOwned;

use crate::builder::Builder;
use crate::error::{Error, Result};
use crate::guard;
use crate::handle::Handle;
use crate::invocation::{Invocation, Target};
use crate::recorder::Patience;
use crate::registry::IntoRegistration;
use crate::shared::Shared;
use crate::start::{PATIENCE, Start};
use crate::workflow::Workflow;

/// How long a shutdown waits for each: writes that are out, bodies that were dropped, its own tasks.
const GRACE: Duration = Duration::from_millis(500);
/// How far a shutdown goes beyond its limit: what was dropped is to be given back, and the lease ended, so that others need
/// not wait until it expires.
const BEYOND: Duration = Duration::from_secs(2);

/// A running engine: it runs what is started and enqueued for its application. A cheap clone.
///
/// It works until [`Engine::shutdown`]; what is left then is continued by another process, or the next launch.
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
/// let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
/// let handle = engine.start(double(4)).await?;
/// assert_eq!(handle.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    tasks: Tasks,
}

/// What can be an engine's store: a backend by value, or an `Arc` of one.
///
/// `M` tells them apart and is always inferred.
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
/// async fn launch<M>(store: impl mainstay::IntoStore<M>) -> Result<Engine> {
///     Engine::builder(store).app("shop").register(double).launch().await
/// }
/// let engine = launch(mainstay::memory()).await?;
/// assert_eq!(engine.start(double(4)).await?.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub trait IntoStore<M> {
    /// The store as the engine holds it.
    #[doc(hidden)]
    fn into_store(self) -> Arc<dyn Store>;
}

impl IntoStore<Arc<dyn Store>> for Arc<dyn Store> {
    fn into_store(self) -> Arc<dyn Store> {
        self
    }
}

impl<S: Store + 'static> IntoStore<Arc<S>> for Arc<S> {
    fn into_store(self) -> Arc<dyn Store> {
        self
    }
}

impl<S: Store + 'static> IntoStore<()> for S {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}

impl Engine {
    /// Begins to build an engine over a store.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let store = mainstay::memory();
    /// let engine = Engine::builder(store.clone()).app("shop").launch().await?;
    /// assert_eq!(store.version_list(&"shop".into()).await?.len(), 1);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn builder<M>(store: impl IntoStore<M>) -> Builder {
        Builder::new(store.into_store())
    }

    pub(crate) fn new(shared: Arc<Shared>, tasks: Tasks) -> Self {
        Self { shared, tasks }
    }

    /// Starts a workflow here at once, or enqueues it; gives its handle when its row is stored.
    ///
    /// An id that exists is joined. Errors: `Refused` for what cannot be started, `Conflict` when the id or key belongs to
    /// another workflow, `Unavailable` when the store does not answer for 30 s: it may have been started then.
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
    /// let first = engine.start(double(4)).id("order-42").await?;
    /// let again = engine.start(double(99)).id("order-42").await?;
    /// assert_eq!((first.result().await?, again.result().await?), (8, 8));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn start<W: Target>(&self, invocation: Invocation<W>) -> Start<W> {
        Start::by_engine(&self.shared, invocation)
    }

    /// The handle of a workflow by its function and id. Reads nothing.
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
    /// engine.start(double(4)).id("order-42").await?;
    /// assert_eq!(engine.handle(double, "order-42").result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn handle<M, F>(&self, _workflow: F, id: impl Into<WorkflowId>) -> Handle<<F::Workflow as Workflow>::Output>
    where
        F: IntoRegistration<M>,
        F::Workflow: Workflow,
    {
        self.handle_by_id(id)
    }

    /// The handle of a workflow by its id alone. Reads nothing.
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
    /// engine.start(double(4)).id("order-42").await?;
    /// assert_eq!(engine.handle_by_id::<u64>("order-42").result().await?, 8);
    /// assert_eq!(engine.handle_by_id::<u64>("order-43").result().await.unwrap_err().kind(), ErrorKind::NotFound);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn handle_by_id<T: DeserializeOwned + Send + 'static>(&self, id: impl Into<WorkflowId>) -> Handle<T> {
        Handle::new(self.shared.clone(), id.into(), None)
    }

    /// Enqueues a workflow that was cancelled or set aside again, from its last finished step and with all its attempts.
    ///
    /// One that waits on a queue is moved to the internal queue. Errors: `NotFound`; `Conflict` when it runs or has ended
    /// with a value or an error; `Unavailable`.
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
    /// handle.cancel().await?;
    /// assert_eq!(handle.result().await.unwrap_err().kind(), ErrorKind::Cancelled);
    /// engine.resume(handle.id()).await?;
    /// assert_eq!(handle.result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub async fn resume(&self, id: impl Into<WorkflowId>) -> Result<()> {
        if let Some(scope) = guard::current() {
            let own = &scope.ctx.exec.id;
            return Err(Error::refused(format!("engine.resume was called in the body of workflow {own}")));
        }
        let id = id.into();
        let status = self.handle_by_id::<()>(&id).row().await?.status;
        if matches!(status, mainstay_store::Status::Success | mainstay_store::Status::Error) {
            return Err(Error::conflict(format!("workflow {id} has ended: {status}")));
        }
        let unit = Unit::new().effect(Effect::Resume { ids: vec![id.clone()], queue: None, force: false });
        unit.check(&self.shared.bounds).map_err(|error| Error::refused(error.to_string()))?;
        match self.shared.recorder.commit(&id, unit, Patience::For(PATIENCE)).await.map_err(Error::store)?.reply {
            UnitReply::Done { .. } => Ok(()),
            UnitReply::Refused { why: Refusal::Missing(id), .. } => Err(Error::not_found(&id)),
            UnitReply::Refused { why: Refusal::Running(id), .. } => {
                Err(Error::conflict(format!("workflow {id} is running")))
            }
            other => Err(Error::bug(format!("the store answered a resume with {other:?}"))),
        }
    }

    /// The store, as the engine uses it.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
    /// let versions = engine.store().version_list(&"shop".into()).await?;
    /// assert_eq!(versions[0].name, "shop@1");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// The executor's id; it changes when the lease was lost.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
    /// assert!(engine.executor_id().as_str().starts_with("local~"));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn executor_id(&self) -> ExecutorId {
        self.shared.dispatch().map_or_else(|| "none".into(), mainstay_queue::Dispatch::executor)
    }

    /// The numbers of the queue engine as they are now.
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
    /// engine.start(double(4)).queue("orders").await?.result().await?;
    /// assert_eq!(engine.stats().claimed, 1);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.dispatch().map(mainstay_queue::Dispatch::stats).unwrap_or_default()
    }

    /// Takes no more work, waits up to `limit` for what runs, and drops the rest, which stays as it was recorded and is
    /// continued by another process or the next launch.
    ///
    /// Returns within two seconds of the limit even when the store hangs or a body blocks: after it what was dropped is given
    /// back to its queues. A second call waits for the end of the first; dropping the future does not take the shutdown back. Errors: `Refused` in a body.
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
    /// let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// engine.shutdown(Duration::from_secs(10)).await?;
    /// assert_eq!(engine.start(double(4)).await.unwrap_err().kind(), ErrorKind::Stopped);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self, limit: Duration) -> Result<()> {
        if let Some(scope) = guard::current() {
            let own = &scope.ctx.exec.id;
            return Err(Error::refused(format!("engine.shutdown was called in the body of workflow {own}")));
        }
        if !self.shared.stopping.swap(true, Ordering::Relaxed) {
            let engine = self.clone();
            let over = Over(self.shared.clone());
            let stop = async move {
                let _over = over;
                engine.stop(limit).await;
            };
            // A task of its own: a caller that gives up waiting does not leave it half done.
            drop(self.shared.env.tasks().spawn("shutdown", stop));
        }
        let mut stopped = self.shared.stopped.subscribe();
        // Never an error: the sender is in what this engine holds.
        let _ = stopped.wait_for(|stopped| *stopped).await;
        Ok(())
    }

    async fn stop(&self, limit: Duration) {
        let env = &self.shared.env;
        let over = env.deadline(limit);
        let (end, last) = (over + BEYOND, over + (BEYOND - GRACE));
        if let Some(dispatch) = self.shared.dispatch() {
            dispatch.shutdown(limit).await;
        }
        // A store that has not ended the lease in its time answers no write either: what is left of it is the bodies'.
        let _ = env.timeout_at(last.min(env.deadline(GRACE)), self.shared.recorder.flushed()).await;
        self.shared.recorder.stop();
        self.shared.hub.close();
        self.shared.bodies.close();
        self.shared.bodies.abort_all();
        self.shared.bodies.drain(end.min(env.deadline(GRACE))).await;
        self.tasks.close();
        self.tasks.abort_all();
        self.tasks.drain(end.min(env.deadline(GRACE))).await;
    }
}

/// Says that the shutdown is over when its task ends, in whatever way, or is refused: nobody would say so any more.
struct Over(Arc<Shared>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.hub.close();
        self.0.stopped.send_replace(true);
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("app", &self.shared.app)
            .field("version", &self.shared.version)
            .finish_non_exhaustive()
    }
}
