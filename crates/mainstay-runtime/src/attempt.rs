//! One try of a step, as its body sees it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mainstay_env::BoxFuture;
use tokio::sync::watch;

use crate::error::{Error, Result};

/// One attempt of a step: its number, a key for others, and whether it was given up.
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
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        *self.abandoned.borrow()
    }

    /// Ends when nobody waits for this attempt any more; never for one that comes to an end.
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
