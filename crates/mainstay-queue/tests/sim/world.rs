//! A simulated world: one store, some processes, a client, and the checks that follow every poll.

use crate::coverage::Met;
use crate::ledger::{Asked, Change, Ledger};
use crate::link::{Linked, Switch};
use crate::plan::{Member, Trap};
use crate::process::{Process, Up};
use crate::seen::{ClaimCall, Run, Seen, Written};
use crate::watch::{self, Watch};
use mainstay_env::{Monotonic, Sim, SimClock, Timestamp};
use mainstay_memory::{Memory, Trouble};
use mainstay_store::{
    Claim, Effect, Fence, Limits, OnConflict, PartitionKey, Queue, QueueName, RegisterQueue, Status, Stop, Store,
    StoreClock, Submit, Unit, UnitReply, WorkflowId, WorkflowRow, WriteStore,
};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Polls at one time after which something runs in circles.
const LIVELOCK: u64 = 200_000;

/// How long after faults a pending row may lie without a body: the last call may hang for 30 s, and then it takes a lease,
/// an audit and some rounds.
const IDLE_BOUND: Duration = Duration::from_secs(60);

/// The world.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) memory: Memory,
    /// The store as a client has it.
    pub(crate) client: Arc<dyn Store>,
    pub(crate) seen: Seen,
    pub(crate) processes: Vec<Process>,
    pub(crate) asked: Asked,
    pub(crate) ledger: Ledger,
    pub(crate) met: Met,
    pub(crate) traps: Vec<Trap>,
    /// Since when faults are over.
    pub(crate) calm: Option<Monotonic>,
    watch: Watch,
    checked: Checked,
    /// Rows claimed and not launched yet, with the process that holds them.
    unstarted: BTreeMap<WorkflowId, (Run, Option<Timestamp>)>,
    /// Since when a pending row has no body.
    idle: BTreeMap<WorkflowId, (Option<Timestamp>, Monotonic)>,
    violations: Vec<String>,
}

/// How far the observer's lists have been judged.
#[derive(Debug, Default)]
struct Checked {
    version: u64,
    launched: usize,
    claims: usize,
    /// Claims that are not answered yet.
    open: Vec<usize>,
}

