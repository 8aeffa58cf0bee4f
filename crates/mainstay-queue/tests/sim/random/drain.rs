//! Faults stop, dead processes come back, and everything that may run must run to its end.

use super::play::{Game, full_fleet};
use crate::ledger::ineligible;
use crate::plan::{QUEUES, QueuePlan};
use crate::world::World;
use mainstay_store::wire::INTERNAL_QUEUE;
use mainstay_store::{Claim, Queue, QueueName, Registered, Status, WorkflowRow};
use std::time::Duration;

/// Time that a drain may take where no rate holds it back: a call that hangs, leases of the dead, an audit, the bodies.
const PLAIN: Duration = Duration::from_secs(90);

/// Longest time that a call may hang.
const HANG: Duration = Duration::from_secs(31);

/// Ends the faults and demands the drain, first of the queues that are there, then of those that were deleted.
pub(super) fn drain(game: &mut Game) {
    game.world.traps.clear();
    game.world.seen.calm();
    game.world.calm = Some(game.world.now());
    for process in 0..game.world.processes.len() {
        heal(&mut game.world, process);
    }
    for member in full_fleet() {
        let process = game.world.add(member);
        game.world.launch(process);
    }
    let open = QueuePlan { concurrency: 0, worker: 0, rate: 0, period_ms: 1000, polling_ms: 1000 };
    let rests = |queue: &Queue| [queue.stored.concurrency, queue.stored.worker_concurrency].contains(&Some(0));
    for (queue, name) in QUEUES.iter().enumerate() {
        if game.world.queues().get(*name).is_some_and(rests) {
            game.register(queue as u8, open);
        }
    }
    demand(&mut game.world, "");
    let gone = QUEUES.iter().enumerate().filter(|(_, name)| !game.world.queues().contains_key(**name));
    let gone: Vec<u8> = gone.map(|(queue, _)| queue as u8).collect();
    if !gone.is_empty() {
        for queue in &gone {
            game.register(*queue, open);
        }
        demand(&mut game.world, " after its queue came back");
    }
    at_rest(&mut game.world);
    if let Err(error) = game.world.memory.check_invariants() {
        game.world.seen.lock().violation(format!("the store is not sound: {error}"));
    }
}

/// Ends what holds a process back; one that stopped claiming, and one that is down, starts anew.
fn heal(world: &mut World, process: usize) {
    if let Some(up) = world.up(process).cloned() {
        up.faults.stop();
        up.switch.mend();
        up.launcher.unstall();
        if world.seen.lock().stopped.contains(&up.run) {
            world.crash(process);
        }
    }
    world.processes[process].member.faults = 0;
    world.launch(process);
}

/// Waits until nothing is left that may run; what is left at the bound is named.
fn demand(world: &mut World, when: &str) {
    let begun = world.now();
    let bound = PLAIN + rated(world);
    let drained = world.until(bound, |world| left(world).is_empty() && world.seen.lock().live.is_empty());
    let took = world.now().since(begun);
    world.met.add("drain, seconds", took.as_secs());
    if !drained {
        let left: Vec<String> = left(world).iter().map(|row| format!("{row:?}")).collect();
        let live = world.seen.lock().live.len();
        let text =
            format!("52: {live} bodies and these rows are left {took:?} after faults{when}:\n{}", left.join("\n"));
        world.seen.lock().violation(format!("invariant {text}"));
    }
}

/// Time that the rates of the queues need for the rows on them.
fn rated(world: &World) -> Duration {
    let of = |queue: &Queue| {
        let rows = world.ledger.rows.values().filter(|row| row.queue.as_ref() == Some(&queue.name));
        let open = rows.filter(|row| !row.status.is_ended()).count() as u32;
        queue.limits().rate.map_or(Duration::ZERO, |rate| rate.period * (4 * open / rate.starts + 1))
    };
    world.queues().values().map(of).max().unwrap_or_default()
}

/// Rows that some process of the full fleet may run on a queue that is there, and those that run.
fn left(world: &World) -> Vec<&WorkflowRow> {
    world.ledger.rows.values().filter(|row| row.status == Status::Pending || waits(world, row)).collect()
}

fn waits(world: &World, row: &WorkflowRow) -> bool {
    let Some(queue) = &row.queue else { return false };
    let there = *queue == *INTERNAL_QUEUE || world.queues().contains_key(queue);
    there && matches!(row.status, Status::Enqueued | Status::Delayed) && world.served(row, queue)
}

/// No slot is held, no place is taken, and no engine counts anything, once the last hanging call has ended.
fn at_rest(world: &mut World) {
    let rests = |world: &mut World| counts(world).is_empty();
    if !world.until(HANG, rests) {
        let counts = counts(world).join("\n");
        world.seen.lock().violation(format!("invariant 20: at rest there are still counts:\n{counts}"));
    }
}

/// What the engines count, for those that count anything.
fn counts(world: &World) -> Vec<String> {
    let ups = world.processes.iter().filter_map(|process| process.up.as_ref());
    let stats = ups.filter_map(|up| Some((&up.run, up.dispatch()?.stats())));
    let busy = stats.filter(|(_, stats)| stats.running != 0 || stats.active != 0 || !stats.queues.is_empty());
    busy.map(|(run, stats)| format!("{run:?} {stats:?}")).collect()
}

impl World {
    /// Whether a process that is up would be allowed to claim this row, limits aside, once it is due.
    pub(crate) fn served(&self, row: &WorkflowRow, queue: &QueueName) -> bool {
        let mut enqueued = row.clone();
        enqueued.status = Status::Enqueued;
        let owner = self.queues().get(queue).and_then(|queue| queue.app.clone());
        self.processes.iter().filter(|process| process.up.is_some()).any(|process| {
            let member = &process.member;
            let polls = owner.as_ref().is_none_or(|owner| *owner == member.app());
            let names = member.knows().map(Registered::new).collect();
            let claim = Claim::new(queue.clone(), "any", member.app(), member.version(), "any").names(names);
            polls && ineligible(&enqueued, &claim, self.latest()).is_none()
        })
    }
}
