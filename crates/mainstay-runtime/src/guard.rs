//! The poll-scoped guard: which execution is being polled on this thread, and whether one of its steps is.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mainstay_store::StepName;

use crate::ctx::Ctx;

thread_local! {
    static CURRENT: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// What is being polled.
#[derive(Clone)]
pub(crate) struct Scope {
    /// The context of the body, or of the branch.
    pub(crate) ctx: Ctx,
    /// The step whose body it is, where it is one.
    pub(crate) step: Option<StepName>,
}

/// What this thread polls now; nothing outside bodies.
pub(crate) fn current() -> Option<Scope> {
    CURRENT.with_borrow(Clone::clone)
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
        within(this.scope.clone(), || this.future.as_mut().poll(cx))
    }
}
