//! Plays one sequence.

use super::drain::drain;
use crate::coverage::Met;
use crate::plan::{Action, End, Hints, Member, New, QUEUES, QueuePlan, Sequence, VERSIONS};
use crate::world::World;
use mainstay_memory::Trouble;
use mainstay_queue::Begun;
use mainstay_store::{Change, Effect, QueueChange, Rate, Unit, UpdateQueue};
use mainstay_store::{
    ClaimedRow, Created, EffectReply, Input, Joining, OnConflict, OnHeld, Place, QueueName, RegisterQueue, Status,
    Steps, Submit, UnitReply, When, WorkflowId, WorkflowRow, WriteExt,
};
use proptest::sample::Index;
use std::time::Duration;

/// How long a shutdown may wait for what runs.
const SHUTDOWN: Duration = Duration::from_secs(3);
/// What a shutdown may take beyond that: it ends its lease over a store that may hang.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

/// What came of a sequence.
pub(super) struct Played {
    pub(super) met: Met,
    pub(super) violations: Vec<String>,
}

/// A sequence on its way.
pub(super) struct Game {
    pub(super) world: World,
    pub(super) submits: Vec<Submit>,
}

/// Plays a sequence to its end, or to the first action after which something is wrong.
pub(super) fn play(sequence: &Sequence) -> Played {
    let mut game = Game::new(sequence);
    for action in &sequence.actions {
        game.world.met.note(action.label());
        game.act(action);
        let violations = game.world.violations();
        if !violations.is_empty() {
            return game.end(violations);
        }
    }
    drain(&mut game);
    let violations = game.world.violations();
    game.end(violations)
}

impl Game {
    fn new(sequence: &Sequence) -> Game {
        let trouble = match sequence.hints {
            Hints::Kind => Trouble::none(),
            Hints::Rough => Trouble { lost: 0.3, doubled: 0.2, contended: 0.1, ..Trouble::default() },
            Hints::Silent => Trouble::silent(),
        };
        let mut game = Game { world: World::new(sequence.seed, trouble), submits: Vec::new() };
        for member in &sequence.fleet {
            game.world.add(member.clone());
        }
        for (queue, plan) in sequence.queues.iter().enumerate() {
            game.register(queue as u8, *plan);
        }
        if !sequence.seed.is_multiple_of(3) {
            game.promote(0);
        }
        for (process, member) in sequence.fleet.iter().enumerate() {
            if member.up {
                game.world.launch(process);
            }
        }
        game.world.settle();
        game
    }

