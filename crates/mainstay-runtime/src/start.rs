//! Starting workflows: options, the request, and what the store makes of it.

mod child;
mod options;

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mainstay_env::{BoxFuture, Timestamp};
use mainstay_queue::{Begun, Slot};
use mainstay_store::{
    AppName, CodecName, Created, EffectReply, Input, Joining, OnExisting, PartitionKey, Payload, Place, Position,
    QueueName, Refusal, Status, StoreError, Submit, Token, Unit, UnitReply, VersionName, When, WorkflowId, WorkflowRow,
    wire,
};
use tokio::sync::oneshot;

use crate::codec::{self, CodecPart, Strictness};
use crate::ctx::{Ctx, InStep, Made};
use crate::driver;
use crate::error::{Error, Result};
use crate::guard;
use crate::handle::Handle;
use crate::invocation::{Invocation, Target};
use crate::recorder::{Answer, Patience};
use crate::registry::Key;
use crate::shared::Shared;

/// How long a start outside a workflow waits for a store that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A start that was made and is carried out by awaiting it; it gives a [`Handle`].
///
/// Once it has been polled, the workflow starts even when the future is dropped.
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
/// let handle = engine.start(double(4)).id("order-42").queue("orders").priority(1).await?;
/// assert_eq!(handle.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[must_use = "a start does nothing until it is awaited"]
pub struct Start<W: Target> {
    from: Origin,
    key: Key,
    request: Result<Request>,
    target: std::marker::PhantomData<fn() -> W>,
}

/// Where a start was made.
enum Origin {
    Engine(Arc<Shared>),
    Body { ctx: Ctx, made: Made },
}

/// Everything asked for, before it has a place.
#[derive(Clone)]
struct Request {
    key: Key,
    input: Payload,
    id: Option<WorkflowId>,
    queue: Option<QueueName>,
    partition: Option<PartitionKey>,
    delay: Option<When>,
    priority: i32,
    dedup: Option<Joining>,
    timeout: Option<Duration>,
    detached: bool,
    attributes: Option<Result<Payload, String>>,
    app: Option<AppName>,
    version: Option<VersionName>,
    /// What the row is written in; the input is, once the request was judged.
    codec: Option<CodecName>,
    refuse_existing: bool,
}

impl Request {
    fn of<W: Target>(key: &Key, invocation: Invocation<W>) -> Result<Self> {
        Ok(Self {
            key: key.clone(),
            input: invocation.input()?,
            id: None,
            queue: None,
            partition: None,
            delay: None,
            priority: 0,
            dedup: None,
            timeout: None,
            detached: false,
            attributes: None,
            app: None,
            version: None,
            codec: None,
            refuse_existing: false,
        })
    }

    /// The request with its input as it is stored, after all that can be judged without the store.
    fn judged(mut self, shared: &Shared) -> Result<Self> {
        self.check(shared)?;
        let codec = self.codec.get_or_insert_with(|| shared.codecs.own()).clone();
        self.input = shared.codecs.stored(Some(&codec), CodecPart::Input, self.input)?;
        Ok(self)
    }

