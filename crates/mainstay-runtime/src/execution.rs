//! One execution: what its body, its calls and its driver share.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use mainstay_env::{BoxFuture, Monotonic, Timestamp};
use mainstay_store::{
    CodecName, ErrorKind, ExecutorId, Fence, FieldError, Position, RecordedStep, Refusal, Standing, StepName,
    StoreError, Unit, UnitReply, WorkflowId, WorkflowName, WorkflowRow,
};

use crate::error::Error;
use crate::journal::{Expect, Journal, Verdict};
use crate::recorder::{Answer, Patience};
use crate::shared::Shared;

/// Why a body is dropped although it has not returned.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// The row has left this execution.
    Superseded(Standing),
    /// The engine wants it gone: its fence is void, or the process stops.
    Evicted,
    /// Its deadline has passed.
    Deadline,
    /// It cannot be replayed.
    Parked(Error),
    /// A write was given up; the row is found and run again later.
    GivenUp,
}

/// What a unit of a running execution came to; everything else ends the execution.
pub(crate) enum Wrote {
    /// It is written.
    Done,
    /// Its positions were written before, by this execution.
    Recorded(Vec<RecordedStep>),
    /// An effect lost.
    Refused(Refusal),
    /// A field is not acceptable.
    Invalid(StoreError),
}

/// A poll that takes longer is reported: meanwhile its thread does nothing else that it has to do.
const LONG_POLL: Duration = Duration::from_secs(1);

/// The store's clock at a moment of the monotonic one.
#[derive(Clone, Copy)]
struct Anchor {
    store: Timestamp,
    here: Monotonic,
}

/// One process running a body from the top.
pub(crate) struct Execution {
    /// Tells executions of one id apart.
    pub(crate) serial: u64,
    pub(crate) id: WorkflowId,
    pub(crate) name: WorkflowName,
    /// Codec of the row's input and outcome.
    pub(crate) codec: Option<CodecName>,
    pub(crate) fence: Fence,
    pub(crate) attempts: u32,
    /// Who held the row when it began.
    executor: Option<ExecutorId>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) shared: Arc<Shared>,
    journal: Mutex<Journal>,
    anchor: Mutex<Anchor>,
    state: Mutex<State>,
    /// Durable waits that are pending: sleeps, children.
    waits: AtomicU32,
    /// Other durable calls that are pending.
    busy: AtomicU32,
    /// Those of them that wait for a workflow themselves.
    lent: AtomicU32,
    /// Set when the outcome is on its way: what the row becomes is no news any more.
    pub(crate) ending: AtomicBool,
    /// Set when a long poll has been reported.
    blocked: AtomicBool,
}

#[derive(Default)]
struct State {
    stop: Option<Stop>,
    waker: Option<Waker>,
    branches: Vec<BoxFuture<'static, ()>>,
    /// The body has ended: a branch that is still made is dropped.
    closed: bool,
}

/// Counts a pending durable call, so that the driver knows what its body waits for.
pub(crate) struct Pending<'a>(&'a AtomicU32);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Execution {
    pub(crate) fn new(shared: &Arc<Shared>, row: &WorkflowRow, fence: Fence, steps: Vec<RecordedStep>) -> Arc<Self> {
        let here = shared.env.monotonic();
        Arc::new(Self {
            serial: shared.serials.fetch_add(1, Ordering::Relaxed),
            id: row.id.clone(),
            name: row.name.clone(),
            codec: row.codec.clone(),
            fence,
            attempts: row.attempts,
            executor: row.executor.clone().or_else(|| shared.dispatch().map(mainstay_queue::Dispatch::executor)),
            deadline: row.deadline,
            shared: shared.clone(),
            journal: Mutex::new(Journal::new(steps)),
            anchor: Mutex::new(Anchor { store: row.started_at.unwrap_or(row.updated_at), here }),
            state: Mutex::default(),
            waits: AtomicU32::new(0),
            busy: AtomicU32::new(0),
            lent: AtomicU32::new(0),
            ending: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
        })
    }