impl World {
    pub(crate) fn new(seed: u64, trouble: Trouble) -> World {
        let sim = Sim::new(seed);
        sim.set_stall_polls(LIVELOCK);
        let clock: SimClock = sim.clock().clone();
        // The lines to the store yield instead of it, so that the checker sees every write alone.
        let trouble = Trouble { yields: false, ..trouble };
        let memory = Memory::troubled(sim.env("client"), StoreClock::Manual(clock), seed, trouble);
        let seen = Seen::default();
        let client = Linked {
            inner: Arc::new(memory.clone()),
            switch: Switch::default(),
            run: Run("client".into()),
            seen: seen.clone(),
            ttl: Duration::ZERO,
        };
        World {
            client: Arc::new(client),
            sim,
            memory,
            seen,
            processes: Vec::new(),
            asked: Asked::default(),
            ledger: Ledger::default(),
            met: Met::default(),
            traps: Vec::new(),
            calm: None,
            watch: Watch::default(),
            checked: Checked::default(),
            unstarted: BTreeMap::new(),
            idle: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Monotonic {
        mainstay_env::Clock::monotonic(self.sim.clock())
    }

    /// Adds a process that is not up yet.
    pub(crate) fn add(&mut self, member: Member) -> usize {
        let name = format!("p{}", self.processes.len());
        self.processes.push(Process::new(name, member));
        self.processes.len() - 1
    }

    pub(crate) fn launch(&mut self, process: usize) {
        if self.processes[process].up.is_none() {
            let config = self.processes[process].config();
            self.launch_with(process, config);
        }
    }

    /// Launches a process with settings of its own.
    pub(crate) fn launch_with(&mut self, process: usize, config: mainstay_queue::Config) {
        self.processes[process].start_with(&self.sim, &self.memory, &self.seen, config);
        self.seen.lock().alive.extend(self.processes[process].up.as_ref().map(|up| up.run.clone()));
    }

    pub(crate) fn up(&self, process: usize) -> Option<&Up> {
        self.processes[process].up.as_ref()
    }

    /// The engine that a test needs to be there: runs the world until it is launched.
    pub(crate) fn engine(&mut self, process: usize) -> mainstay_queue::Dispatch {
        for _ in 0..200 {
            if let Some(dispatch) = self.up(process).and_then(Up::dispatch) {
                return dispatch;
            }
            self.advance(Duration::from_millis(10));
        }
        panic!("the engine of process {process} is not launched");
    }

    /// Ends a process between two polls.
    pub(crate) fn crash(&mut self, process: usize) {
        let Some(up) = self.processes[process].up.take() else { return };
        let torn = self.unstarted.values().filter(|(run, _)| *run == up.run).count();
        self.met.add("crash between claim and start", torn as u64);
        self.unstarted.retain(|_, (run, _)| *run != up.run);
        self.note_faults(&up);
        self.seen.lock().alive.remove(&up.run);
        self.sim.kill(&self.processes[process].name);
        self.check();
    }

    /// Adds what the injected faults of a process did to the statistics.
    pub(crate) fn note_faults(&mut self, up: &Up) {
        use mainstay_store::wrap::{Fault, Method};
        self.met.add("lost acknowledgement", up.faults.total(Fault::After));
        self.met.add("lost claim acknowledgement", up.faults.count(Method::QueueClaim, Fault::After));
        self.met.add("failure before", up.faults.total(Fault::Before));
        self.met.add("delayed call", up.faults.total(Fault::Delay));
        self.met.add("hanging call", up.faults.total(Fault::Hang));
        self.met.add("failed read", up.switch.reads_failed());
    }

    /// Polls one task and judges what it did.
    pub(crate) fn step(&mut self) -> bool {
        let polled = self.sim.step();
        if polled {
            self.check();
        }
        polled
    }

    /// Polls so many tasks, or until none is ready.
    pub(crate) fn steps(&mut self, polls: u32) {
        for _ in 0..polls {
            self.step();
        }
    }

    pub(crate) fn settle(&mut self) {
        let mut polls = 0;
        while self.step() {
            polls += 1;
            assert!(polls < LIVELOCK, "livelock: {:?}", self.sim.live());
        }
    }

    /// Lets time pass, every task at its time.
    pub(crate) fn advance(&mut self, by: Duration) {
        let target = self.now() + by;
        self.settle();
        while self.sim.clock().next_due().is_some_and(|due| due <= target) {
            self.sim.clock().advance_to_next();
            self.settle();
            self.idle_rows();
        }
        self.sim.clock().advance_until(target);
        self.settle();
    }

    /// Lets time pass until `done`, at most for `limit`; says whether it came to that.
    pub(crate) fn until(&mut self, limit: Duration, mut done: impl FnMut(&mut World) -> bool) -> bool {
        let target = self.now() + limit;
        loop {
            self.settle();
            self.idle_rows();
            if done(self) {
                return true;
            }
            match self.sim.clock().next_due() {
                Some(due) if due <= target => drop(self.sim.clock().advance_to_next()),
                _ => return false,
            }
        }
    }

    /// Runs a call of the client among all other tasks.
    pub(crate) fn call<T: Send + 'static>(&mut self, call: impl Future<Output = T> + Send + 'static) -> T {
        let task = self.sim.env("client").tasks().spawn("client", call);
        while !task.is_finished() {
            if !self.step() {
                assert!(self.sim.clock().advance_to_next(), "the client waits for ever");
            }
        }
        instantly(task).expect("the client's call ends")
    }

    /// Commits one unit as a client.
    pub(crate) fn commit(&mut self, unit: Unit) -> UnitReply {
        let store = self.client.clone();
        let committed = self.call(async move { store.commit(&[unit]).await });
        committed.expect("a client's commit").units.remove(0).expect("a unit that is valid")
    }

    /// Commits one unit between two polls of everything else.
    pub(crate) fn commit_now(&mut self, unit: Unit) -> UnitReply {
        let committed = instantly(self.memory.commit(&[unit]));
        self.seen.lock().wrote(None, None);
        self.check();
        committed.expect("a client's commit").units.remove(0).expect("a unit that is valid")
    }

    pub(crate) fn submit(&mut self, submit: Submit) -> UnitReply {
        self.asked.submitted.insert(submit.id.clone());
        self.asked.deleted.remove(&submit.id);
        self.commit(Unit::new().effect(submit))
    }

    pub(crate) fn cancel(&mut self, id: &WorkflowId) {
        self.asked.cancelled.insert(id.clone());
        self.commit(Unit::new().effect(Effect::Cancel { ids: vec![id.clone()], children: false }));
    }

    pub(crate) fn resume(&mut self, id: &WorkflowId, queue: Option<QueueName>, force: bool) -> UnitReply {
        self.asked.resumed.insert(id.clone());
        self.commit(Unit::new().effect(Effect::Resume { ids: vec![id.clone()], queue, force }))
    }

    pub(crate) fn delete(&mut self, id: &WorkflowId) {
        self.asked.deleted.insert(id.clone());
        self.commit(Unit::new().effect(Effect::Delete { ids: vec![id.clone()], children: false }));
    }

    /// Registers a queue of the application `shop`, or replaces its limits.
    pub(crate) fn queue(&mut self, name: &str, limits: Limits) {
        self.register(RegisterQueue::new(name, "shop").limits(limits));
    }

    pub(crate) fn register(&mut self, request: RegisterQueue) {
        let store = self.client.clone();
        let request = request.on_conflict(OnConflict::Update);
        self.call(async move { store.queue_register(request).await }).expect("a queue is registered");
    }

    /// Stores a queue unchecked, as another program may have written it.
    pub(crate) fn put_queue(&mut self, queue: Queue) {
        instantly(self.memory.put_queue(queue)).expect("a queue is stored");
        self.seen.lock().registry = true;
        self.check();
    }

    pub(crate) fn row(&self, id: &WorkflowId) -> Option<&WorkflowRow> {
        self.ledger.rows.get(id)
    }

    pub(crate) fn status(&self, id: &WorkflowId) -> Option<Status> {
        self.row(id).map(|row| row.status)
    }

    pub(crate) fn queues(&self) -> &BTreeMap<QueueName, Queue> {
        self.watch.queues()
    }

    pub(crate) fn latest(&self) -> &Watch {
        &self.watch
    }

    /// Rows in one state.
    pub(crate) fn count(&self, status: Status) -> usize {
        self.ledger.rows.values().filter(|row| row.status == status).count()
    }
}

/// The checks.
impl World {
    /// Judges everything that has happened since the last call.
    pub(crate) fn check(&mut self) {
        let (written, registry, version) = {
            let mut seen = self.seen.lock();
            (seen.written.take(), std::mem::take(&mut seen.registry), seen.version)
        };
        if registry {
            self.watch.look(&self.memory);
        }
        if let Some(Written { now, claim, outcomes }) = written {
            let at = now.unwrap_or_else(|| mainstay_env::Clock::now(self.sim.clock()));
            let changes = watch::changes(&self.ledger.rows, &self.memory, at);
            self.outcomes(&changes, &outcomes);
            self.rows_changed(&changes, claim);
        }
        if version != self.checked.version {
            self.checked.version = version;
            self.launches();
            self.claims();
        }
        self.spring();
    }

