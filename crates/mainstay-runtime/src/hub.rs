//! Waiting for workflows: one reader for all waiters of a process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::{Either, select};
use mainstay_env::{Env, Monotonic};
use mainstay_store::{Standing, Store, Subscription, Wakeup, WorkflowId};
use tokio::sync::{Notify, oneshot};

use crate::execution::Stop;
use crate::shared::Shared;

/// Interval at which a waited-for workflow is looked at when no hint comes.
const POLL: Duration = Duration::from_secs(1);
/// Interval at which running executions are looked at for a cancellation whose hint was lost.
const CHECK: Duration = Duration::from_secs(5);
/// Most ids of one read: an answer stays small, and a read never holds up the next for long.
const BATCH: usize = 256;
/// Wait after a failed read.
const BACKOFF: Duration = Duration::from_millis(500);

/// Tells waiters how their workflows ended.
#[derive(Clone)]
pub(crate) struct Hub {
    state: Arc<Mutex<State>>,
    nudge: Arc<Notify>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<WorkflowId, Waited>,
    closed: bool,
}

struct Waited {
    waiters: Vec<oneshot::Sender<Standing>>,
    due: Monotonic,
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
        let here = shared.running_here(id).is_some();
        let receiver = {
            let mut state = self.lock();
            if state.closed {
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            let due = if here { now + POLL } else { now };
            let waited = state.waiting.entry(id.clone()).or_insert_with(|| Waited { waiters: Vec::new(), due });
            waited.waiters.retain(|waiter| !waiter.is_closed());
            waited.waiters.push(sender);
            waited.due = waited.due.min(due);
            receiver
        };
        if !here || shared.running_here(id).is_none() {
            self.mark(id, now);
            self.nudge.notify_one();
        }
        receiver.await.ok()
    }

    /// Makes a waited-for workflow due.
    fn mark(&self, id: &WorkflowId, now: Monotonic) -> bool {
        match self.lock().waiting.get_mut(id) {
            Some(waited) => {
                waited.due = waited.due.min(now);
                true
            }
            None => false,
        }
    }

    fn mark_all(&self, now: Monotonic) {
        for waited in self.lock().waiting.values_mut() {
            waited.due = waited.due.min(now);
        }
    }

    /// Tells the waiters of a workflow how it stands, if it has ended.
    pub(crate) fn settle(&self, id: &WorkflowId, standing: &Standing) {
        if matches!(standing, Standing::Open(_)) {
            return;
        }
        let waited = self.lock().waiting.remove(id);
        for waiter in waited.into_iter().flat_map(|waited| waited.waiters) {
            // An error means that the waiter has gone.
            let _ = waiter.send(standing.clone());
        }
    }

    /// Lets every waiter go, and later ones at once.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
        self.nudge.notify_one();
    }

    /// The ids that are due, at most a batch, put off to their next poll; and when the next ones are.
    fn take_due(&self, now: Monotonic) -> (Vec<WorkflowId>, Option<Monotonic>) {
        let mut state = self.lock();
        state.waiting.retain(|_, waited| {
            waited.waiters.retain(|waiter| !waiter.is_closed());
            !waited.waiters.is_empty()
        });
        // A poll of many waiters is spread, so that it never takes more than a few reads a second.
        let spread = POLL.max(Duration::from_millis(state.waiting.len() as u64 / 4));
        let mut due = Vec::new();
        for (id, waited) in &mut state.waiting {
            if waited.due <= now && due.len() < BATCH {
                waited.due = now + spread;
                due.push(id.clone());
            }
        }
        let next = state.waiting.values().map(|waited| waited.due).min();
        (due, next)
    }
}

/// The hub's task: reads what is due, and hears hints.
pub(crate) async fn run(hub: Hub, shared: Weak<Shared>, store: Arc<dyn Store>, env: Env, mut hints: Subscription) {
    let mut next_check = env.deadline(CHECK);
    loop {
        let now = env.monotonic();
        let (due, next) = hub.take_due(now);
        if !due.is_empty() {
            read(&hub, &store, &env, &due).await;
            continue;
        }
        if now >= next_check {
            let Some(shared) = shared.upgrade() else { return };
            check_running(&shared, &store, None).await;
            next_check = env.deadline(CHECK);
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
                    hub.mark(&id, now);
                    suspects.push(id);
                }
                Wakeup::All => {
                    hub.mark_all(now);
                    next_check = now;
                }
                _ => {}
            }
            next_hint = if suspects.len() < BATCH { hints.ready() } else { None };
        }
        if !suspects.is_empty() {
            let Some(shared) = shared.upgrade() else { return };
            check_running(&shared, &store, Some(suspects)).await;
        }
    }
}

async fn read(hub: &Hub, store: &Arc<dyn Store>, env: &Env, ids: &[WorkflowId]) {
    match store.workflow_standing(ids).await {
        Ok(standings) => {
            for (id, standing) in ids.iter().zip(&standings) {
                hub.settle(id, standing);
            }
        }
        Err(error) => {
            tracing::debug!(%error, "reading waited-for workflows failed, tried again");
            env.sleep(BACKOFF).await;
        }
    }
}

/// Stops executions whose row has left them: those of the hints, or all.
async fn check_running(shared: &Arc<Shared>, store: &Arc<dyn Store>, suspects: Option<Vec<WorkflowId>>) {
    let running = match suspects {
        Some(ids) => ids.iter().filter_map(|id| shared.running_here(id)).collect(),
        None => shared.all_running(),
    };
    let running: Vec<_> =
        running.into_iter().filter(|exec| !exec.ending.load(std::sync::atomic::Ordering::Relaxed)).collect();
    for batch in running.chunks(BATCH) {
        let ids: Vec<_> = batch.iter().map(|exec| exec.id.clone()).collect();
        let Ok(standings) = store.workflow_standing(&ids).await else { return };
        for (exec, standing) in batch.iter().zip(standings) {
            let own = matches!(standing, Standing::Open(mainstay_store::Status::Pending));
            if !own && !exec.ending.load(std::sync::atomic::Ordering::Relaxed) {
                exec.stop(Stop::Superseded(standing));
            }
        }
    }
}