    /// Adds recorded steps that did not fit into the claim, before the body's first call.
    pub(crate) fn paged_in(&self, steps: Vec<RecordedStep>) {
        lock(&self.journal).extend(steps);
    }

    /// Asks the journal what a call does; ends the execution where the code has changed.
    pub(crate) async fn ask(&self, expect: Expect<'_>) -> Option<RecordedStep> {
        let verdict = lock(&self.journal).call(expect);
        self.judged(verdict).await
    }

    /// Asks the journal about rows that were written before.
    pub(crate) async fn reread(&self, expect: Expect<'_>, rows: Vec<RecordedStep>) -> RecordedStep {
        let verdict = lock(&self.journal).written(expect, rows);
        match self.judged(verdict).await {
            Some(row) => row,
            None => self.park(Error::bug("a position is recorded and not recorded".to_owned())).await,
        }
    }

    async fn judged(&self, verdict: Verdict) -> Option<RecordedStep> {
        match verdict {
            Verdict::Run => None,
            Verdict::Replay(row) => Some(row),
            Verdict::Mismatch(mismatch) => self.park(Error::mismatch(mismatch.to_string())).await,
        }
    }

    /// Recorded rows that no call has asked for.
    pub(crate) fn unasked(&self) -> Vec<(Position, StepName)> {
        lock(&self.journal).unasked()
    }

    /// Whether calls are answered from what an earlier execution recorded.
    pub(crate) fn is_replaying(&self) -> bool {
        lock(&self.journal).is_replaying()
    }

    /// Writes a unit; it does not come back when the execution has ended by it.
    pub(crate) async fn commit(&self, unit: Unit) -> Wrote {
        self.commit_and(unit, |_| ()).await
    }

    /// As [`Execution::commit`], and `then` is called with the answer even when the caller has been dropped meanwhile.
    pub(crate) async fn commit_and(&self, unit: Unit, then: impl FnOnce(&Answer) + Send + 'static) -> Wrote {
        if let Err(error) = unit.check(&self.shared.bounds) {
            return Wrote::Invalid(StoreError::field_error("commit", error));
        }
        let _busy = self.busy();
        match self.shared.recorder.commit_and(&self.id, unit, Patience::Forever, then).await {
            Ok(answer) => {
                self.anchor_at(answer.now);
                match answer.reply {
                    UnitReply::Done { .. } => Wrote::Done,
                    UnitReply::Recorded { rows } => Wrote::Recorded(rows),
                    UnitReply::Refused { why, .. } => Wrote::Refused(why),
                    UnitReply::Superseded { by } => self.end(Stop::Superseded(by)).await,
                    other => self.end(Stop::Parked(Error::bug(format!("the store answered {other:?}")))).await,
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported) => Wrote::Invalid(error),
            Err(error) => {
                tracing::debug!(workflow = %self.id, %error, "write given up");
                self.end(Stop::GivenUp).await
            }
        }
    }

    /// Writes a unit whose call has one row and nothing that may lose: the row as an earlier write of this execution left it,
    /// where there was one.
    pub(crate) async fn record(&self, unit: Unit, expect: Expect<'_>) -> Option<RecordedStep> {
        match self.commit(unit).await {
            Wrote::Done => None,
            Wrote::Recorded(rows) => Some(self.reread(expect, rows).await),
            Wrote::Refused(_) | Wrote::Invalid(_) => {
                self.park(Error::bug(format!("the row of {:?} cannot be written", expect.name))).await
            }
        }
    }

    /// Sets the row aside with a reason; the call that found it never returns.
    pub(crate) async fn park<T>(&self, reason: Error) -> T {
        self.end(Stop::Parked(reason)).await
    }

    /// Tells the driver to drop the body, of which the caller is a part: it never goes on.
    pub(crate) async fn end<T>(&self, stop: Stop) -> T {
        self.stop(stop);
        std::future::pending().await
    }

    /// Tells the driver to drop the body at its next poll; the first reason counts.
    pub(crate) fn stop(&self, stop: Stop) {
        let waker = {
            let mut state = lock(&self.state);
            if state.stop.is_none() {
                state.stop = Some(stop);
            }
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The reason to drop the body, where there is one; leaves the waker for one to come.
    pub(crate) fn stopped(&self, waker: &Waker) -> Option<Stop> {
        let fresh = waker.clone();
        let (stop, replaced) = {
            let mut state = lock(&self.state);
            (state.stop.clone(), state.waker.replace(fresh))
        };
        drop(replaced);
        stop
    }

    /// Forgets the reason to drop the body, once it is dropped: the outcome that follows may meet one of its own.
    pub(crate) fn clear_stop(&self) {
        lock(&self.state).stop = None;
    }

    /// Adds a branch; the driver polls it beside the body.
    pub(crate) fn add_branch(&self, branch: BoxFuture<'static, ()>) {
        let waker = {
            let mut state = lock(&self.state);
            if state.closed {
                drop(state);
                drop(branch);
                return;
            }
            state.branches.push(branch);
            state.waker.clone()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Gives the branches that were not taken yet; from now on every new one is dropped.
    pub(crate) fn close_branches(&self) -> Vec<BoxFuture<'static, ()>> {
        let mut state = lock(&self.state);
        state.closed = true;
        std::mem::take(&mut state.branches)
    }

    /// Branches added since the last call.
    pub(crate) fn new_branches(&self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut lock(&self.state).branches)
    }

    /// Counts a durable wait until the guard is dropped.
    pub(crate) fn waiting(&self) -> Pending<'_> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        Pending(&self.waits)
    }

    /// Counts another durable call until the guard is dropped.
    pub(crate) fn busy(&self) -> Pending<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Pending(&self.busy)
    }

    /// Counts a busy call as one that waits, until the guard is dropped: a step that waits for a workflow.
    pub(crate) fn lent(&self) -> Pending<'_> {
        self.lent.fetch_add(1, Ordering::Relaxed);
        Pending(&self.lent)
    }

