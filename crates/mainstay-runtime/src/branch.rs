//! Branches: parts of a body that go on beside it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use mainstay_env::BoxFuture;
use tokio::sync::oneshot;

use crate::ctx::{Branch, Ctx, InStep};
use crate::error::{Error, Result};
use crate::execution::Execution;
use crate::guard::{self, Guarded, Scope};

/// Positions of a branch, unless set.
const POSITIONS: i32 = 1024;

/// A branch of a body; awaiting it gives its result.
///
/// It goes on when this is dropped, and ends with the body: one that is not awaited may be cut off.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// #[workflow]
/// async fn order(ctx: Ctx) -> Result<String> {
///     let packing = ctx.spawn(|ctx| async move { ctx.step("pack", || async { Ok("packed".to_owned()) }).await });
///     let paid = ctx.step("charge", || async { Ok("paid".to_owned()) }).await?;
///     Ok(format!("{paid} and {}", packing.await?))
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(order).launch().await?;
/// assert_eq!(engine.start(order()).await?.result().await?, "paid and packed");
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[must_use = "a branch ends with the body: await it"]
pub struct Spawned<T> {
    receiver: Option<oneshot::Receiver<Result<T>>>,
    refused: Option<Error>,
    exec: Arc<Execution>,
    block: Option<Block>,
    /// The branch itself while it lacks positions.
    held: Option<BoxFuture<'static, ()>>,
    /// Set when the branch is refused after it was added: it is dropped at its next poll.
    dropped: Arc<AtomicBool>,
}

/// The positions that a branch has taken from its parent: none while the usual number did not fit.
struct Block {
    parent: Arc<Branch>,
    own: Arc<Branch>,
    from: i32,
    to: i32,
}

impl Ctx {
    /// Starts a part of the body that goes on beside it, with a context and positions of its own.
    ///
    /// The branch takes a block of 1,024 positions when it is made, so that its calls replay in whatever order the branches
    /// were polled; [`Spawned::positions`] sets another size. It runs on the task of the body, and is dropped with it.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn total(ctx: Ctx, numbers: Vec<u64>) -> Result<u64> {
    ///     let square = |number: u64| {
    ///         ctx.spawn(move |ctx| async move { ctx.step("square", || async { Ok(number * number) }).await })
    ///     };
    ///     let branches: Vec<_> = numbers.into_iter().map(square).collect();
    ///     let mut total = 0;
    ///     for branch in branches {
    ///         total += branch.await?;
    ///     }
    ///     Ok(total)
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(total).launch().await?;
    /// assert_eq!(engine.start(total(vec![1, 2, 3])).await?.result().await?, 14);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn spawn<T, F, Fut>(&self, body: F) -> Spawned<T>
    where
        F: FnOnce(Ctx) -> Fut,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let exec = self.exec.clone();
        if let Err(error) = self.place("ctx.spawn", InStep::Refused) {
            return Spawned {
                receiver: None,
                refused: Some(error),
                exec,
                block: None,
                held: None,
                dropped: Arc::default(),
            };
        }
        let (from, to, refused) = match self.branch.take(POSITIONS) {
            Ok(from) => (from, from + POSITIONS, None),
            Err(error) => (self.branch.next(), self.branch.next(), Some(error)),
        };
        let own = Branch::new(from, to);
        let ctx = Ctx { exec: exec.clone(), branch: own.clone() };
        let scope = Scope { ctx: ctx.clone(), step: None };
        let (sender, receiver) = oneshot::channel();
        let body = Guarded::new(scope.clone(), guard::within(scope, || body(ctx)));
        let dropped = Arc::new(AtomicBool::new(false));
        let gone = dropped.clone();
        let branch: BoxFuture<'static, ()> = Box::pin(async move {
            let mut body = body;
            let polled = poll_fn(|cx| match gone.load(Ordering::Relaxed) {
                true => Poll::Ready(None),
                false => Pin::new(&mut body).poll(cx).map(Some),
            });
            if let Some(result) = polled.await {
                // An error means that nobody awaits the branch.
                let _ = sender.send(result);
            }
        });
        let held = match refused {
            Some(_) => Some(branch),
            None => {
                exec.add_branch(branch);
                None
            }
        };
        let block = Some(Block { parent: self.branch.clone(), own, from, to });
        Spawned { receiver: Some(receiver), refused, exec, block, held, dropped }
    }
}

impl<T> Spawned<T> {
    /// Sets how many durable calls the branch may make, its own branches' included. To be said at once, before the body
    /// makes its next call.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn long(ctx: Ctx) -> Result<String> {
    ///     let branch = ctx.spawn(|ctx| async move {
    ///         ctx.step("first", || async { Ok(1) }).await?;
    ///         ctx.step("second", || async { Ok(2) }).await
    ///     });
    ///     let error = branch.positions(1).await.unwrap_err();
    ///     Ok(error.name().to_owned())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(long).launch().await?;
    /// assert_eq!(engine.start(long()).await?.result().await?, "Refused");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn positions(mut self, positions: u32) -> Self {
        let Some(Block { parent, own, from, to }) = &self.block else { return self };
        let wanted = i32::try_from(positions).ok().and_then(|count| from.checked_add(count));
        match wanted {
            Some(wanted) if wanted >= own.next() && parent.resize(*to, wanted) => {
                own.set_end(wanted);
                if let Some(branch) = self.held.take() {
                    self.refused = None;
                    self.exec.add_branch(branch);
                }
            }
            _ => {
                let text = "positions of a branch: say it before the next call, not more than are left, and not fewer than \
                            it has taken when it was made";
                // It would go on beside a body that was told that it does not.
                self.dropped.store(true, Ordering::Relaxed);
                self.refused = Some(Error::refused(text.to_owned()));
            }
        }
        self
    }
}

impl<T> Future for Spawned<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(error) = self.refused.take() {
            return Poll::Ready(Err(error));
        }
        let Some(receiver) = self.receiver.as_mut() else {
            return Poll::Ready(Err(Error::refused("a branch was awaited again after its result".to_owned())));
        };
        match Pin::new(receiver).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => {
                self.receiver = None;
                Poll::Ready(result.unwrap_or_else(|_| Err(Error::bug("a branch ended without a result".to_owned()))))
            }
        }
    }
}

impl<T> Unpin for Spawned<T> {}

impl<T> fmt::Debug for Spawned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned").field("workflow", &self.exec.id).finish_non_exhaustive()
    }
}
