//! Waiting for workflows: one reader for all waiters of a process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use mainstay_env::{Env, Monotonic};
use mainstay_store::{ErrorKind, Standing, Status, Store, StoreError, Subscription, Wakeup, WorkflowId};
use tokio::sync::{Notify, oneshot};

use crate::execution::{Execution, Stop};
use crate::shared::Shared;

/// Interval at which a waited-for workflow is looked at when no hint comes.
const POLL: Duration = Duration::from_secs(1);
/// The same for one that runs here, should nobody tell.
const HERE: Duration = Duration::from_secs(60);
/// Interval at which running executions are looked at for a cancellation whose hint was lost.
const CHECK: Duration = Duration::from_secs(5);
/// What each read of such a look puts off the next one by: many executions cost no more than a read a second.
const CHECK_READ: Duration = Duration::from_secs(1);
/// Most ids of one read: an answer stays small, and a read never holds up the next for long.
const BATCH: usize = 256;
/// Wait after a failed read.
const BACKOFF: Duration = Duration::from_millis(500);
/// Wait before a row that cannot be read is read again; its waiters wait on, for somebody may mend it.
const UNREADABLE: Duration = Duration::from_secs(60);
/// Waiters of one workflow at which those that have gone are first looked for.
const SWEEP: usize = 16;

/// Tells waiters how their workflows ended.
#[derive(Clone)]
pub(crate) struct Hub {
    state: Arc<Mutex<State>>,
    nudge: Arc<Notify>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<WorkflowId, Waited>,
    /// When each of them is read next.
    due: BTreeSet<(Monotonic, WorkflowId)>,
    /// Why the last read failed, where it did for the store's sake.
    outage: Option<StoreError>,
    closed: bool,
}

struct Waited {
    waiters: Vec<oneshot::Sender<Standing>>,
    due: Monotonic,
    /// How many waiters there may be before those that have gone are let go.
    sweep: usize,
    /// Set when it has been logged that the row cannot be read.
    warned: bool,
}

impl State {
    /// Adds a waiter of a workflow that is to be read at `due`.
    fn add(&mut self, id: &WorkflowId, due: Monotonic) -> oneshot::Receiver<Standing> {
        let (sender, receiver) = oneshot::channel();
        match self.waiting.get_mut(id) {
            Some(waited) => {
                if waited.waiters.len() >= waited.sweep {
                    waited.waiters.retain(|waiter| !waiter.is_closed());
                    waited.sweep = SWEEP.max(2 * waited.waiters.len());
                }
                waited.waiters.push(sender);
            }
            None => {
                self.due.insert((due, id.clone()));
                let waited = Waited { waiters: vec![sender], due, sweep: SWEEP, warned: false };
                self.waiting.insert(id.clone(), waited);
            }
        }
        self.hasten(id, due);
        receiver
    }

    /// Reads a waited-for workflow at `due`, unless it is to be read before.
    fn hasten(&mut self, id: &WorkflowId, due: Monotonic) {
        if let Some(waited) = self.waiting.get_mut(id)
            && waited.due > due
        {
            self.due.remove(&(waited.due, id.clone()));
            waited.due = due;
            self.due.insert((due, id.clone()));
        }
    }

    /// Reads a waited-for workflow at `due`, not before.
    fn put_off(&mut self, id: &WorkflowId, due: Monotonic) {
        if let Some(waited) = self.waiting.get_mut(id) {
            self.due.remove(&(waited.due, id.clone()));
            waited.due = due;
            self.due.insert((due, id.clone()));
        }
    }

    /// Reads a row that cannot be read again at `due`; gives whether that is to be logged.
    fn unreadable(&mut self, id: &WorkflowId, due: Monotonic) -> bool {
        self.put_off(id, due);
        self.waiting.get_mut(id).is_some_and(|waited| !std::mem::replace(&mut waited.warned, true))
    }

    fn remove(&mut self, id: &WorkflowId) -> Option<Waited> {
        let waited = self.waiting.remove(id)?;
        self.due.remove(&(waited.due, id.clone()));
        Some(waited)
    }