    /// Whether everything that the body waits for is a durable wait.
    ///
    /// A step with several waits at once may hide another that works: it runs over the bound, as one that goes on does.
    pub(crate) fn only_waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed) > 0 && self.busy.load(Ordering::Relaxed) <= self.lent.load(Ordering::Relaxed)
    }

    /// Whether a pending row is still this execution's, as far as its executor and its attempt tell.
    pub(crate) fn holds(&self, row: &WorkflowRow) -> bool {
        row.executor == self.executor && row.attempts == self.attempts
    }

    /// Warns, once an execution, of a poll of its code that began then and kept its thread for too long. The innermost poll
    /// is the first to be judged, so that the step is named where it was one.
    pub(crate) fn polled(&self, began: Monotonic, step: Option<&StepName>) {
        let took = self.shared.env.monotonic().since(began);
        if took < LONG_POLL || self.blocked.swap(true, Ordering::Relaxed) {
            return;
        }
        tracing::warn!(
            workflow = %self.id,
            name = %self.name,
            step = step.map(tracing::field::display),
            ?took,
            "the body has blocked its thread: whatever shares that thread waits; let it block on a thread of its own"
        );
    }

    /// Whether no durable call is pending.
    pub(crate) fn no_call_pending(&self) -> bool {
        self.waits.load(Ordering::Relaxed) == 0 && self.busy.load(Ordering::Relaxed) == 0
    }

    fn anchor_at(&self, store: Timestamp) {
        *lock(&self.anchor) = Anchor { store, here: self.shared.env.monotonic() };
    }

    /// The store's clock now.
    pub(crate) fn store_now(&self) -> Timestamp {
        let anchor = *lock(&self.anchor);
        anchor.store + self.shared.env.monotonic().since(anchor.here)
    }

    /// How long it is until a moment of the store's clock.
    pub(crate) fn until(&self, at: Timestamp) -> Duration {
        at.since(self.store_now())
    }
}

/// A field of a unit that is not acceptable, as the error of the call that wrote it.
pub(crate) fn unacceptable(error: &StoreError) -> Error {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<FieldError>());
    match source {
        Some(field) => Error::bad_output(field.to_string()),
        None => Error::bad_output(error.to_string()),
    }
}