    /// An outcome is written by the execution that the row is in, and by no other.
    fn outcomes(&mut self, changes: &[Change], fences: &[Fence]) {
        let seen = self.seen.lock();
        let ended = changes.iter().filter_map(|change| change.before.as_ref().zip(change.after.as_ref()));
        let ended = ended.filter(|(_, after)| matches!(after.status, Status::Success | Status::Error));
        for (before, after) in ended.filter(|(before, after)| before.status != after.status) {
            let current = before.started_at.and_then(|at| seen.issued.get(&(before.id.clone(), at)));
            if !current.is_some_and(|fence| fences.contains(fence)) {
                let text = format!("{} was {} by {fences:?}, its fence is {current:?}", before.id, after.status);
                self.violations.push(format!("invariant 2: {text}"));
            }
        }
    }

    fn rows_changed(&mut self, changes: &[Change], claim: Option<(Run, Claim)>) {
        {
            let around = self.watch.around(claim.as_ref().map(|(_, claim)| claim));
            self.ledger.take(changes, &self.asked, around);
        }
        for change in changes {
            let Some(after) = change.after.as_ref().filter(|row| row.status == Status::Pending) else { continue };
            let was_pending = change.before.as_ref().is_some_and(|row| row.status == Status::Pending);
            if let (Some((run, _)), false) = (&claim, was_pending) {
                self.unstarted.insert(after.id.clone(), (run.clone(), after.started_at));
            }
        }
        let rows = &self.ledger.rows;
        self.unstarted.retain(|id, (_, started)| {
            rows.get(id).is_some_and(|row| row.status == Status::Pending && row.started_at == *started)
        });
    }

    /// A body starts for a fence that was the row's in this claim, and within the process limit of that claim.
    fn launches(&mut self) {
        let seen = self.seen.lock();
        for launched in &seen.launched[self.checked.launched..] {
            let row = &launched.claimed.row;
            self.unstarted.remove(&row.id);
            let limit = row.started_at.and_then(|at| self.ledger.worker_limit.get(&(row.id.clone(), at)));
            if let Some(limit) = limit.filter(|limit| launched.running > **limit as usize) {
                let text = format!("{:?} runs {} of {:?}, limit {limit}", launched.run, launched.running, row.queue);
                self.violations.push(format!("invariant 10: {text}"));
            }
        }
        self.checked.launched = seen.launched.len();
    }

    /// A claim counts exactly the slots of its process.
    fn claims(&mut self) {
        let seen = self.seen.lock();
        self.checked.open.extend(self.checked.claims..seen.claims.len());
        self.checked.claims = seen.claims.len();
        let violations = &mut self.violations;
        self.checked.open.retain(|number| {
            let call = &seen.claims[*number];
            let answered = call.reply.as_ref();
            // One that was held up until its lease was gone counted for another time.
            if answered.is_some_and(|reply| reply.stop != Stop::Unleased) {
                violations.extend(miscounted(call));
            }
            answered.is_none()
        });
    }

