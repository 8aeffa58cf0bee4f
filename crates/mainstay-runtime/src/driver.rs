//! The driver of one execution: it polls the body and its branches, and writes how they end.

use std::any::Any;
use std::future::Future;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, Stream};
use mainstay_env::BoxFuture;
use mainstay_queue::Slot;
use mainstay_store::{CodecName, Input, Outcome, Payload, Position, ReadSteps, Standing, Steps, StoreError, Unit};

use crate::codec::CodecPart;
use crate::ctx::Ctx;
use crate::error::{Error, Result};
use crate::execution::{Execution, Stop, Wrote, unacceptable};
use crate::guard::{self, Scope};
use crate::hub;
use crate::registry::Erased;

/// All that a driver needs besides the execution.
pub(crate) struct Start {
    pub(crate) body: Erased,
    pub(crate) input: Input,
    pub(crate) codec: Option<CodecName>,
    /// Recorded steps that did not fit into the claim's reply begin here.
    pub(crate) more: Option<Position>,
    pub(crate) slot: Slot,
}

/// How a body ended.
enum End {
    Returned(Result<Payload>),
    Panicked(String),
    Stopped(Stop),
}

/// Keeps an execution in the table of running ones until it ends, in whatever way.
pub(crate) struct Entry {
    exec: Arc<Execution>,
    polled: bool,
}

impl Entry {
    pub(crate) fn new(exec: Arc<Execution>) -> Self {
        Self { exec, polled: false }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let shared = &self.exec.shared;
        shared.leave(&self.exec);
        if !self.polled {
            shared.bodies_lost(&self.exec.id);
        }
    }
}

/// Runs an execution to its end.
pub(crate) async fn drive(mut entry: Entry, start: Start) {
    entry.polled = true;
    let exec = entry.exec.clone();
    let Start { body, input, codec, more, slot } = start;
    // Asked once the table names this execution: whoever takes the row from it from now on finds it there.
    if !slot.is_current() {
        return;
    }
    let end = match page_in(&exec, input, more).await {
        Ok(input) => {
            let ctx = Ctx::of(exec.clone());
            let scope = Scope { ctx: ctx.clone(), step: None };
            let future = guard::within(scope.clone(), || body(ctx, (input, codec)));
            Drive {
                exec: exec.clone(),
                scope,
                body: future,
                branches: FuturesUnordered::new(),
                warned: false,
                paused: false,
            }
            .run(&slot)
            .await
        }
        Err(stop) => End::Stopped(stop),
    };
    slot.resume();
    finish(&exec, end).await;
    // The place is free once the outcome stands and the table no longer names the execution.
    drop(entry);
    drop(slot);
}

/// Reads what did not fit into the claim's reply, before the first step.
async fn page_in(exec: &Execution, input: Input, more: Option<Position>) -> Result<Option<Payload>, Stop> {
    let mut next = more;
    while let Some(from) = next {
        let page = own(exec, || exec.shared.store.workflow_steps(ReadSteps::new(exec.id.clone()).from(from))).await?;
        let rows = match page {
            Steps::Complete(rows) => {
                next = None;
                rows
            }
            Steps::Partial { first, next: rest } => {
                next = Some(rest);
                first
            }
        };
        exec.paged_in(rows);
    }
    match input {
        Input::Missing => Ok(None),
        Input::Inline(payload) => Ok(Some(payload)),
        Input::Deferred { .. } => own(exec, || exec.shared.store.workflow_input(&exec.id)).await,
    }
}

/// Reads what is recorded of the execution itself; what cannot be read sets it aside, as the claim does with its first page.
async fn own<T, F: Future<Output = Result<T, StoreError>>>(
    exec: &Execution,
    read: impl FnMut() -> F,
) -> Result<T, Stop> {
    let unreadable = |error| Stop::Parked(Error::mismatch(format!("what is recorded cannot be read: {error}")));
    patiently(exec, read).await?.map_err(unreadable)
}