    fn check(&self, shared: &Shared) -> Result<()> {
        let refuse = |text: &str| Err(Error::refused(format!("start of workflow {}: {text}", self.key)));
        self.key.check()?;
        if self.queue.is_none() {
            if !shared.registry.contains(&self.key) {
                return refuse("it is not registered here: register it, or name a queue that another program serves");
            }
            if self.partition.is_some() || self.delay.is_some() || self.dedup.is_some() || self.priority != 0 {
                return refuse("partition, delay, priority and deduplication need a queue");
            }
            let foreign_app = self.app.as_ref().is_some_and(|app| *app != shared.app);
            let foreign_version = self.version.as_ref().is_some_and(|version| *version != shared.version);
            if foreign_app || foreign_version {
                return refuse("another application or version needs a queue, which its processes serve");
            }
        }
        if let Some(codec) = &self.codec {
            shared.codecs.check(codec)?;
        }
        if self.priority < 0 {
            return refuse("priority is negative");
        }
        if self.timeout.is_some_and(|timeout| timeout.as_millis() == 0) {
            return refuse("timeout is under a millisecond");
        }
        if shared.strictness == Strictness::Portable
            && let Err(error) = codec::check_portable(&self.input)
        {
            return refuse(&format!("arguments: {error}"));
        }
        match &self.attributes {
            Some(Err(error)) => return refuse(&format!("attributes: {error}")),
            Some(Ok(attributes)) if shared.strictness == Strictness::Portable => {
                if let Err(error) = codec::check_portable(attributes) {
                    return refuse(&format!("attributes: {error}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn submit(&self, shared: &Shared, id: &WorkflowId, token: &Token, place: Place) -> Submit {
        let name = self.key.name.clone();
        let mut submit =
            Submit::new(id.clone(), name, token.clone(), place).input(self.input.clone()).priority(self.priority);
        // What this program does not run is another's: whoever serves the queue may own it, in whatever version.
        let ours = shared.registry.contains(&self.key);
        submit.app = self.app.clone().or_else(|| ours.then(|| shared.app.clone()));
        submit.version = self.version.clone().or_else(|| ours.then(|| shared.version.clone()));
        submit.codec.clone_from(&self.codec);
        submit.class.clone_from(&self.key.class);
        submit.config.clone_from(&self.key.instance);
        submit.dedup.clone_from(&self.dedup);
        submit.timeout = self.timeout;
        submit.attributes = self.attributes.clone().and_then(Result::ok);
        if self.refuse_existing {
            submit.on_existing = OnExisting::Refuse;
        }
        submit
    }

    fn place(&self, shared: &Shared, id: &WorkflowId) -> (Place, Option<Slot>) {
        if let Some(name) = &self.queue {
            let place = Place::Queue { name: name.clone(), key: self.partition.clone(), delay: self.delay };
            return (place, None);
        }
        match shared.dispatch().map(|dispatch| dispatch.begin(id)) {
            Some(Begun::Here { executor, slot }) => (Place::Run(executor), Some(slot)),
            _ => (Place::queue(wire::INTERNAL_QUEUE), None),
        }
    }
}

impl<W: Target> Start<W> {
    pub(crate) fn by_engine(shared: &Arc<Shared>, invocation: Invocation<W>) -> Self {
        let mut start = Self::new(Origin::Engine(shared.clone()), invocation);
        if let Some(scope) = guard::current() {
            start.request = Err(Error::refused(format!(
                "engine.start was called in the body of workflow {}, where it would start again in every execution: use \
                 ctx.start",
                scope.ctx.exec.id
            )));
        }
        start
    }

    fn new(from: Origin, invocation: Invocation<W>) -> Self {
        let Invocation { name, class, instance, .. } = &invocation;
        let key = Key { name: name.clone(), class: class.clone(), instance: instance.clone() };
        let request = Request::of(&key, invocation);
        Self { from, key, request, target: std::marker::PhantomData }
    }

    fn set(mut self, change: impl FnOnce(&mut Request)) -> Self {
        if let Ok(request) = &mut self.request {
            change(request);
        }
        self
    }

    async fn run(self) -> Result<Handle<W::Output>> {
        match self.from {
            Origin::Engine(shared) => {
                if shared.is_stopping() || shared.bodies_lost.load(Ordering::Relaxed) {
                    return Err(Error::stopped());
                }
                let request = self.request?;
                let request = request.judged(&shared)?;
                let started = start_outside(&shared, request).await?;
                Ok(started.handle(shared, None))
            }
            Origin::Body { ctx, made } => child::start_in_body(ctx, made, self.key, self.request).await,
        }
    }
}

impl<W: Target> IntoFuture for Start<W> {
    type Output = Result<Handle<W::Output>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<W: Target> fmt::Debug for Start<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start").field("workflow", &format_args!("{}", self.key)).finish_non_exhaustive()
    }
}

/// What became of a submit.
enum Submitted {
    /// Go on with this workflow.
    Is(Started),
    /// The lease is gone: the internal queue is the place.
    Unleased,
}

/// The workflow of a start; the codec of its row where the start has made it.
struct Started {
    id: WorkflowId,
    codec: Option<CodecName>,
}

impl Started {
    fn handle<T>(self, shared: Arc<Shared>, owner: Option<u64>) -> Handle<T> {
        Handle::new(shared, self.id, owner).of_codec(self.codec)
    }
}

impl From<WorkflowId> for Started {
    fn from(id: WorkflowId) -> Self {
        Self { id, codec: None }
    }
}

async fn start_outside(shared: &Arc<Shared>, request: Request) -> Result<Started> {
    let id = request.id.clone().unwrap_or_else(|| shared.env.ids().uuid().into());
    let token = Token::new(shared.env.ids().uuid());
    let (mut place, mut slot) = request.place(shared, &id);
    loop {
        let submit = request.submit(shared, &id, &token, place);
        let unit = Unit::new().effect(submit);
        unit.check(&shared.bounds).map_err(|error| Error::refused(error.to_string()))?;
        let (sender, receiver) = oneshot::channel();
        let (for_launch, for_request, for_id) = (shared.clone(), request.clone(), id.clone());
        // The launch hangs on the write and not on the caller, who may go away meanwhile.
        let done = Box::new(move |answer: Result<Answer, StoreError>| {
            // An error means that the caller has gone.
            let _ = sender.send(submitted(&for_launch, &for_request, &for_id, slot, answer));
        });
        shared.recorder.send(&id, unit, Patience::For(PATIENCE), done);
        match receiver.await.map_err(|_| Error::stopped())?? {
            Submitted::Is(started) => return Ok(started),
            Submitted::Unleased => (place, slot) = (Place::queue(wire::INTERNAL_QUEUE), None),
        }
    }
}

/// Takes the answer to a submit, and starts the body where it is ours.
fn submitted(
    shared: &Arc<Shared>,
    request: &Request,
    id: &WorkflowId,
    slot: Option<Slot>,
    answer: Result<Answer, StoreError>,
) -> Result<Submitted> {
    let Answer { now, reply, .. } = answer.map_err(Error::store)?;
    match reply {
        UnitReply::Done { effects } => {
            let mut started = Started::from(id.clone());
            if let Some(EffectReply::Created(created)) = effects.into_iter().next() {
                started.codec.clone_from(&request.codec);
                launch(shared, request, id, created, slot, now);
            }
            Ok(Submitted::Is(started))
        }
        UnitReply::Refused { why: Refusal::Joined { holder }, .. } => Ok(Submitted::Is(holder.into())),
        UnitReply::Refused { why: Refusal::Unleased(_), .. } => Ok(Submitted::Unleased),
        UnitReply::Refused { why, .. } => Err(refused(&request.key, &why)),
        other => Err(Error::bug(format!("the store answered a submit with {other:?}"))),
    }
}

/// Starts the body of a row that a submit has made here.
fn launch(
    shared: &Arc<Shared>,
    request: &Request,
    id: &WorkflowId,
    created: Created,
    slot: Option<Slot>,
    now: Timestamp,
) {
    let (Some(fence), Some(slot)) = (created.fence, slot) else { return };
    let Some(body) = shared.registry.get(&request.key) else { return };
    if !slot.bind(&fence) {
        return;
    }
    let mut row =
        WorkflowRow::new(id.clone(), request.key.name.clone(), Status::Pending, created.created_at, created.created_at)
            .started_at(now)
            .attempts(1_u32);
    row.deadline = created.deadline;
    row.codec.clone_from(&request.codec);
    let codec = request.codec.clone();
    let start = driver::Start { body, input: Input::Inline(request.input.clone()), codec, more: None, slot };
    shared.begin(&row, fence, Vec::new(), start);
}

fn refused(key: &Key, why: &Refusal) -> Error {
    match why {
        Refusal::Held { holder } => {
            Error::conflict(format!("start of workflow {key}: its deduplication key is held by {holder}"))
        }
        Refusal::Exists(id) => Error::conflict(format!("start of workflow {key}: there is a workflow {id} already")),
        Refusal::Conflict { id, name, class, config } => {
            let other = Key { name: name.clone(), class: class.clone(), instance: config.clone() };
            Error::conflict(format!("start of workflow {key}: {id} is a workflow {other}"))
        }
        other => Error::conflict(format!("start of workflow {key}: the store refused it: {other:?}")),
    }
}

impl Ctx {
    /// Starts a child and gives its handle; the child and this workflow's record of it commit together.
    ///
    /// The child's id derives from this workflow's and the position, unless set. In a step an id must be set, and the
    /// workflow has no parent.
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
    ///     let first = ctx.start(double(4)).await?;
    ///     let second = ctx.start(double(5)).await?;
    ///     Ok(first.result().await? + second.result().await?)
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").register(double).register(parent);
    /// # let engine = builder.launch().await?;
    /// assert_eq!(engine.start(parent()).await?.result().await?, 18);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn start<W: Target>(&self, invocation: Invocation<W>) -> Start<W> {
        let made = self.make("ctx.start", 1, InStep::Runs);
        Start::new(Origin::Body { ctx: self.clone(), made }, invocation)
    }

    /// Starts a child and waits for its result: the same as `ctx.start(..).await?.result().await`.
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
    ///     Ok(1 + ctx.run(double(4)).await?)
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").register(double).register(parent);
    /// # let engine = builder.launch().await?;
    /// assert_eq!(engine.start(parent()).await?.result().await?, 9);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn run<W: Target>(&self, invocation: Invocation<W>) -> Run<W> {
        let made = self.make("ctx.run", 2, InStep::Refused);
        let (start, result) = match made {
            Made::At(ctx, first) => (Made::At(ctx.clone(), first), Made::At(ctx, Position(first.0 + 1))),
            Made::Unrecorded => (Made::Unrecorded, Made::Unrecorded),
            Made::Refused(error) => (Made::Refused(error.clone()), Made::Refused(error)),
        };
        let from = Origin::Body { ctx: self.clone(), made: start };
        Run { start: Start::new(from, invocation), result }
    }
}

/// A child that was made; awaiting it starts it and gives its result.
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
///     let child = ctx.run(double(4));
///     child.await
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let builder = Engine::builder(mainstay::memory()).app("shop").register(double).register(parent);
/// # let engine = builder.launch().await?;
/// assert_eq!(engine.start(parent()).await?.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[must_use = "a child does nothing until it is awaited, but has spent its positions"]
pub struct Run<W: Target> {
    start: Start<W>,
    result: Made,
}

impl<W: Target> Run<W> {
    /// Sets options of the start.
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
    ///     ctx.run(double(4)).with(|start| start.id("child-1")).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").register(double).register(parent);
    /// # let engine = builder.launch().await?;
    /// assert_eq!(engine.start(parent()).await?.result().await?, 8);
    /// assert_eq!(engine.handle(double, "child-1").result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn with(mut self, options: impl FnOnce(Start<W>) -> Start<W>) -> Self {
        self.start = options(self.start);
        self
    }
}

impl<W: Target> IntoFuture for Run<W> {
    type Output = Result<W::Output>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { start, result } = self;
        Box::pin(async move {
            let handle = start.await?;
            handle.awaited(result, None).complete().await
        })
    }
}

impl<W: Target> fmt::Debug for Run<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("start", &self.start).finish_non_exhaustive()
    }
}