    fn end(mut self, violations: Vec<String>) -> Played {
        let ups: Vec<_> = self.world.processes.iter().filter_map(|process| process.up.clone()).collect();
        for up in &ups {
            self.world.note_faults(up);
        }
        let mut met = std::mem::take(&mut self.world.met);
        let seen = self.world.seen.lock();
        for (label, count) in &seen.met {
            met.add(label, *count);
            if label.starts_with("limit: ") {
                met.add("limit: any", *count);
            }
        }
        met.add("rows", self.world.ledger.rows.len() as u64);
        met.add("claims sent", seen.claims.len() as u64);
        met.add("flips", self.world.ledger.flips);
        met.add("returns", self.world.ledger.returns);
        met.add("parked", self.world.ledger.parked);
        met.add("polls", self.world.sim.polls());
        drop(seen);
        Played { met, violations }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Enqueue(new) => self.enqueue(std::slice::from_ref(new)),
            Action::Batch(count, new) => self.enqueue(&vec![new.clone(); usize::from(*count)]),
            Action::Again(at) => self.again(*at),
            Action::SetDelay(at, delay) => self.set_delay(*at, *delay),
            Action::Direct(process, new) => self.direct(usize::from(*process), new),
            Action::Advance(ms) => self.world.advance(Duration::from_millis(u64::from(*ms))),
            Action::End(at, end) => self.tell(*at, *end),
            Action::Cancel(at) => self.with_id(*at, |world, id| world.cancel(id)),
            Action::Resume(at, force) => {
                let force = *force;
                let home = self.pick(*at).map(queue_of);
                self.with_id(*at, |world, id| drop(world.resume(id, home, force)));
            }
            Action::Delete(at) => self.with_id(*at, |world, id| world.delete(id)),
            Action::Register(queue, plan) => self.register(*queue, *plan),
            Action::Update(queue, plan) => self.update(*queue, *plan),
            Action::Pause(queue, fleet) => self.pause(*queue, *fleet),
            Action::DeleteQueue(queue) => self.delete_queue(*queue),
            Action::Promote(version) => self.promote(usize::from(*version)),
            Action::Launch(process) => self.each(*process, |world, process| world.launch(process)),
            Action::Crash(process, polls) => {
                self.world.steps((*polls).into());
                self.each(*process, |world, process| world.crash(process));
            }
            Action::Set(trap) => self.world.traps.push(*trap),
            Action::Shutdown(process) => self.each(*process, shutdown),
            other => self.line(other),
        }
    }

    /// Actions on the line or the launcher of one process that is up.
    fn line(&mut self, action: &Action) {
        let process = match action {
            Action::Cut(process) | Action::Mend(process) | Action::FailNext(process, ..) => process,
            Action::FailReads(process) | Action::Stall(process) | Action::Unstall(process) => process,
            Action::StopClaiming(process) => process,
            _ => return,
        };
        let process = usize::from(*process) % self.world.processes.len();
        let Some(up) = self.world.up(process).cloned() else { return };
        match action {
            Action::Cut(_) => up.switch.cut(),
            Action::Mend(_) => up.switch.mend(),
            Action::FailNext(_, call, fail) => up.fail_next(*call, *fail),
            Action::FailReads(_) => up.switch.fail_reads(12),
            Action::Stall(_) => up.launcher.stall(),
            Action::Unstall(_) => up.launcher.unstall(),
            Action::StopClaiming(_) => stop_claiming(&mut self.world, &up),
            _ => {}
        }
    }

    fn each(&mut self, process: u8, act: impl FnOnce(&mut World, usize)) {
        let process = usize::from(process) % self.world.processes.len();
        act(&mut self.world, process);
    }

    fn pick(&self, at: Index) -> Option<&Submit> {
        (!self.submits.is_empty()).then(|| at.get(&self.submits))
    }

    fn with_id(&mut self, at: Index, act: impl FnOnce(&mut World, &WorkflowId)) {
        if let Some(id) = self.pick(at).map(|submit| submit.id.clone()) {
            act(&mut self.world, &id);
        }
    }

    fn request(&mut self, new: &New, place: Place) -> Submit {
        let number = self.submits.len();
        let (id, token) = (format!("w{number:04}"), format!("t{number:04}"));
        let mut submit = Submit::new(id, new.name(), token, place).priority(i32::from(new.priority));
        submit.version = new.version();
        submit.app = new.app();
        submit.timeout = (new.timeout_ms > 0).then(|| Duration::from_millis(u64::from(new.timeout_ms)));
        let on_held = if new.dedup == 1 { OnHeld::Reject } else { OnHeld::Join };
        let queued = matches!(submit.place, Place::Queue { .. });
        submit.dedup = (new.dedup > 0 && queued).then(|| Joining { key: format!("key{}", new.dedup).into(), on_held });
        self.world.seen.lock().plans.insert(submit.id.clone(), new.body);
        self.submits.push(submit.clone());
        submit
    }

    fn enqueue(&mut self, all: &[New]) {
        let units: Vec<Unit> = all
            .iter()
            .map(|new| {
                let delay = (new.delay_ms > 0).then(|| When::In(Duration::from_millis(u64::from(new.delay_ms))));
                // A row has a partition or a deduplication key, not both.
                let key = (new.key > 0 && new.dedup == 0).then(|| format!("k{}", new.key).into());
                let place = Place::Queue { name: new.queue(), key, delay };
                Unit::new().effect(self.request(new, place))
            })
            .collect();
        let count = all.len();
        let ids: Vec<_> = self.submits[self.submits.len() - count..].iter().map(|submit| submit.id.clone()).collect();
        self.world.asked.submitted.extend(ids.iter().cloned());
        let store = self.world.client.clone();
        let committed = self.world.call(async move { mainstay_store::WriteStore::commit(&*store, &units).await });
        let replies = committed.expect("a client's batch").units;
        for (id, reply) in ids.iter().zip(replies) {
            match reply.expect("a valid unit") {
                UnitReply::Done { .. } => {}
                UnitReply::Refused { .. } => drop(self.world.asked.submitted.remove(id)),
                other => self.world.seen.lock().violation(format!("a submit was answered {other:?}")),
            }
        }
    }

    /// The same submit once more, as after a lost answer: it changes nothing of a row that is there.
    fn again(&mut self, at: Index) {
        let Some(submit) = self.pick(at).cloned() else { return };
        let Place::Queue { .. } = submit.place else { return };
        let before = self.world.row(&submit.id).is_some();
        let refused = matches!(self.world.submit(submit.clone()), UnitReply::Refused { .. });
        if refused && !before {
            self.world.asked.submitted.remove(&submit.id);
        }
    }

    fn set_delay(&mut self, at: Index, delay: u16) {
        let Some(id) = self.pick(at).map(|submit| submit.id.clone()) else { return };
        self.world.asked.moved_delay.insert(id.clone());
        let delay = When::In(Duration::from_millis(u64::from(delay)));
        self.world.commit(Unit::new().effect(Effect::SetDelay { id, delay }));
    }

    /// Starts a workflow at once in a process that has a place, else on the internal queue.
    fn direct(&mut self, process: usize, new: &New) {
        let process = process % self.world.processes.len();
        let Some((up, dispatch)) = self.world.up(process).and_then(|up| Some((up.clone(), up.dispatch()?))) else {
            return;
        };
        let knows = self.world.processes[process].member.knows().any(|name| name == new.name());
        if !knows {
            return;
        }
        let id = WorkflowId::from(format!("w{:04}", self.submits.len()));
        let begun = dispatch.begin(&id);
        let (place, here) = match begun {
            Begun::Here { executor, slot } => (Place::Run(executor), Some(slot)),
            _ => (Place::queue(mainstay_store::wire::INTERNAL_QUEUE), None),
        };
        if here.is_none() {
            self.world.met.note("limit: direct start");
        }
        let mut submit = self.request(new, place);
        submit.app = Some(self.world.processes[process].member.app());
        submit.version = Some(self.world.processes[process].member.version());
        self.world.asked.submitted.insert(submit.id.clone());
        let task = async move {
            let reply = up.store.submit(submit.clone()).await;
            let (Ok(UnitReply::Done { effects }), Some(slot)) = (reply, here) else { return };
            let Some(EffectReply::Created(created)) = effects.into_iter().next() else { return };
            let Some(fence) = created.fence.clone() else { return };
            // A later execution of the row may have begun here while the answer was on its way.
            if slot.bind(&fence) {
                let claimed =
                    ClaimedRow::new(begun_row(&submit, &created), fence, Input::Missing, Steps::Complete(vec![]));
                mainstay_queue::Launcher::launch(&*up.launcher, mainstay_queue::Work::new(claimed, slot));
            }
        };
        let env = self.world.processes[process].up.as_ref().map(|up| up.env.clone());
        if let Some(env) = env {
            drop(env.tasks().spawn("direct start", task));
        }
    }

    fn tell(&mut self, at: Index, end: End) {
        let bodies: Vec<u64> = self.world.seen.lock().live.keys().copied().collect();
        if !bodies.is_empty() {
            self.world.seen.tell(*at.get(&bodies), if end == End::Never { End::Control } else { end });
        }
    }

    pub(super) fn register(&mut self, queue: u8, plan: QueuePlan) {
        let name = QUEUES[usize::from(queue) % QUEUES.len()];
        let request = RegisterQueue::new(name, "shop").limits(plan.limits()).polling(plan.polling());
        self.world.register(request.on_conflict(OnConflict::Update));
    }

    fn update(&mut self, queue: u8, plan: QueuePlan) {
        let name = QUEUES[usize::from(queue) % QUEUES.len()];
        let limits = plan.limits();
        let change = QueueChange {
            concurrency: set(limits.concurrency),
            worker_concurrency: set(limits.worker_concurrency),
            rate: set::<Rate>(limits.rate),
            ..QueueChange::default()
        };
        let store = self.world.client.clone();
        let request = UpdateQueue::new(name, "shop", change);
        self.world.call(async move { store.queue_update(request).await }).expect("an update is answered");
    }

    fn pause(&mut self, queue: u8, fleet: bool) {
        let name = QUEUES[usize::from(queue) % QUEUES.len()];
        let Some(mut stored) = self.world.queues().get(name).cloned() else { return };
        let limit = if fleet { &mut stored.stored.concurrency } else { &mut stored.stored.worker_concurrency };
        *limit = Some(0);
        self.world.put_queue(stored);
    }

    fn delete_queue(&mut self, queue: u8) {
        let name = QueueName::from(QUEUES[usize::from(queue) % QUEUES.len()]);
        let store = self.world.client.clone();
        self.world.call(async move { store.queue_delete(&"shop".into(), &name).await }).expect("a delete is answered");
    }

    fn promote(&mut self, version: usize) {
        let version = mainstay_store::VersionName::from(VERSIONS[version % VERSIONS.len()]);
        let store = self.world.client.clone();
        let call = async move {
            store.version_register(&"shop".into(), &version).await?;
            store.version_promote(&"shop".into(), &version).await
        };
        self.world.call(call).expect("a promotion is answered");
    }
}

