//! The context: what a body holds to make durable calls.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use mainstay_store::{Position, WorkflowId};

use crate::error::{Error, Result};
use crate::execution::Execution;
use crate::guard;

/// The context of one execution, given to its body. A cheap clone.
///
/// Everything durable goes through it. A call takes its position when it is made, in program order, and is replayed from
/// there; so a body must make the same calls in the same order whenever it runs from the top.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// #[workflow]
/// async fn checkout(ctx: Ctx, cents: u64) -> Result<String> {
///     let paid = ctx.step("charge", move || async move { Ok(cents) }).await?;
///     ctx.sleep(Duration::from_millis(5)).await?;
///     ctx.step("mail", || async { Ok(format!("a receipt for {paid}")) }).await
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(checkout).launch().await?;
/// assert_eq!(engine.start(checkout(995)).await?.result().await?, "a receipt for 995");
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[derive(Clone)]
pub struct Ctx {
    pub(crate) exec: Arc<Execution>,
    pub(crate) branch: Arc<Branch>,
}

/// The positions of the body, or of one branch of it.
pub(crate) struct Branch {
    next: AtomicI32,
    end: AtomicI32,
}

impl Branch {
    pub(crate) fn new(from: i32, end: i32) -> Arc<Self> {
        Arc::new(Self { next: AtomicI32::new(from), end: AtomicI32::new(end) })
    }

    /// Takes `count` positions and gives the first.
    pub(crate) fn take(&self, count: i32) -> Result<i32> {
        let end = self.end.load(Ordering::Relaxed);
        let fits = |next: i32| next.checked_add(count).filter(|after| *after <= end);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|next| {
            Error::refused(format!("no position is left after {next}: give the branch more with `.positions(n)`"))
        })
    }

    /// The next position that is free.
    pub(crate) fn next(&self) -> i32 {
        self.next.load(Ordering::Relaxed)
    }

    /// Makes the block that ends at `from` the end of this branch's taken positions longer or shorter, unless another was
    /// taken since.
    pub(crate) fn resize(&self, taken_to: i32, wanted: i32) -> bool {
        wanted <= self.end.load(Ordering::Relaxed)
            && self.next.compare_exchange(taken_to, wanted, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn set_end(&self, end: i32) {
        self.end.store(end, Ordering::Relaxed);
    }
}

/// Where a call was made, which decides what it does.
pub(crate) enum Made {
    /// By the body or a branch: recorded at this position.
    At(Ctx, Position),
    /// In a step of the same execution, or on a handle outside all bodies: not recorded.
    Unrecorded,
    /// Where it may not be made.
    Refused(Error),
}

/// What a call does inside a step of its own execution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InStep {
    /// It runs as a part of the step.
    Runs,
    /// It is refused.
    Refused,
}

impl Ctx {
    /// The context of a body at its start.
    pub(crate) fn of(exec: Arc<Execution>) -> Self {
        Self { exec, branch: Branch::new(0, i32::MAX) }
    }

    /// Id of the workflow.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn who(ctx: Ctx) -> Result<String> {
    ///     Ok(ctx.workflow_id().to_string())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(who).launch().await?;
    /// assert_eq!(engine.start(who()).id("order-42").await?.result().await?, "order-42");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn workflow_id(&self) -> &WorkflowId {
        &self.exec.id
    }

    /// Name of the workflow's function.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn what(ctx: Ctx) -> Result<String> {
    ///     Ok(ctx.workflow_name().to_owned())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(what).launch().await?;
    /// assert_eq!(engine.start(what()).await?.result().await?, "what");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn workflow_name(&self) -> &str {
        self.exec.name.as_str()
    }

    /// How many executions of this workflow have begun since it was submitted or resumed, this one included.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn often(ctx: Ctx) -> Result<u32> {
    ///     Ok(ctx.attempt())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(often).launch().await?;
    /// assert_eq!(engine.start(often()).await?.result().await?, 1);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.exec.attempts
    }

    /// Whether the next calls are answered from what an earlier execution recorded. For logs and progress alone: what a body
    /// does must not depend on it.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn loud(ctx: Ctx) -> Result<bool> {
    ///     Ok(ctx.is_replaying())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(loud).launch().await?;
    /// assert!(!engine.start(loud()).await?.result().await?, "a first execution replays nothing");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.exec.is_replaying()
    }

    /// Judges where a call that is made now stands, and takes its positions.
    pub(crate) fn make(&self, call: &str, positions: i32, in_step: InStep) -> Made {
        match self.place(call, in_step) {
            Ok(true) => Made::Unrecorded,
            Ok(false) => match self.branch.take(positions) {
                Ok(position) => Made::At(self.clone(), Position(position)),
                Err(error) => Made::Refused(error),
            },
            Err(error) => Made::Refused(error),
        }
    }

    /// Whether code that runs now is inside a step of this execution; an error where it is no code of this context.
    pub(crate) fn place(&self, call: &str, in_step: InStep) -> Result<bool> {
        let Some(scope) = guard::current() else {
            return Err(Error::refused(format!(
                "{call} was called outside the body of workflow {}: a task or thread that it spawned cannot be replayed; \
                 use ctx.spawn",
                self.exec.id
            )));
        };
        if scope.ctx.exec.serial != self.exec.serial {
            return Err(Error::refused(format!(
                "{call} was called with the context of workflow {} in the body of workflow {}",
                self.exec.id, scope.ctx.exec.id
            )));
        }
        if let Some(step) = &scope.step {
            return match in_step {
                InStep::Runs => Ok(true),
                InStep::Refused => Err(Error::refused(format!(
                    "{call} was called inside the step {:?}: call it in the body",
                    step.name
                ))),
            };
        }
        if !Arc::ptr_eq(&scope.ctx.branch, &self.branch) {
            return Err(Error::refused(format!(
                "{call} was called with a context of another branch: use the one that ctx.spawn gives to its body"
            )));
        }
        Ok(false)
    }
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("workflow", &self.exec.id).finish_non_exhaustive()
    }
}
