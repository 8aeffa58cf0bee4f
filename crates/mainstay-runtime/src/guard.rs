//! The poll-scoped guard: which execution is being polled on this thread, and whether one of its steps is.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use mainstay_store::StepName;

use crate::ctx::Ctx;
use crate::error::{Error, Result};

thread_local! {
    static CURRENT: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// What is being polled.
#[derive(Clone)]
pub(crate) struct Scope {
    /// The context of the body, or of the branch.
    pub(crate) ctx: Ctx,
    /// The step whose body it is, where it is one.
    pub(crate) step: Option<Inside>,
}

/// The attempt of a step that is being polled.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) name: StepName,
    /// Key of the step, the same in every attempt.
    pub(crate) key: Arc<str>,
    /// Steps made in this attempt so far.
    made: Arc<AtomicU32>,
}

impl Inside {
    /// A step at its first attempt.
    pub(crate) fn new(name: StepName, key: impl Into<Arc<str>>) -> Self {
        Self { name, key: key.into(), made: Arc::default() }
    }

    /// The same step at its next attempt: the steps in it count from the first again.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.name.clone(), self.key.clone())
    }

    /// A step that is made in this attempt. Its key derives from the order of making, so that every attempt gives the same.
    pub(crate) fn nested(&self, name: StepName) -> Self {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Self::new(name, format!("{}.{number}", self.key))
    }
}

/// What this thread polls now; nothing outside bodies.
pub(crate) fn current() -> Option<Scope> {
    CURRENT.with_borrow(Clone::clone)
}

/// Refuses a call that was made in a step, or outside all bodies, and is awaited by a body: nothing would record it.
pub(crate) fn no_body_awaits(call: &str) -> Result<()> {
    let by_a_body = CURRENT.with_borrow(|scope| scope.as_ref().is_some_and(|scope| scope.step.is_none()));
    if by_a_body {
        return Err(Error::refused(format!(
            "{call} was made inside a step or outside of bodies and awaited by a body"
        )));
    }
    Ok(())
}

/// Runs `work` as code of `scope`, and whatever was polled before goes on afterwards, a panic included.
pub(crate) fn within<R>(scope: Scope, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<Scope>);
    impl Drop for Restore {
        fn drop(&mut self) {
            // The replaced scope is dropped outside the borrow: it may be the last holder of an execution.
            let replaced = CURRENT.replace(self.0.take());
            drop(replaced);
        }
    }
    let _restore = Restore(CURRENT.replace(Some(scope)));
    work()
}

/// A future that is polled as code of a scope.
pub(crate) struct Guarded<F> {
    scope: Scope,
    future: Pin<Box<F>>,
}

impl<F: Future> Guarded<F> {
    pub(crate) fn new(scope: Scope, future: F) -> Self {
        Self { scope, future: Box::pin(future) }
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let exec = &this.scope.ctx.exec;
        let began = exec.shared.env.monotonic();
        let polled = within(this.scope.clone(), || this.future.as_mut().poll(cx));
        exec.polled(began, this.scope.step.as_ref().map(|step| &step.name));
        polled
    }
}
