//! The observer: what runs where, as the bodies themselves and the calls at the store report it.

use crate::plan::{Body, End};
use mainstay_env::{Monotonic, Timestamp};
use mainstay_store::{Claim, Claimed, ClaimedRow, ExecutorId, Fence, PartitionKey, QueueName, Token, WorkflowId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// One incarnation of a process, such as `p1#3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run(pub(crate) Arc<str>);

/// A launched body, from the launcher's call until its slot is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) run: Run,
    pub(crate) id: WorkflowId,
    pub(crate) fence: Fence,
    /// With the id it names the execution, as the row shows it.
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) queue: Option<QueueName>,
    pub(crate) key: Option<PartitionKey>,
    /// It has been told to end, will not write and does not count as running; its slot may still be held.
    pub(crate) evicted: bool,
    pub(crate) told: Option<End>,
    pub(crate) notify: Arc<Notify>,
}

/// A launch, in the order of all launches.
#[derive(Clone, Debug)]
pub(crate) struct Launched {
    pub(crate) run: Run,
    pub(crate) at: Monotonic,
    pub(crate) claimed: ClaimedRow,
    /// Bodies of its queue in its process that were live then, this one included.
    pub(crate) running: usize,
}

/// Slots of one queue in one process, in all and for each partition key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    pub(crate) all: u32,
    pub(crate) keys: BTreeMap<PartitionKey, u32>,
}

impl Slots {
    fn add(&mut self, live: &Live) {
        self.all += 1;
        if let Some(key) = &live.key {
            *self.keys.entry(key.clone()).or_default() += 1;
        }
    }

    pub(crate) fn of(&self, key: &PartitionKey) -> u32 {
        self.keys.get(key).copied().unwrap_or(0)
    }
}

/// A claim as it passed the store's door.
#[derive(Clone, Debug)]
pub(crate) struct ClaimCall {
    pub(crate) run: Run,
    pub(crate) request: Claim,
    /// Slots of the queue held in that process when it passed.
    pub(crate) slots: Slots,
    /// Slots of the queue freed there since its last claim: some of them after this one was planned.
    pub(crate) freed: Slots,
    pub(crate) reply: Option<Claimed>,
}

/// One store call that wrote rows.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// The store's clock, where the reply told it.
    pub(crate) now: Option<Timestamp>,
    /// The claim that it was.
    pub(crate) claim: Option<(Run, Claim)>,
    /// The fences under which it wrote outcomes.
    pub(crate) outcomes: Vec<Fence>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Moves with every change.
    pub(crate) version: u64,
    pub(crate) next_body: u64,
    pub(crate) live: BTreeMap<u64, Live>,
    pub(crate) plans: BTreeMap<WorkflowId, Body>,
    pub(crate) launched: Vec<Launched>,
    pub(crate) fences: BTreeSet<Fence>,
    pub(crate) claims: Vec<ClaimCall>,
    /// Slots freed since the last claim, by process and queue.
    pub(crate) freed: BTreeMap<(Run, QueueName), Slots>,
    /// The fence of every execution that a process was told of, by row and start stamp.
    pub(crate) issued: BTreeMap<(WorkflowId, Timestamp), Fence>,
    /// Outcomes that the store accepted, by fence.
    pub(crate) settled: BTreeMap<Fence, u32>,
    /// What was seen and must never be.
    pub(crate) violations: Vec<String>,
    /// Processes that are up.
    pub(crate) alive: BTreeSet<Run>,
    /// Tokens of claims that passed for the first time.
    pub(crate) tokens: BTreeSet<Token>,
    /// Processes that were told to claim no more, and have confirmed it.
    pub(crate) stopped: BTreeSet<Run>,
    /// Whose executor an id is, once it has beaten.
    pub(crate) executors: BTreeMap<ExecutorId, Run>,
    /// Latest beat of an executor and when the store took it; a repeat moves nothing.
    pub(crate) beats: BTreeMap<ExecutorId, (u64, Monotonic)>,
    /// Stops of claims, by kind, and other facts that the statistics count.
    pub(crate) met: BTreeMap<&'static str, u64>,
    /// A store call has written rows since the checker looked last, and what it was.
    pub(crate) written: Option<Written>,
    /// Queues or versions may have changed.
    pub(crate) registry: bool,
    /// Faults are over: bodies end soon and well.
    pub(crate) calm: bool,
}

impl State {
    /// Slots of `queue` held in `run`, those of evicted bodies included.
    pub(crate) fn slots(&self, run: &Run, queue: &QueueName) -> Slots {
        let mut slots = Slots::default();
        self.of(run).filter(|live| live.queue.as_ref() == Some(queue)).for_each(|live| slots.add(live));
        slots
    }

    /// Bodies of `run` that hold a slot.
    pub(crate) fn of<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = &'a Live> + 'a {
        self.live.values().filter(move |live| live.run == *run)
    }

    /// Whether an execution has a live body, wherever it is.
    pub(crate) fn runs(&self, id: &WorkflowId, started_at: Option<Timestamp>) -> bool {
        self.live.values().any(|live| live.id == *id && live.started_at == started_at && !live.evicted)
    }

