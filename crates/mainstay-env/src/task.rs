//! One task: the handle that others await, and the wrapper that runs its future, catches its panic and reports its end.

use crate::clock::BoxFuture;
use crate::sync::lock;
use crate::tasks::Membership;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;

/// Why a task gave no value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskError {
    /// It panicked, with this text.
    Panicked(String),
    /// It was aborted, dropped with its runtime or its process, or spawned when its group was closed.
    Aborted,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Panicked(text) => write!(f, "task panicked: {text}"),
            TaskError::Aborted => f.write_str("task aborted"),
        }
    }
}

impl std::error::Error for TaskError {}

/// A handle of a spawned task or thread: await it for the result, which comes after the task's future has been dropped.
///
/// Dropping the handle neither stops the task nor frees it: its [`Tasks`](crate::Tasks) still owns it. Awaiting it again
/// after it gave its result answers `Aborted`.
pub struct Task<T> {
    control: Arc<Control>,
    result: Option<oneshot::Receiver<Result<T, TaskError>>>,
}

impl<T> Task<T> {
    pub(crate) fn new(control: Arc<Control>, result: oneshot::Receiver<Result<T, TaskError>>) -> Task<T> {
        Task { control, result: Some(result) }
    }

    /// The task's name, led by those of its groups: `engine/supervisor`.
    pub fn name(&self) -> &str {
        &self.control.name
    }

    /// Asks for the task to be dropped at its next await; a thread cannot be aborted and goes on.
    pub fn abort(&self) {
        self.control.abort();
    }

    /// True when the task has ended, in whatever way.
    pub fn is_finished(&self) -> bool {
        self.control.is_finished()
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, TaskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(receiver) = this.result.as_mut() else { return Poll::Ready(Err(TaskError::Aborted)) };
        let Poll::Ready(received) = Pin::new(receiver).poll(cx) else { return Poll::Pending };
        this.result = None;
        Poll::Ready(received.unwrap_or(Err(TaskError::Aborted)))
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("name", &self.name()).field("finished", &self.is_finished()).finish()
    }
}

/// What a task shares with its handle and its groups.
pub(crate) struct Control {
    pub(crate) name: Arc<str>,
    pub(crate) is_thread: bool,
    state: Mutex<ControlState>,
}

#[derive(Default)]
struct ControlState {
    aborted: bool,
    finished: bool,
    waker: Option<Waker>,
}

impl Control {
    pub(crate) fn new(name: Arc<str>, is_thread: bool) -> Arc<Control> {
        Arc::new(Control { name, is_thread, state: Mutex::default() })
    }

    /// Marks the task and wakes it, so that its next poll drops it.
    pub(crate) fn abort(&self) {
        let waker = {
            let mut state = lock(&self.state);
            state.aborted = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        lock(&self.state).finished
    }

    pub(crate) fn finish(&self) {
        let waker = {
            let mut state = lock(&self.state);
            state.finished = true;
            state.waker.take()
        };
        drop(waker);
    }

    /// Leaves the waker for an abort to come; true when the abort has come already.
    fn is_aborted(&self, waker: &Waker) -> bool {
        let fresh = waker.clone();
        let (aborted, _replaced) = {
            let mut state = lock(&self.state);
            (state.aborted, state.waker.replace(fresh))
        };
        aborted
    }
}

/// The future that an executor runs for a task.
pub(crate) struct Running<T> {
    future: Option<BoxFuture<'static, T>>,
    report: Option<Report<T>>,
}

/// Where a task's end is told: its groups, the log, and whoever holds the handle.
pub(crate) struct Report<T> {
    pub(crate) membership: Membership,
    pub(crate) result: oneshot::Sender<Result<T, TaskError>>,
}

impl<T> Report<T> {
    pub(crate) fn control(&self) -> &Arc<Control> {
        self.membership.control()
    }

    /// Leaves the groups first, so that whoever gets the result no longer finds the task among the living.
    pub(crate) fn send(self, result: Result<T, TaskError>) {
        if let Err(TaskError::Panicked(text)) = &result {
            tracing::error!(task = %self.control().name, panic = %text, "task panicked");
            self.membership.panicked(text);
        }
        drop(self.membership);
        // Nobody has to be interested.
        let _ = self.result.send(result);
    }
}

impl<T> Running<T> {
    pub(crate) fn new(future: BoxFuture<'static, T>, report: Report<T>) -> Running<T> {
        Running { future: Some(future), report: Some(report) }
    }

    /// Drops the future, then reports. A panic while dropping is a panic of the task.
    fn finish(&mut self, result: Result<T, TaskError>) {
        let future = self.future.take();
        let result = match catch_unwind(AssertUnwindSafe(|| drop(future))) {
            Ok(()) => result,
            Err(panic) => Err(TaskError::Panicked(panic_text(&*panic))),
        };
        if let Some(report) = self.report.take() {
            report.send(result);
        }
    }
}

impl<T> Future for Running<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let (Some(future), Some(report)) = (&mut this.future, &this.report) else { return Poll::Ready(()) };
        if report.control().is_aborted(cx.waker()) {
            this.finish(Err(TaskError::Aborted));
            return Poll::Ready(());
        }
        let result = match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(panic) => Err(TaskError::Panicked(panic_text(&*panic))),
        };
        this.finish(result);
        Poll::Ready(())
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.finish(Err(TaskError::Aborted));
    }
}

/// The text a panic was raised with.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is not text".to_owned()
    }
}
