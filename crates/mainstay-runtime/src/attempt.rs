//! One try of a step, as its body sees it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mainstay_env::BoxFuture;
use tokio::sync::watch;

use crate::error::{Error, Result};

/// One attempt of a step: its number, a key for others, and whether it was given up.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// #[step(retries = 2, backoff = "1ms")]
/// async fn charge(_ctx: &Ctx, attempt: Attempt) -> Result<String> {
///     if attempt.number == 1 {
///         return Err(Error::new("line busy"));
///     }
///     Ok(format!("paid with key {} by attempt {} of {}", attempt.key, attempt.number, attempt.most))
/// }
/// # #[workflow]
/// # async fn pay(ctx: Ctx) -> Result<String> {
/// #     charge(&ctx).await
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(pay).launch().await?;
/// let paid = engine.start(pay()).id("order-7").await?.result().await?;
/// assert_eq!(paid, "paid with key order-7-0 by attempt 2 of 3");
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// Counted from 1.
    pub number: u32,
    /// Most attempts that the step has.
    pub most: u32,
    /// The same for every attempt of this step of this workflow and for no other: what payment services and the like
    /// want, so that a repeated request is done once.
    pub key: String,
    abandoned: watch::Receiver<bool>,
}

impl Attempt {
    pub(crate) fn new(number: u32, most: u32, key: String) -> (Self, Watched) {
        let (sender, abandoned) = watch::channel(false);
        (Self { number, most, key, abandoned }, Watched { sender, done: false })
    }

    /// Whether nobody waits for this attempt any more: its time was over, or its workflow was stopped.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[step(timeout = "10ms")]
    /// async fn count(_ctx: &Ctx, attempt: Attempt) -> Result<u64> {
    ///     let counted = tokio::task::spawn_blocking(move || {
    ///         let mut rows = 0;
    ///         while !attempt.is_abandoned() {
    ///             rows += 1;
    ///         }
    ///         rows
    ///     });
    ///     Ok(counted.await?)
    /// }
    /// # #[workflow]
    /// # async fn work(ctx: Ctx) -> Result<u64> {
    /// #     count(&ctx).await
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(work).launch().await?;
    /// let error = engine.start(work()).await?.result().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Timeout);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        *self.abandoned.borrow()
    }

    /// Ends when nobody waits for this attempt any more; never for one that comes to an end.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # use tokio::sync::Notify;
    /// static GIVEN_UP: Notify = Notify::const_new();
    ///
    /// #[step(timeout = "10ms")]
    /// async fn upload(_ctx: &Ctx, attempt: Attempt) -> Result<()> {
    ///     tokio::spawn(async move {
    ///         attempt.abandoned().await;
    ///         GIVEN_UP.notify_one();
    ///     });
    ///     std::future::pending().await
    /// }
    /// # #[workflow]
    /// # async fn work(ctx: Ctx) -> Result<()> {
    /// #     upload(&ctx).await
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(work).launch().await?;
    /// let handle = engine.start(work()).await?;
    /// GIVEN_UP.notified().await;
    /// assert_eq!(handle.result().await.unwrap_err().kind(), ErrorKind::Timeout);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub async fn abandoned(&self) {
        let mut abandoned = self.abandoned.clone();
        // An error means that the attempt ended without being abandoned.
        if abandoned.wait_for(|abandoned| *abandoned).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Tells an attempt when it is dropped before its end.
pub(crate) struct Watched {
    sender: watch::Sender<bool>,
    done: bool,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.done {
            // An error means that the body kept no attempt.
            let _ = self.sender.send(true);
        }
    }
}

/// The body of an attempt while it runs: whenever it is dropped before its end, the attempt is told first.
pub(crate) struct Watching<F> {
    // Fields are dropped in their order.
    watched: Watched,
    body: F,
}

impl<F> Watching<F> {
    pub(crate) fn new(watched: Watched, body: F) -> Self {
        Self { watched, body }
    }
}

impl<F: Future + Unpin> Future for Watching<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = Pin::new(&mut self.body).poll(cx);
        self.watched.done |= ended.is_ready();
        ended
    }
}

/// What makes the future of an attempt.
pub(crate) type Body<'a, T> = Box<dyn FnMut(Attempt) -> BoxFuture<'a, Result<T>> + Send + 'a>;

/// The body of `ctx.step`: a function without arguments, or of an [`Attempt`], that returns [`Result`].
///
/// `M` tells the two apart and is always inferred.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// #[workflow]
/// async fn roll(ctx: Ctx) -> Result<Vec<u32>> {
///     let plain = ctx.step("plain", || async { Ok(4) }).await?;
///     let numbered = ctx.step("numbered", |attempt: Attempt| async move { Ok(attempt.number) }).await?;
///     Ok(vec![plain, numbered])
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(roll).launch().await?;
/// assert_eq!(engine.start(roll()).await?.result().await?, [4, 1]);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub trait StepBody<'a, T, M>: Send + 'a {
    /// Begins one attempt.
    #[doc(hidden)]
    fn attempt(&mut self, attempt: Attempt) -> BoxFuture<'a, Result<T>>;
}

impl<'a, T, F, Fut> StepBody<'a, T, fn()> for F
where
    F: FnMut() -> Fut + Send + 'a,
    Fut: Future<Output = Result<T>> + Send + 'a,
{
    fn attempt(&mut self, _: Attempt) -> BoxFuture<'a, Result<T>> {
        Box::pin(self())
    }
}

impl<'a, T, F, Fut> StepBody<'a, T, fn(Attempt)> for F
where
    F: FnMut(Attempt) -> Fut + Send + 'a,
    Fut: Future<Output = Result<T>> + Send + 'a,
{
    fn attempt(&mut self, attempt: Attempt) -> BoxFuture<'a, Result<T>> {
        Box::pin(self(attempt))
    }
}

/// The body of `ctx.call`: as [`StepBody`], with an error type of its own.
///
/// `M` is always inferred.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// #[workflow]
/// async fn sum(ctx: Ctx) -> Result<u32> {
///     let plain = ctx.call("plain", || async { "7".parse::<u32>() }).await?;
///     let numbered = ctx.call("numbered", |attempt: Attempt| async move { u32::try_from(attempt.number) }).await?;
///     Ok(plain + numbered)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(sum).launch().await?;
/// assert_eq!(engine.start(sum()).await?.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub trait CallBody<'a, T, M>: Send + 'a {
    /// Begins one attempt.
    #[doc(hidden)]
    fn attempt(&mut self, attempt: Attempt) -> BoxFuture<'a, Result<T>>;
}

impl<'a, T, E, F, Fut> CallBody<'a, T, fn() -> E> for F
where
    F: FnMut() -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
    E: Into<Error> + Send + 'a,
{
    fn attempt(&mut self, _: Attempt) -> BoxFuture<'a, Result<T>> {
        let attempt = self();
        Box::pin(async move { attempt.await.map_err(Into::into) })
    }
}

impl<'a, T, E, F, Fut> CallBody<'a, T, fn(Attempt) -> E> for F
where
    F: FnMut(Attempt) -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
    E: Into<Error> + Send + 'a,
{
    fn attempt(&mut self, attempt: Attempt) -> BoxFuture<'a, Result<T>> {
        let attempt = self(attempt);
        Box::pin(async move { attempt.await.map_err(Into::into) })
    }
}