    pub(crate) fn note(&mut self, label: &'static str) {
        *self.met.entry(label).or_default() += 1;
    }

    /// Tells the checker that rows may have changed in this poll.
    pub(crate) fn wrote(&mut self, now: Option<Timestamp>, claim: Option<(Run, Claim)>) {
        let outcomes = Vec::new();
        self.wrote_all(Written { now, claim, outcomes });
    }

    pub(crate) fn wrote_all(&mut self, written: Written) {
        if self.written.replace(written).is_some() {
            self.violation("two writes in one poll: the checker cannot tell them apart".to_owned());
        }
    }

    pub(crate) fn violation(&mut self, text: String) {
        self.version += 1;
        self.violations.push(text);
    }
}

/// The shared observer.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    state: Arc<Mutex<State>>,
    tells: bool,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { state: Arc::default(), tells: std::env::var_os("MAINSTAY_SIM_TRACE").is_some() }
    }
}

impl Seen {
    /// Prints a line about what happens, when `MAINSTAY_SIM_TRACE` is set.
    #[allow(clippy::print_stdout, reason = "for the one who looks into a failing sequence")]
    pub(crate) fn tell_reader(&self, at: Monotonic, line: impl FnOnce() -> String) {
        if self.tells {
            println!("{:>10.3} {}", at.0.as_secs_f64(), line());
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a workflow's executions go.
    pub(crate) fn plan(&self, id: &WorkflowId) -> Body {
        let state = self.lock();
        let default = Body { run_ms: 10, end: End::Succeed, waits: false };
        state.plans.get(id).copied().unwrap_or(default)
    }

    /// Takes note of a launch and says what must not be: a second body of a fence, a second live body of an id.
    pub(crate) fn launch(&self, run: &Run, at: Monotonic, claimed: &ClaimedRow) -> Guard {
        let mut state = self.lock();
        let id = claimed.row.id.clone();
        if !state.fences.insert(claimed.fence.clone()) {
            state.violation(format!("invariant 2: {run:?} starts a second body for {:?}", claimed.fence));
        }
        let beside = state.of(run).find(|live| live.id == id && !live.evicted).map(|live| live.fence.clone());
        if let Some(fence) = beside {
            state.violation(format!("invariant 3: {run:?} starts {id} beside its live body of {fence:?}"));
        }
        if let Some(started) = claimed.row.started_at {
            state.issued.insert((id.clone(), started), claimed.fence.clone());
        }
        state.version += 1;
        state.next_body += 1;
        let number = state.next_body;
        let live = Live {
            run: run.clone(),
            id: id.clone(),
            fence: claimed.fence.clone(),
            started_at: claimed.row.started_at,
            queue: claimed.row.queue.clone(),
            key: claimed.row.key.clone(),
            evicted: false,
            told: None,
            notify: Arc::default(),
        };
        let queue = live.queue.clone();
        state.live.insert(number, live);
        let running = queue.map_or(0, |queue| {
            state.of(run).filter(|live| live.queue.as_ref() == Some(&queue) && !live.evicted).count()
        });
        state.launched.push(Launched { run: run.clone(), at, claimed: claimed.clone(), running });
        Guard { seen: self.clone(), number }
    }

    /// Marks the live body of an id as one that does not run on.
    pub(crate) fn evict(&self, run: &Run, id: &WorkflowId) -> Vec<u64> {
        let mut state = self.lock();
        state.version += 1;
        let bodies = state.live.iter_mut().filter(|(_, live)| live.run == *run && live.id == *id && !live.evicted);
        bodies
            .map(|(number, live)| {
                live.evicted = true;
                *number
            })
            .collect()
    }

    /// Tells the body to end, unless it is on its way already.
    pub(crate) fn tell(&self, number: u64, end: End) {
        let mut state = self.lock();
        if let Some(live) = state.live.get_mut(&number) {
            live.told.get_or_insert(end);
            live.notify.notify_waiters();
        }
    }

    /// Ends faults for the bodies: all that wait for a word end well.
    pub(crate) fn calm(&self) {
        let mut state = self.lock();
        state.calm = true;
        for live in state.live.values_mut() {
            live.told.get_or_insert(End::Succeed);
            live.notify.notify_waiters();
        }
    }
}

/// A body's place in the observer; dropped with the body, whatever its end.
#[derive(Debug)]
pub(crate) struct Guard {
    seen: Seen,
    number: u64,
}

impl Guard {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What this body was told, or the wait for a word.
    pub(crate) fn told(&self) -> (Option<End>, Arc<Notify>) {
        let state = self.seen.lock();
        state.live.get(&self.number).map_or_else(Default::default, |live| (live.told, live.notify.clone()))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.seen.lock();
        state.version += 1;
        let Some(live) = state.live.remove(&self.number) else { return };
        if let Some(queue) = &live.queue {
            state.freed.entry((live.run.clone(), queue.clone())).or_default().add(&live);
        }
    }
}