    /// Since when pending rows lie without a body; after faults not for long.
    fn idle_rows(&mut self) {
        let Some(calm) = self.calm else { return };
        let now = self.now();
        let seen = self.seen.lock();
        let pending = self.ledger.rows.values().filter(|row| row.status == Status::Pending);
        let idle: Vec<_> = pending.filter(|row| !seen.runs(&row.id, row.started_at)).collect();
        let mut still = BTreeMap::new();
        for row in idle {
            let since = match self.idle.get(&row.id) {
                Some((started, since)) if *started == row.started_at => *since,
                _ => now,
            };
            if now.since(since.max(calm)) > IDLE_BOUND {
                let text = format!("{} of {:?} is pending and runs nowhere since {since:?}", row.id, row.executor);
                self.violations.push(format!("invariant 22: {text}"));
            }
            still.insert(row.id.clone(), (row.started_at, since));
        }
        self.idle = still;
    }

    /// Springs a trap as soon as a claim has taken a row that is not started.
    fn spring(&mut self) {
        if self.traps.is_empty() {
            return;
        }
        let Some((id, (run, _))) = self.unstarted.iter().next().map(|(id, held)| (id.clone(), held.clone())) else {
            return;
        };
        let trap = self.traps.remove(0);
        let process = self.processes.iter().position(|process| process.up.as_ref().is_some_and(|up| up.run == run));
        let Some(process) = process else { return };
        match trap {
            Trap::Crash => self.crash(process),
            Trap::Cut => self.processes[process].up.iter().for_each(|up| up.switch.cut()),
            Trap::Cancel => {
                self.met.note("cancel between claim and start");
                self.asked.cancelled.insert(id.clone());
                self.commit_now(Unit::new().effect(Effect::Cancel { ids: vec![id], children: false }));
            }
            Trap::Resume => {
                self.met.note("resume between claim and start");
                self.asked.resumed.insert(id.clone());
                let queue = self.row(&id).and_then(|row| row.queue.clone());
                self.commit_now(Unit::new().effect(Effect::Resume { ids: vec![id], queue, force: true }));
            }
            Trap::Delete => {
                self.met.note("delete between claim and start");
                self.asked.deleted.insert(id.clone());
                self.commit_now(Unit::new().effect(Effect::Delete { ids: vec![id], children: false }));
            }
        }
    }

    /// Everything that was seen and must never be.
    pub(crate) fn violations(&mut self) -> Vec<String> {
        let mut all = std::mem::take(&mut self.violations);
        all.append(&mut self.ledger.violations);
        let mut seen = self.seen.lock();
        all.append(&mut seen.violations);
        let twice = seen.settled.iter().filter(|(_, times)| **times > 1);
        all.extend(twice.map(|(fence, times)| format!("invariant 2: {fence:?} wrote {times} outcomes")));
        drop(seen);
        let panics = self.sim.panics().into_iter().filter(|panic| !panic.contains("planned"));
        all.extend(panics.map(|panic| format!("a task panicked: {panic}")));
        all
    }

    /// Fails with everything that was seen and must never be.
    #[track_caller]
    pub(crate) fn assert_sound(&mut self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "{}", violations.join("\n"));
    }
}

/// What is wrong with the counts of a claim: slots that ended since the last one may still be in them, and no others.
fn miscounted(call: &ClaimCall) -> Option<String> {
    if call.request.repeat {
        return None;
    }
    let local = &call.request.local;
    let fits = |counted: u32, held: u32, freed: u32| (held..=held + freed).contains(&counted);
    let mut keys = local.keys.keys().chain(call.slots.keys.keys());
    let wrong = |key: &&PartitionKey| {
        let counted = local.keys.get(*key).copied().unwrap_or(0);
        !fits(counted, call.slots.of(key), call.freed.of(key))
    };
    let invariant = if !fits(local.running, call.slots.all, call.freed.all) {
        "21"
    } else if keys.any(|key| wrong(&key)) {
        "11"
    } else if local.keys.values().sum::<u32>() > local.running {
        "20"
    } else {
        return None;
    };
    let (run, queue) = (&call.run, &call.request.queue);
    Some(format!(
        "invariant {invariant}: {run:?} claims on {queue} with {local:?}, held {:?}, freed {:?}",
        call.slots, call.freed
    ))
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("sim", &self.sim).field("rows", &self.ledger.rows).finish_non_exhaustive()
    }
}

/// Drives a call that waits for nothing to its end, while everything else stands still.
pub(crate) fn instantly<T>(call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        if let Poll::Ready(value) = call.as_mut().poll(&mut cx) {
            return value;
        }
    }
    panic!("the call waits for something");
}
