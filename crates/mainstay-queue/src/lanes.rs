//! The lanes of a process as their tasks share them: state that outlives a worker, and the mail that reaches it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{Claim, QueueName, Token};
use tokio::sync::Notify;

use crate::lane::{Lane, LaneInput, Pace, Plan};
use crate::mail::Mail;
use crate::slot::{Counts, Waker};
use crate::tally::Tally;

/// A claim that was sent: what a repeat sends again, and what its rows are held against.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) request: Claim,
    /// Which lease it was made under.
    pub(crate) epoch: u64,
}

/// Places of `max_running` kept for a claim; what is left comes back by dropping it.
pub(crate) struct Kept {
    counts: Arc<Counts>,
    left: u32,
}

impl Kept {
    /// For places that are reserved in the tally already.
    pub(crate) fn new(counts: Arc<Counts>, left: u32) -> Self {
        Self { counts, left }
    }

    /// Hands one place over to an execution, which counts itself under the same lock.
    pub(crate) fn spend(&mut self, tally: &mut Tally) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        // The place is taken again in the same breath: nobody is woken for it.
        let _ = tally.release(1);
        true
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.left > 0 {
            let wakes = self.counts.lock().release(self.left);
            self.counts.wake(&wakes);
        }
    }
}

/// What survives the death of a worker.
pub(crate) struct LaneState {
    pub(crate) lane: Lane,
    pub(crate) sent: Option<Sent>,
    pub(crate) kept: Option<Kept>,
}

/// One lane.
pub(crate) struct LaneCell {
    pub(crate) queue: QueueName,
    pub(crate) mail: Mail<LaneInput>,
    state: Mutex<LaneState>,
    alive: AtomicBool,
}

impl LaneCell {
    pub(crate) fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    pub(crate) fn set_alive(&self, alive: bool) {
        self.alive.store(alive, Ordering::Release);
    }
}

impl fmt::Debug for LaneCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneCell").field("queue", &self.queue).field("alive", &self.is_alive()).finish_non_exhaustive()
    }
}

/// All lanes by queue.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    cells: Mutex<BTreeMap<QueueName, Arc<LaneCell>>>,
    /// A lane wants a probe.
    pub(crate) wanted: Notify,
    /// A claim was answered, or a lane ended.
    pub(crate) settled: Notify,
}

impl Lanes {
    fn cells(&self) -> MutexGuard<'_, BTreeMap<QueueName, Arc<LaneCell>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lane for a new worker: the one that is there with its state, unless it has come to its end.
    pub(crate) fn open(&self, queue: &QueueName, pace: Pace, plan: Plan) -> Arc<LaneCell> {
        let mut cells = self.cells();
        if let Some(cell) = cells.get(queue)
            && !cell.lock().lane.has_ended()
        {
            cell.mail.post(LaneInput::Published(Some(plan)));
            return cell.clone();
        }
        let cell = Arc::new(LaneCell {
            queue: queue.clone(),
            mail: Mail::default(),
            state: Mutex::new(LaneState { lane: Lane::new(pace, plan), sent: None, kept: None }),
            alive: AtomicBool::new(false),
        });
        let ended = cells.insert(queue.clone(), cell.clone());
        // Dropped without the lock: the places that a lane keeps wake other lanes.
        drop((cells, ended));
        cell
    }

    /// Forgets a lane that has come to its end.
    pub(crate) fn close(&self, queue: &QueueName) {
        let mut cells = self.cells();
        let has_ended = cells.get(queue).is_some_and(|cell| cell.lock().lane.has_ended());
        let ended = if has_ended { cells.remove(queue) } else { None };
        drop((cells, ended));
    }

    pub(crate) fn get(&self, queue: &QueueName) -> Option<Arc<LaneCell>> {
        self.cells().get(queue).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<LaneCell>> {
        self.cells().values().cloned().collect()
    }

    pub(crate) fn post(&self, queue: &QueueName, input: LaneInput) {
        if let Some(cell) = self.get(queue) {
            cell.mail.post(input);
        }
    }

    pub(crate) fn post_all(&self, input: &LaneInput) {
        for cell in self.all() {
            cell.mail.post(input.clone());
        }
    }

    /// Tokens of claims whose answer is awaited.
    pub(crate) fn outstanding(&self) -> BTreeSet<Token> {
        let token = |cell: Arc<LaneCell>| {
            let state = cell.lock();
            let sent = state.sent.as_ref().filter(|_| state.lane.outstanding());
            sent.map(|sent| sent.request.token.clone())
        };
        self.all().into_iter().filter_map(token).collect()
    }

    /// Whether any claim waits for its answer.
    pub(crate) fn claim_is_out(&self) -> bool {
        self.all().iter().any(|cell| cell.is_alive() && cell.lock().lane.is_out())
    }

    /// The shortest interval of the lanes that wait for a probe, when any does.
    pub(crate) fn probing(&self) -> Option<Duration> {
        let interval = |cell: Arc<LaneCell>| {
            let state = cell.lock();
            state.lane.is_probing().then(|| state.lane.interval())
        };
        self.all().into_iter().filter_map(interval).min()
    }

    /// The lanes that take part in a probe that goes out now.
    pub(crate) fn join(&self, now: Monotonic, counts: &Counts) -> Vec<QueueName> {
        let joins = |cell: Arc<LaneCell>| {
            let room = counts.lock().room(&cell.queue);
            cell.lock().lane.join(now, room).then(|| cell.queue.clone())
        };
        self.all().into_iter().filter_map(joins).collect()
    }
}

/// Posts to the lanes of a process.
pub(crate) struct LaneWaker(pub(crate) Arc<Lanes>);

impl Waker for LaneWaker {
    fn freed(&self, queue: &QueueName) {
        self.0.post(queue, LaneInput::Freed);
    }

    fn room(&self, queue: &QueueName) {
        self.0.post(queue, LaneInput::Look);
    }
}