    /// The ids that are due, at most a batch, put off to their next poll; and when the next ones are.
    fn take_due(&mut self, now: Monotonic) -> (Vec<WorkflowId>, Option<Monotonic>) {
        // A poll of many waiters is spread, so that it never takes more than a few reads a second.
        let spread = POLL.max(Duration::from_millis(self.waiting.len() as u64 / 4));
        let mut taken = Vec::new();
        while taken.len() < BATCH
            && let Some((due, id)) = self.due.pop_first()
        {
            if due > now {
                self.due.insert((due, id));
                break;
            }
            let Some(waited) = self.waiting.get_mut(&id) else { continue };
            waited.waiters.retain(|waiter| !waiter.is_closed());
            if waited.waiters.is_empty() {
                self.waiting.remove(&id);
                continue;
            }
            waited.due = now + spread;
            self.due.insert((waited.due, id.clone()));
            taken.push(id);
        }
        (taken, self.due.first().map(|(due, _)| *due))
    }
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self { state: Arc::default(), nudge: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a workflow has ended or is gone; `None` when the engine stops first.
    ///
    /// One that runs here is not read: its end is told.
    pub(crate) async fn ended(&self, shared: &Shared, id: &WorkflowId) -> Option<Standing> {
        let now = shared.env.monotonic();
        let receiver = {
            let mut state = self.lock();
            if state.closed {
                return None;
            }
            state.add(id, now + POLL)
        };
        // Looked at after the waiter is entered: an end that comes from now on is told.
        if shared.running_here(id).is_none() {
            self.lock().hasten(id, now);
            self.nudge.notify_one();
        }
        receiver.await.ok()
    }

    /// Puts the next read of a workflow that runs here far off: its end is told, and that it left is too.
    fn leave_to_its_end(&self, shared: &Shared, id: &WorkflowId, now: Monotonic) -> bool {
        // One that is ending may have told before its waiter came.
        let tells = || shared.running_here(id).is_some_and(|exec| !exec.ending.load(Ordering::Relaxed));
        if !tells() {
            return false;
        }
        self.lock().put_off(id, now + HERE);
        // Looked at again: what has left in between has told so before it was put off.
        let runs = tells();
        if !runs {
            self.hasten(id, now + POLL);
        }
        runs
    }

    /// An execution has left this process; a waiter that is not told yet needs a read.
    pub(crate) fn left(&self, id: &WorkflowId, now: Monotonic) {
        let waited = {
            let mut state = self.lock();
            state.hasten(id, now);
            state.waiting.contains_key(id)
        };
        if waited {
            self.nudge.notify_one();
        }
    }

    fn hasten(&self, id: &WorkflowId, due: Monotonic) {
        self.lock().hasten(id, due);
    }

    fn hasten_all(&self, due: Monotonic) {
        let mut state = self.lock();
        let ids: Vec<_> = state.waiting.keys().cloned().collect();
        for id in ids {
            state.hasten(&id, due);
        }
    }

    /// Tells the waiters of a workflow how it stands, if it has ended.
    pub(crate) fn settle(&self, id: &WorkflowId, standing: &Standing) {
        if matches!(standing, Standing::Open(_)) {
            return;
        }
        let waited = self.lock().remove(id);
        for waiter in waited.into_iter().flat_map(|waited| waited.waiters) {
            // An error means that the waiter has gone.
            let _ = waiter.send(standing.clone());
        }
    }

    /// Why nothing is read now, where the last read has failed.
    pub(crate) fn outage(&self) -> Option<StoreError> {
        self.lock().outage.clone()
    }

    /// Notes how a look at rows went; a failure is told of aloud when it is the first of its kind.
    fn looked(&self, look: &Look) {
        let before = std::mem::replace(&mut self.lock().outage, look.outage.clone());
        let Some(error) = &look.outage else { return };
        if before.is_some_and(|before| before.kind() == error.kind()) {
            tracing::debug!(%error, "how workflows stand cannot be read, tried again");
        } else {
            tracing::warn!(%error, "how workflows stand cannot be read, waits go on");
        }
    }

    /// Lets every waiter go, and later ones at once.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut state = self.lock();
            state.closed = true;
            state.due.clear();
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
        self.nudge.notify_one();
    }
}

/// Lets every waiter go when the hub's task ends, in whatever way: nobody would tell them any more.
struct Closing(Hub);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The hub's task: reads what is due, and hears hints. It holds the engine's parts until a shutdown ends it, so that an
/// engine works on whose last handle is dropped.
pub(crate) async fn run(hub: Hub, shared: Arc<Shared>, store: Arc<dyn Store>, env: Env, mut hints: Subscription) {
    let _closing = Closing(hub.clone());
    let mut soonest_check = env.monotonic();
    let mut next_check = env.deadline(CHECK);
    loop {
        let now = env.monotonic();
        let (due, next) = hub.lock().take_due(now);
        if !due.is_empty() {
            let foreign: Vec<_> = due.into_iter().filter(|id| !hub.leave_to_its_end(&shared, id, now)).collect();
            if !foreign.is_empty() {
                read(&hub, &store, &env, &foreign).await;
            }
            continue;
        }
        if now >= next_check {
            let reads = check_running(&shared, &store, None).await;
            soonest_check = env.deadline(CHECK_READ * reads);
            next_check = soonest_check.max(env.deadline(CHECK));
            continue;
        }
        let until = next.map_or(next_check, |next| next.min(next_check));
        let woken = {
            let hint = std::pin::pin!(hints.next());
            let nudge = std::pin::pin!(hub.nudge.notified());
            match env.timeout_at(until, select(hint, nudge)).await {
                Ok(Either::Left((hint, _))) => Some(hint),
                _ => None,
            }
        };
        let mut next_hint = woken;
        let mut suspects = Vec::new();
        while let Some(hint) = next_hint {
            let now = env.monotonic();
            match hint {
                Wakeup::Workflow(id) => {
                    hub.hasten(&id, now);
                    suspects.push(id);
                }
                Wakeup::All => {
                    hub.hasten_all(now);
                    next_check = soonest_check;
                }
                _ => {}
            }
            next_hint = if suspects.len() < BATCH { hints.ready() } else { None };
        }
        if !suspects.is_empty() {
            check_running(&shared, &store, Some(suspects)).await;
        }
    }
}

