//! Durable workflows for Rust: async functions whose finished steps are never run again.
//!
//! A workflow is an async function of a [`Ctx`] and its arguments. What it does to the world it does in steps; each
//! step's result is stored, so that a process that dies is continued from the last finished step, by its next launch
//! or by another process. Workflows are started directly or put on a [`Queue`]; everything lives in one [`Store`].
//!
//! ```
//! use mainstay::prelude::*;
//! use std::time::Duration;
//!
//! #[step]
//! async fn greeting(ctx: &Ctx, name: &str) -> Result<String> {
//!     Ok(format!("hello, {name}"))
//! }
//!
//! #[workflow]
//! async fn greet(ctx: Ctx, name: String) -> Result<String> {
//!     let text = greeting(&ctx, &name).await?;
//!     ctx.sleep(Duration::from_millis(5)).await?;
//!     Ok(text)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let engine = Engine::builder(mainstay::memory()).app("shop").register(greet).launch().await?;
//! let hello = engine.start(greet("ada".to_owned())).id("hello-1").await?;
//! assert_eq!(hello.result().await?, "hello, ada");
//! engine.shutdown(Duration::from_secs(5)).await
//! # }
//! ```
//!
//! An id is a workflow: `hello-1` may be started as often as you like and runs once. [`open`] gives a store that
//! outlives the process, [`memory`] one that does not.
//!
//! # Steps and retries
//!
//! [`Ctx::step`] runs a body that returns this crate's [`Result`], [`Ctx::call`] one with an error type of its own,
//! and `#[step]` makes a function a step. A step runs again when its process dies before the result is stored, so
//! it must bear being repeated: [`Attempt::key`] is a key for services that know a repeated request by one. A failed
//! step fails the call; [`StepCall::retries`] and what stands beside it say how often and when it is tried again. Attempts are
//! this process's: after its death they are counted anew.
//!
//! ```
//! # use mainstay::prelude::*;
//! # use std::time::Duration;
//! #[step(retries = 3, backoff = "1ms", timeout = "30s")]
//! async fn charge(_ctx: &Ctx, attempt: Attempt, cents: u64) -> Result<String> {
//!     if attempt.number == 1 {
//!         return Err(Error::new("line busy"));
//!     }
//!     Ok(format!("{cents} cents under {}", attempt.key))
//! }
//!
//! #[workflow]
//! async fn checkout(ctx: Ctx, cents: u64) -> Result<String> {
//!     let paid = charge(&ctx, cents).await?;
//!     ctx.step("mail", || async { Ok(format!("a receipt: {paid}")) }).await
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! # let engine = Engine::builder(mainstay::memory()).app("shop").register(checkout).launch().await?;
//! let receipt = engine.start(checkout(995)).id("order-42").await?;
//! assert_eq!(receipt.result().await?, "a receipt: 995 cents under order-42-0");
//! # engine.shutdown(Duration::from_secs(5)).await
//! # }
//! ```
//!
//! # Queues
//!
//! [`Start::queue`] puts a workflow on a queue instead of starting it here. Every process of the application that
//! serves the queue takes from it, within the limits of the [`Queue`]; [`Start::delay`], [`Start::priority`] and
//! [`Start::unique`] say when and whether.
//!
//! ```
//! # use mainstay::prelude::*;
//! # use std::time::Duration;
//! # #[workflow]
//! # async fn resize(_ctx: Ctx, picture: u64) -> Result<u64> {
//! #     Ok(picture)
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let pictures = Queue::new("pictures").worker_concurrency(2);
//! let engine = Engine::builder(mainstay::memory()).app("shop").queue(pictures).register(resize).launch().await?;
//! let mut handles = Vec::new();
//! for picture in 0..5 {
//!     handles.push(engine.start(resize(picture)).queue("pictures").await?);
//! }
//! for (picture, handle) in (0..).zip(handles) {
//!     assert_eq!(handle.result().await?, picture);
//! }
//! # engine.shutdown(Duration::from_secs(5)).await
//! # }
//! ```
//!
//! # Children, branches, races
//!
//! [`Ctx::run`] calls another workflow and waits for its result, [`Ctx::start`] gives a [`Handle`]. A child has a row
//! of its own, runs anywhere, and is started once however often its parent is replayed. [`Ctx::spawn`] goes on beside
//! the body within the same workflow; [`Ctx::race`] takes the first of several calls and forgets the others.
//!
//! ```
//! # use mainstay::prelude::*;
//! # use std::time::Duration;
//! # #[workflow]
//! # async fn price(_ctx: Ctx, article: u64) -> Result<u64> {
//! #     Ok(10 * article)
//! # }
//! #[workflow]
//! async fn total(ctx: Ctx) -> Result<u64> {
//!     let first = ctx.start(price(1)).await?;
//!     let second = ctx.run(price(2)).await?;
//!     Ok(first.result().await? + second)
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! # let engine = Engine::builder(mainstay::memory()).app("shop").register(price).register(total).launch().await?;
//! assert_eq!(engine.start(total()).await?.result().await?, 30);
//! # engine.shutdown(Duration::from_secs(5)).await
//! # }
//! ```
//!
//! # Errors
//!
//! One [`Error`] takes any error of a library by `?` and is stored as name, message, code and data. It ends a workflow
//! as a value does: whoever awaits it gets the error, and nothing runs again. What the engine itself reports, such as
//! a timeout or a cancelled workflow, is told by [`Error::kind`]. [`Builder::error`] keeps the fields of your error
//! types. A workflow that cannot be replayed, or has been begun too often, is set aside instead: [`Engine::resume`]
//! takes it up.
//!
//! ```
//! # use mainstay::prelude::*;
//! # use std::time::Duration;
//! #[workflow]
//! async fn parse(ctx: Ctx, text: String) -> Result<u32> {
//!     match ctx.call("parse", || async { text.parse::<u32>() }).await {
//!         Err(_) if text.is_empty() => Err(Error::named("Missing", "a number is missing")),
//!         result => result,
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! # let engine = Engine::builder(mainstay::memory()).app("shop").register(parse).launch().await?;
//! let error = engine.start(parse(String::new())).await?.result().await.unwrap_err();
//! assert_eq!((error.kind(), error.name()), (ErrorKind::App, "Missing"));
//! # engine.shutdown(Duration::from_secs(5)).await
//! # }
//! ```
//!
//! # What a body may not do
//!
//! A workflow that is continued runs its body from the top; calls that are recorded are answered from the store. So a
//! body must make the same durable calls in the same order whenever its arguments and their answers are the same:
//!
//! - It reads no clock, no random source, no file, no environment and no global state, and changes nothing outside:
//!   all that belongs in steps.
//! - It takes no order from chance: the iteration of a `HashMap` is another one in every process.
//! - It waits for durable calls alone. A time limit is [`Ctx::race`] with [`Ctx::sleep`], never `tokio::time::timeout`; the first
//!   of several is [`Ctx::race`], never `tokio::select!`: a replay would take another branch. A task of its own is
//!   [`Ctx::spawn`], because calls that a spawned task or thread makes are refused. It blocks on no durable call.
//! - It starts workflows by [`Ctx::start`] or [`Ctx::run`]; [`Engine::start`] is refused in a body.
//! - A new version of the code keeps the calls, in order and by name, of what is still running. Where it does not, the
//!   workflow is set aside: its row says [`Mismatch`](ErrorKind::Mismatch) and where, whoever waits for it gets an error of kind
//!   [`Parked`](ErrorKind::Parked), and [`Engine::resume`] goes on once code is deployed that fits. A parent that awaits it gets
//!   that error too, recorded like any other: let it handle what may come back later.
//!
//! # Sleep
//!
//! [`Ctx::sleep`] records when it ends: a sleep of a month survives restarts, costs no thread and no place of
//! [`Builder::max_running`].
//!
//! # Shutdown
//!
//! [`Engine::shutdown`] takes no more work, waits up to its limit and leaves the rest as it was recorded; the next
//! launch, or another process, continues it. A process that is killed loses no more than the steps it was in.
//!
//! # What it tells
//!
//! Diagnostics go to `tracing`: waits of a body that are not durable, workflows set aside, a store that does not answer or takes
//! no writes, leases lost. Install a subscriber, such as that of `tracing-subscriber`, to see them.
//!
//! # A store of your own
//!
//! The engine takes whatever implements [`Store`], by value or in an `Arc`. The contract is the crate `mainstay-store`, which a
//! backend depends on, with `async-trait`; `docs/writing-a-backend.md` is its guide, `examples/custom-store` a small one, and
//! `mainstay-conformance` the suite that tells whether one is right.
//!
//! ```
//! # use mainstay::prelude::*;
//! # use std::{sync::Arc, time::Duration};
//! # fn my_store() -> Arc<dyn mainstay::Store> { mainstay::memory() }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let engine = Engine::builder(my_store()).app("shop").launch().await?;
//! assert_eq!(engine.stats().running, 0);
//! # engine.shutdown(Duration::from_secs(5)).await
//! # }
//! ```
//!
//! # Features
//!
//! `macros`: `#[workflow]` and `#[step]`; without them, implement [`Workflow`] or register a closure by
//! [`Builder::function`]. `sqlite`: [`open`] with `sqlite:FILE`. `postgres`: [`open`] with `postgres://..`, and the module
//! `postgres`. All are on unless switched off.

