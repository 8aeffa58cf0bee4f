//! The fake launcher: bodies are tasks of their process, hold their slot, take virtual time and settle as a recorder would.

use crate::plan::{Body, End};
use crate::seen::{Guard, Run, Seen};
use mainstay_env::{Env, Task};
use mainstay_queue::{Launcher, Slot, Work};
use mainstay_store::{ErrorKind, Fence, Outcome, Registered, Store, Unit, UnitReply, WorkflowId, WriteExt};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Pause of a body between two tries to write its outcome.
const SETTLE_PAUSE: Duration = Duration::from_millis(250);

/// Longest run of a body once faults are over.
const CALM_RUN: Duration = Duration::from_millis(100);

/// Starts bodies in one process.
pub(crate) struct FakeLauncher {
    names: Arc<[Registered]>,
    shared: Arc<Shared>,
}

struct Shared {
    run: Run,
    env: Env,
    store: Arc<dyn Store>,
    seen: Seen,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stalled: bool,
    held: Vec<(Work, Guard)>,
    tasks: BTreeMap<u64, Task<()>>,
    /// The launch of these rows panics.
    poison: Vec<WorkflowId>,
}

impl FakeLauncher {
    pub(crate) fn new(run: Run, store: Arc<dyn Store>, seen: Seen, names: Vec<Registered>) -> FakeLauncher {
        let env = store.env().clone();
        let shared = Shared { run, env, store, seen, state: Mutex::default() };
        FakeLauncher { names: names.into(), shared: Arc::new(shared) }
    }

    /// Holds back what is launched from now on.
    pub(crate) fn stall(&self) {
        self.shared.lock().stalled = true;
    }

    /// Starts what was held back.
    pub(crate) fn unstall(&self) {
        let held = {
            let mut state = self.shared.lock();
            state.stalled = false;
            std::mem::take(&mut state.held)
        };
        for (work, guard) in held {
            self.start(work, guard);
        }
    }

    /// The next launch of this row panics.
    pub(crate) fn poison(&self, id: &WorkflowId) {
        self.shared.lock().poison.push(id.clone());
    }

    fn start(&self, work: Work, guard: Guard) {
        let (number, shared) = (guard.number(), self.shared.clone());
        let task = self.shared.env.tasks().spawn("body", async move { shared.body(work, guard).await });
        let mut state = self.shared.lock();
        state.tasks.retain(|_, task| !task.is_finished());
        state.tasks.insert(number, task);
    }
}

impl Launcher for FakeLauncher {
    fn registered(&self) -> Arc<[Registered]> {
        self.names.clone()
    }

    fn launch(&self, work: Work) {
        let id = work.claimed.row.id.clone();
        {
            let mut state = self.shared.lock();
            if let Some(at) = state.poison.iter().position(|poisoned| *poisoned == id) {
                state.poison.remove(at);
                drop(state);
                // Raised without the hook, which would print a panic that is planned.
                std::panic::resume_unwind(Box::new("planned: a launch that panics"));
            }
        }
        let guard = self.shared.seen.launch(&self.shared.run, self.shared.env.monotonic(), &work.claimed);
        self.shared.tell(|| format!("launch of {id}"));
        let mut state = self.shared.lock();
        if state.stalled {
            state.held.push((work, guard));
            return;
        }
        drop(state);
        self.start(work, guard);
    }

    fn evict(&self, id: &WorkflowId) {
        let numbers = self.shared.seen.evict(&self.shared.run, id);
        self.shared.tell(|| format!("evict {id}: {numbers:?}"));
        let held = {
            let mut state = self.shared.lock();
            for number in &numbers {
                if let Some(task) = state.tasks.remove(number) {
                    task.abort();
                }
            }
            let (gone, kept) = std::mem::take(&mut state.held)
                .into_iter()
                .partition(|(_, guard): &(Work, Guard)| numbers.contains(&guard.number()));
            state.held = kept;
            gone
        };
        let held: Vec<(Work, Guard)> = held;
        drop(held);
    }
}

impl fmt::Debug for FakeLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeLauncher").field("run", &self.shared.run).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, line: impl FnOnce() -> String) {
        self.seen.tell_reader(self.env.monotonic(), || format!("{:?} {}", self.run.0, line()));
    }

    async fn body(&self, work: Work, guard: Guard) {
        let Work { claimed, slot, .. } = work;
        let end = self.go(&claimed.row.id, &slot, &guard).await;
        self.tell(|| format!("{} ends by {end:?}", claimed.row.id));
        match end {
            End::Succeed | End::Never => self.settle(&claimed.fence, Outcome::Success("1".into())).await,
            End::Fail => self.settle(&claimed.fence, Outcome::Error("{}".into())).await,
            End::GiveBack => self.write(Unit::by(&claimed.fence).effect(give_back())).await,
            End::Control => {}
            // Raised without the hook, which would print a panic that is planned.
            End::Panic => std::panic::resume_unwind(Box::new("planned: a body that panics")),
        }
        drop(slot);
        drop(guard);
    }

    /// Runs or waits as planned, until its time is over or it is told to end.
    async fn go(&self, id: &WorkflowId, slot: &Slot, guard: &Guard) -> End {
        let Body { run_ms, end, waits } = self.seen.plan(id);
        let mut time = Duration::from_millis(u64::from(run_ms));
        let mut end = end;
        if self.seen.lock().calm {
            (time, end) = (time.min(CALM_RUN), End::Succeed);
        }
        if end == End::Never {
            time = Duration::MAX;
        }
        if waits {
            slot.pause();
        }
        let word = async {
            loop {
                let (told, notify) = guard.told();
                if let Some(end) = told {
                    return end;
                }
                notify.notified().await;
            }
        };
        let end = self.env.timeout(time, word).await.unwrap_or(end);
        if waits {
            slot.resume();
        }
        end
    }

    async fn settle(&self, fence: &Fence, outcome: Outcome) {
        self.write(Unit::by(fence).outcome(outcome)).await;
    }

    /// Sends a unit until its fate is known.
    async fn write(&self, unit: Unit) {
        loop {
            match self.store.unit(unit.clone()).await {
                Ok(UnitReply::Done { .. }) => {
                    if let (Some(fence), Some(_)) = (&unit.fence, &unit.outcome) {
                        *self.seen.lock().settled.entry(fence.clone()).or_default() += 1;
                    }
                    return;
                }
                Ok(UnitReply::Superseded { .. }) => return,
                Ok(reply) => return self.seen.lock().violation(format!("an outcome was answered {reply:?}")),
                Err(error) if again(error.kind()) => self.env.sleep(SETTLE_PAUSE).await,
                Err(error) => return self.seen.lock().violation(format!("an outcome failed: {error}")),
            }
        }
    }
}

fn again(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Contended)
}

fn give_back() -> mainstay_store::Effect {
    mainstay_store::Effect::GiveBack { delay: Some(Duration::from_millis(300)), begun: true }
}