/// What a look at rows came to.
#[derive(Default)]
struct Look {
    standings: Vec<(WorkflowId, Standing)>,
    unreadable: Vec<(WorkflowId, StoreError)>,
    /// Why the rest was not read.
    outage: Option<StoreError>,
    reads: u32,
}

/// Whether an error is about a row that was asked for, and not about the store.
pub(crate) fn is_unreadable(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid | ErrorKind::Bug)
}

/// Reads how workflows stand, at once; in ever smaller parts where one of them cannot be read.
async fn look(store: &Arc<dyn Store>, ids: &[WorkflowId]) -> Look {
    let mut look = Look::default();
    let mut parts = vec![ids];
    while let Some(part) = parts.pop() {
        look.reads += 1;
        match (store.workflow_standing(part).await, part) {
            (Ok(standings), _) => look.standings.extend(part.iter().cloned().zip(standings)),
            (Err(error), _) if !is_unreadable(&error) => {
                look.outage = Some(error);
                break;
            }
            (Err(error), [id]) => look.unreadable.push((id.clone(), error)),
            (Err(_), _) => {
                let (left, right) = part.split_at(part.len() / 2);
                parts.extend([right, left]);
            }
        }
    }
    look
}

async fn read(hub: &Hub, store: &Arc<dyn Store>, env: &Env, ids: &[WorkflowId]) {
    let look = look(store, ids).await;
    hub.looked(&look);
    for (id, standing) in &look.standings {
        hub.settle(id, standing);
    }
    for (id, error) in &look.unreadable {
        if hub.lock().unreadable(id, env.deadline(UNREADABLE)) {
            tracing::warn!(workflow = %id, %error, "a waited-for workflow cannot be read, its waiters wait on");
        }
    }
    if look.outage.is_some() {
        env.sleep(BACKOFF).await;
    }
}

/// Stops executions whose row has left them, and tells their waiters: those of the hints, or all. Answers how many reads
/// that took.
async fn check_running(shared: &Arc<Shared>, store: &Arc<dyn Store>, suspects: Option<Vec<WorkflowId>>) -> u32 {
    let running = match suspects {
        Some(ids) => ids.iter().filter_map(|id| shared.running_here(id)).collect(),
        None => shared.all_running(),
    };
    let running: Vec<_> = running.into_iter().filter(|exec| !exec.ending.load(Ordering::Relaxed)).collect();
    let mut reads = 0;
    for batch in running.chunks(BATCH) {
        let ids: Vec<_> = batch.iter().map(|exec| exec.id.clone()).collect();
        let look = look(store, &ids).await;
        shared.hub.looked(&look);
        reads += look.reads;
        let execs: BTreeMap<_, _> = batch.iter().map(|exec| (&exec.id, exec)).collect();
        let mut pending = Vec::new();
        for (id, standing) in look.standings {
            let Some(exec) = execs.get(&id) else { continue };
            if matches!(standing, Standing::Open(Status::Pending)) {
                pending.push(*exec);
            } else {
                // A body that blocks its thread would tell them too late.
                shared.hub.settle(&id, &standing);
                supersede(exec, standing);
            }
        }
        reads += check_holders(store, &pending).await;
    }
    reads
}

/// Stops executions whose pending row is another one's: it was cancelled, resumed and claimed between two looks.
async fn check_holders(store: &Arc<dyn Store>, pending: &[&Arc<Execution>]) -> u32 {
    if pending.is_empty() {
        return 0;
    }
    let ids: Vec<_> = pending.iter().map(|exec| exec.id.clone()).collect();
    match store.workflow_rows(&ids).await {
        Ok(rows) => {
            for (exec, row) in pending.iter().zip(rows) {
                if row.is_some_and(|row| row.status == Status::Pending && !exec.holds(&row)) {
                    supersede(exec, Standing::Open(Status::Pending));
                }
            }
        }
        Err(error) => tracing::debug!(%error, "reading who holds what runs here failed, tried again"),
    }
    1
}

fn supersede(exec: &Execution, standing: Standing) {
    if !exec.ending.load(Ordering::Relaxed) {
        exec.stop(Stop::Superseded(standing));
    }
}