/// Reads until the store answers, be it that what is asked for cannot be read; a row that is gone, or an execution that is
/// stopped, ends it.
async fn patiently<T, F: Future<Output = Result<T, StoreError>>>(
    exec: &Execution,
    mut read: impl FnMut() -> F,
) -> Result<Result<T, StoreError>, Stop> {
    let mut wait = std::time::Duration::from_millis(100);
    loop {
        let answer = {
            let mut reading = std::pin::pin!(read());
            poll_fn(|cx| match exec.stopped(cx.waker()) {
                Some(stop) => Poll::Ready(Err(stop)),
                None => reading.as_mut().poll(cx).map(Ok),
            })
            .await?
        };
        match answer {
            Ok(value) => return Ok(Ok(value)),
            Err(error) if hub::is_unreadable(&error) => return Ok(Err(error)),
            Err(error) if error.kind() == mainstay_store::ErrorKind::NotFound => {
                return Err(Stop::Superseded(Standing::Gone));
            }
            Err(error) if exec.shared.is_stopping() => {
                tracing::debug!(workflow = %exec.id, %error, "read given up");
                return Err(Stop::GivenUp);
            }
            Err(error) => tracing::warn!(workflow = %exec.id, %error, "reading what is recorded failed, tried again"),
        }
        exec.shared.env.sleep(wait).await;
        wait = (wait * 2).min(std::time::Duration::from_secs(5));
    }
}

/// As [`patiently`], for a call of the body about another workflow: it does not come back when the execution ends.
pub(crate) async fn read<T, F: Future<Output = Result<T, StoreError>>>(
    exec: &Execution,
    read: impl FnMut() -> F,
) -> Result<T, StoreError> {
    match patiently(exec, read).await {
        Ok(answer) => answer,
        Err(stop) => exec.end(stop).await,
    }
}

struct Drive {
    exec: Arc<Execution>,
    scope: Scope,
    body: BoxFuture<'static, Result<Payload>>,
    branches: FuturesUnordered<BoxFuture<'static, ()>>,
    warned: bool,
    paused: bool,
}

impl Drive {
    async fn run(mut self, slot: &Slot) -> End {
        let exec = self.exec.clone();
        let mut deadline = exec.deadline.map(|at| exec.shared.env.sleep(exec.until(at)));
        let end = poll_fn(|cx| {
            if let Some(stop) = exec.stopped(cx.waker()) {
                return Poll::Ready(End::Stopped(stop));
            }
            if let Poll::Ready(end) = self.poll_all(cx) {
                return Poll::Ready(end);
            }
            if let Some(timer) = deadline.as_mut()
                && timer.as_mut().poll(cx).is_ready()
            {
                return Poll::Ready(End::Stopped(Stop::Deadline));
            }
            self.place(slot);
            Poll::Pending
        })
        .await;
        // What the body holds may run code when it is dropped, which may panic like any other. Branches that it made in its
        // last poll hold the execution, which holds them.
        let dropped = catch_unwind(AssertUnwindSafe(move || {
            let exec = self.exec.clone();
            drop(self);
            drop(exec.close_branches());
        }));
        match (dropped, end) {
            (Err(panic), End::Returned(_)) => End::Panicked(panic_text(&*panic)),
            (_, end) => end,
        }
    }

    /// Polls the body, then its branches; again when a branch was added, or has ended, for which the body may wait.
    fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let scope = self.scope.clone();
            let began = self.exec.shared.env.monotonic();
            let polled = catch_unwind(AssertUnwindSafe(|| guard::within(scope, || self.body.as_mut().poll(cx))));
            self.exec.polled(began, None);
            let end = match polled {
                Err(panic) => Some(End::Panicked(panic_text(&*panic))),
                Ok(Poll::Ready(result)) => Some(End::Returned(result)),
                Ok(Poll::Pending) => None,
            };
            if let Some(end) = end {
                // A call that was given up while its sibling let the body return: what it said must not count.
                let given_up = |stop: &Stop| matches!(stop, Stop::Parked(_) | Stop::GivenUp);
                let stop = self.exec.stopped(cx.waker()).filter(given_up);
                return Poll::Ready(stop.map_or(end, End::Stopped));
            }
            self.branches.extend(self.exec.new_branches());
            let polled = catch_unwind(AssertUnwindSafe(|| {
                let mut ended = false;
                while let Poll::Ready(Some(())) = Pin::new(&mut self.branches).poll_next(cx) {
                    ended = true;
                }
                ended
            }));
            let ended = match polled {
                Err(panic) => return Poll::Ready(End::Panicked(panic_text(&*panic))),
                Ok(ended) => ended,
            };
            // A call that met its end inside the poll stops here, before anything else runs.
            if let Some(stop) = self.exec.stopped(cx.waker()) {
                return Poll::Ready(End::Stopped(stop));
            }
            let added = self.exec.new_branches();
            if added.is_empty() && !ended {
                return Poll::Pending;
            }
            self.branches.extend(added);
        }
    }

    /// Gives the place back while all that the body waits for is durable, and warns once of other waits.
    fn place(&mut self, slot: &Slot) {
        let only_waits = self.exec.only_waits();
        if only_waits != self.paused {
            self.paused = only_waits;
            if only_waits { slot.pause() } else { slot.resume() }
        }
        if !self.warned && self.exec.no_call_pending() {
            self.warned = true;
            tracing::warn!(
                workflow = %self.exec.id,
                name = %self.exec.name,
                "the body waits for something that is no durable call: it will wait again in every execution"
            );
        }
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a text".to_owned(),
    }
}