/// The row of a direct start as its submit has made it.
fn begun_row(submit: &Submit, created: &Created) -> WorkflowRow {
    let at = created.created_at;
    let mut row = WorkflowRow::new(submit.id.clone(), submit.name.clone(), Status::Pending, at, at);
    (row.started_at, row.attempts) = (Some(at), 1);
    (row.app, row.version) = (submit.app.clone(), submit.version.clone());
    if let Place::Run(executor) = &submit.place {
        row.executor = Some(executor.clone());
    }
    row
}

fn set<T: Copy>(limit: Option<T>) -> Change<T> {
    limit.map_or(Change::Clear, Change::Set)
}

fn queue_of(submit: &Submit) -> QueueName {
    match &submit.place {
        Place::Queue { name, .. } => name.clone(),
        Place::Run(_) => QueueName::from(mainstay_store::wire::INTERNAL_QUEUE),
    }
}

fn stop_claiming(world: &mut World, up: &crate::process::Up) {
    let Some(dispatch) = up.dispatch() else { return };
    let (seen, run) = (world.seen.clone(), up.run.clone());
    drop(up.env.tasks().spawn("stop claiming", async move {
        dispatch.stop_claiming().await;
        seen.lock().stopped.insert(run);
    }));
}

/// Shuts an engine down in a task of its process, and holds it to its deadline.
fn shutdown(world: &mut World, process: usize) {
    let Some((up, dispatch)) = world.up(process).and_then(|up| Some((up.clone(), up.dispatch()?))) else { return };
    let (seen, run, env) = (world.seen.clone(), up.run.clone(), up.env.clone());
    drop(up.env.tasks().spawn("shutdown", async move {
        let begun = env.monotonic();
        let drained = dispatch.shutdown(SHUTDOWN).await;
        let took = env.monotonic().since(begun);
        let mut state = seen.lock();
        state.stopped.insert(run.clone());
        if took > SHUTDOWN + SHUTDOWN_GRACE {
            state.violation(format!("{run:?} took {took:?} to shut down, ended {}", drained.ended));
        }
    }));
}

/// Members that together serve every row that any process may serve.
pub(super) fn full_fleet() -> Vec<Member> {
    let member = |app, version| Member { app, version, names: 7, max_running: 1024, faults: 0, up: true };
    vec![member(0, 0), member(0, 1), member(1, 0)]
}