mod open;
/// PostgreSQL, the store of production: how a database is opened, beyond what its address says.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use mainstay::postgres::{self, Config};
///
/// let config = Config::new("postgres://app:secret@127.0.0.1:1/shop?connect_timeout=2").schema("workflows").pool(20);
/// let error = postgres::open(config).await.expect_err("nobody listens there");
/// assert!(!error.message().contains("secret"));
/// # }
/// ```
#[cfg(feature = "postgres")]
pub mod postgres;

/// What a store's `collect` takes: nothing is removed by itself, so one process does it from time to time.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mainstay::Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
/// let a_month = Duration::from_secs(30 * 24 * 3600);
/// while engine.store().collect(mainstay::Collect::new("shop", a_month)).await?.more {}
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[doc(inline)]
pub use mainstay_runtime::Collect;
/// What [`Engine::executor_id`] gives: the name of the process, `~`, and a part that is new at every launch.
///
/// ```
/// # use mainstay::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").executor("web-1").launch().await?;
/// let executor: mainstay::ExecutorId = engine.executor_id();
/// assert!(executor.as_str().starts_with("web-1~"));
/// # engine.shutdown(std::time::Duration::from_secs(5)).await
/// # }
/// ```
#[doc(inline)]
pub use mainstay_runtime::ExecutorId;
/// What [`Builder::settings`] changes: intervals, lease, batch.
///
/// ```
/// use mainstay::{Engine, Settings};
/// use std::time::Duration;
///
/// fn patient(settings: Settings) -> Settings {
///     settings.tick(Duration::from_secs(5)).beat(Duration::from_secs(5)).ttl(Duration::from_secs(60))
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mainstay::Result<()> {
/// let engine = Engine::builder(mainstay::memory()).app("shop").settings(patient).launch().await?;
/// assert_eq!(engine.stats().running, 0);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[doc(inline)]
pub use mainstay_runtime::Settings;
/// What [`Engine::stats`] gives.
///
/// ```
/// # use mainstay::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
/// let stats: mainstay::Stats = engine.stats();
/// assert_eq!((stats.running, stats.launched, stats.taken_over), (0, 0, 0));
/// # engine.shutdown(std::time::Duration::from_secs(5)).await
/// # }
/// ```
#[doc(inline)]
pub use mainstay_runtime::Stats;
/// What [`Handle::status`] gives.
///
/// ```
/// use mainstay::Status;
/// assert!(Status::Cancelled.is_ended() && !Status::Pending.is_ended());
/// assert_eq!(Status::Enqueued.to_string(), "ENQUEUED");
/// ```
#[doc(inline)]
pub use mainstay_runtime::Status;
/// What [`open`] and [`memory`] give, and a backend of your own implements.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mainstay::Result<()> {
/// let store: std::sync::Arc<dyn mainstay::Store> = mainstay::memory();
/// assert!(store.queue_list(&"shop".into()).await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use mainstay_runtime::Store;
/// What [`Start::id`] takes and [`Handle::id`] gives.
///
/// ```
/// use mainstay::WorkflowId;
/// assert_eq!(WorkflowId::from("order-42").as_str(), "order-42");
/// ```
#[doc(inline)]
pub use mainstay_runtime::WorkflowId;
/// What [`Handle::row`] gives.
///
/// ```
/// # use mainstay::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").function("nap", |_: Ctx| async { Ok(()) }).launch().await?;
/// # let nap = engine.start(Invocation::named("nap")).id("nap-1").await?;
/// let row: mainstay::WorkflowRow = nap.row().await?;
/// assert_eq!((row.id.as_str(), row.name.as_str()), ("nap-1", "nap"));
/// # engine.shutdown(std::time::Duration::from_secs(5)).await
/// # }
/// ```
#[doc(inline)]
pub use mainstay_runtime::WorkflowRow;
#[doc(inline)]
pub use mainstay_runtime::{
    Args, Attempt, Builder, Call, CallBody, Codec, CodecPart, Ctx, Engine, Error, ErrorKind, Finished, Handle,
    IntoRegistration, IntoStore, Invocation, Named, Queue, Race, Registration, Result, Run, Sleep, Spawned, Start,
    StepBody, StepCall, Target, Value, Wait, Workflow, WorkflowClosure,
};
pub use open::{memory, open};

#[cfg(feature = "macros")]
#[doc(inline)]
pub use mainstay_macros::{step, workflow};

/// What most programs need: `use mainstay::prelude::*`.
///
/// ```
/// use mainstay::prelude::*;
/// fn total(prices: &[u64]) -> Result<u64> {
///     prices.iter().copied().reduce(|a, b| a + b).ok_or_else(|| Error::new("no prices"))
/// }
/// assert_eq!(total(&[2, 3]).unwrap(), 5);
/// ```
pub mod prelude {
    pub use crate::{
        Attempt, Call, Ctx, Engine, Error, ErrorKind, Handle, Invocation, Queue, Registration, Result, Status, Workflow,
    };

    #[cfg(feature = "macros")]
    pub use crate::{step, workflow};
}

/// The program of the README is run like every other example.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