/// Writes how an execution ended, and tells who waits for it here.
async fn finish(exec: &Arc<Execution>, end: End) {
    let outcome = match end {
        End::Returned(Ok(json)) => match exec.shared.codecs.stored(exec.codec.as_ref(), CodecPart::Value, json) {
            Ok(payload) => Outcome::Success(payload),
            Err(error) => Outcome::Error(exec.failure(&error)),
        },
        End::Returned(Err(error)) => Outcome::Error(exec.failure(&error.alone())),
        End::Panicked(text) => {
            tracing::error!(workflow = %exec.id, name = %exec.name, panic = %text, "workflow panicked");
            Outcome::Error(exec.failure(&Error::panic(text)))
        }
        End::Stopped(Stop::Deadline) => {
            exec.clear_stop();
            Outcome::Cancelled
        }
        End::Stopped(Stop::Parked(reason)) => {
            tracing::warn!(workflow = %exec.id, name = %exec.name, reason = %reason, "workflow set aside");
            exec.clear_stop();
            Outcome::Parked(exec.shared.record(&reason))
        }
        End::Stopped(Stop::Superseded(standing)) => return superseded(exec, standing),
        End::Stopped(Stop::Evicted | Stop::GivenUp) => return,
    };
    if matches!(outcome, Outcome::Success(_)) {
        for (position, name) in exec.unasked() {
            tracing::warn!(workflow = %exec.id, %position, step = %name, "recorded, but the body did not ask for it");
        }
    }
    exec.ending.store(true, Ordering::Relaxed);
    write(exec, outcome).await;
}

/// Writes an outcome; one that no store takes becomes an error, and that one the reason to set the row aside.
async fn write(exec: &Execution, outcome: Outcome) {
    let mut next = Some(outcome);
    while let Some(outcome) = next.take() {
        match exec.conclude(Unit::by(&exec.fence).outcome(outcome.clone())).await {
            Some(Wrote::Done) => exec.shared.hub.settle(&exec.id, &Standing::Ended(outcome)),
            Some(Wrote::Invalid(error)) => {
                tracing::warn!(workflow = %exec.id, %error, "outcome refused by the store");
                let error = unacceptable(&error);
                next = match outcome {
                    Outcome::Success(_) => Some(Outcome::Error(exec.failure(&error))),
                    Outcome::Error(_) => Some(Outcome::Parked(exec.shared.record(&error))),
                    Outcome::Cancelled | Outcome::Parked(_) => None,
                };
            }
            _ => {}
        }
    }
}

/// The row has left this execution: what it became is what waiters get.
fn superseded(exec: &Execution, standing: Standing) {
    tracing::debug!(workflow = %exec.id, "execution superseded");
    if matches!(standing, Standing::Ended(_)) {
        exec.shared.hub.settle(&exec.id, &standing);
    }
}

impl Execution {
    /// An error in the codec of the row.
    fn failure(&self, error: &Error) -> Payload {
        self.shared.codecs.stored_error(self.codec.as_ref(), self.shared.record(error))
    }

    /// Writes the outcome; `None` when the execution had lost the row, or the store was given up.
    async fn conclude(&self, unit: Unit) -> Option<Wrote> {
        let mut writing = std::pin::pin!(self.commit(unit));
        // A write that meets the end of the execution does not come back: the reason is in the state.
        let result = poll_fn(|cx| match writing.as_mut().poll(cx) {
            Poll::Ready(wrote) => Poll::Ready(Ok(wrote)),
            Poll::Pending => match self.stopped(cx.waker()) {
                Some(stop) => Poll::Ready(Err(stop)),
                None => Poll::Pending,
            },
        })
        .await;
        match result {
            Ok(wrote) => Some(wrote),
            Err(Stop::Superseded(standing)) => {
                superseded(self, standing);
                None
            }
            Err(_) => None,
        }
    }
}
