//! What becomes of rows whose execution is gone: found, returned to their own queue, and begun again at most so often.

use crate::plan::{Call, End, Fail, MAX_ATTEMPTS, Member};
use crate::tools::{check, concurrency, ends, ms, name, row, runs, secs, shop};
use crate::world::World;
use mainstay_store::{Limits, Place, QueueName, Status, Submit};
use proptest::prelude::*;

/// A lease, its beat, a round and the jitter of each.
const TAKE_OVER: std::time::Duration = secs(15);

#[test]
fn a_row_that_never_ends_is_begun_as_often_as_allowed_and_then_parked() {
    let end = prop_oneof![Just(End::Panic), Just(End::Control)];
    check(20, (any::<u64>(), end, any::<bool>()), |(seed, end, crash)| {
        let mut world = World::kind(seed);
        world.queue("red", concurrency(1));
        let process = world.serve(shop());
        let poison = world.enqueue(row("a", "red"), ends(10, end));
        let behind = world.enqueue(row("b", "red"), runs(10));
        if crash {
            world.advance(secs(1));
            world.crash(process);
            world.launch(process);
        }
        assert!(world.until(secs(120), |world| world.status(&poison) == Some(Status::Parked)));
        assert_eq!(world.starts(&poison).len(), MAX_ATTEMPTS as usize);
        world.ended(&[behind], secs(5));
        world.advance(secs(30));
        assert_eq!(world.starts(&poison).len(), MAX_ATTEMPTS as usize, "a parked row is left alone");
        world.resume(&poison, Some(name("red")), false);
        assert!(world.until(secs(120), |world| world.status(&poison) == Some(Status::Parked)), "as often again");
        assert_eq!(world.starts(&poison).len(), 2 * MAX_ATTEMPTS as usize);
        world.assert_sound();
    });
}

#[test]
fn a_row_that_runs_nowhere_gives_its_fleet_slot_up_within_seconds_or_a_lease() {
    for (dies, bound) in [(false, secs(7)), (true, TAKE_OVER)] {
        check(20, any::<u64>(), |seed| {
            let mut world = World::kind(seed);
            world.queue("red", concurrency(1));
            let process = world.serve(shop());
            world.serve(shop());
            // It ends the first time without a word, and then well.
            let first = world.enqueue(row("a", "red"), ends(0, End::Never));
            assert!(world.until(secs(3), |world| world.running("red") == 1));
            let behind = world.enqueue(row("b", "red").priority(1), runs(5));
            let holder = world.launched()[0].run.clone();
            let at = world.processes.iter().position(|process| process.up.as_ref().is_some_and(|up| up.run == holder));
            world.seen.lock().plans.insert(first.clone(), runs(5));
            if dies {
                world.crash(at.unwrap_or(process));
            } else {
                let body = *world.seen.lock().live.keys().next().expect("a body");
                world.seen.tell(body, End::Control);
            }
            world.ended(&[first, behind], bound + secs(1));
            world.assert_sound();
        });
    }
}

#[test]
fn recovery_returns_a_row_to_its_own_queue_or_to_the_internal_one_and_once() {
    check(30, (any::<u64>(), 2..4usize), |(seed, rescuers)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let process = world.serve(shop());
        let queued = world.enqueue(row("queued", "red").priority(3), ends(0, End::Never));
        let internal = world.enqueue(row("internal", mainstay_store::wire::INTERNAL_QUEUE), ends(0, End::Never));
        let executor = world.engine(process).executor();
        // A direct start has no queue; nobody runs it, and its executor dies before its audit finds that out.
        let direct = Submit::new("direct", "alpha", "t", Place::Run(executor)).app("shop").version("v1");
        assert!(world.until(secs(2), |world| world.seen.lock().live.len() == 2));
        let direct = world.enqueue(direct, ends(0, End::Never));
        world.crash(process);
        for _ in 0..rescuers {
            world.serve(shop());
        }
        assert!(world.until(TAKE_OVER, |world| world.seen.lock().live.len() == 3), "all run again");
        assert_eq!(world.ledger.returns, 3, "each row was returned once, whoever saw the death");
        let home = |id| world.row(id).and_then(|row| row.queue.clone());
        assert_eq!(home(&queued), Some(QueueName::from("red")));
        for id in [&internal, &direct] {
            assert_eq!(home(id), Some(QueueName::from(mainstay_store::wire::INTERNAL_QUEUE)));
        }
        world.seen.calm();
        world.ended(&[queued, internal, direct], secs(5));
        world.assert_sound();
    });
}

#[test]
fn recovery_leaves_other_applications_and_live_executors_alone() {
    let mut world = World::kind(6);
    world.queue("red", Limits::default());
    let depot = Member { app: 1, ..shop() };
    let (dead, other) = (world.serve(shop()), world.serve(depot));
    let mine = world.enqueue(row("mine", "red"), ends(0, End::Never));
    let internal = mainstay_store::wire::INTERNAL_QUEUE;
    let theirs = Submit::new("theirs", "alpha", "t", Place::queue(internal)).app("depot");
    let theirs = world.enqueue(theirs, ends(0, End::Never));
    assert!(world.until(secs(3), |world| world.seen.lock().live.len() == 2));
    world.serve(shop());
    world.crash(dead);
    world.crash(other);
    world.advance(secs(40));
    assert_eq!(world.starts(&mine).len(), 2, "its own application takes it over");
    assert_eq!((world.starts(&theirs).len(), world.status(&theirs)), (1, Some(Status::Pending)), "and no other");
    world.launch(other);
    assert!(world.until(TAKE_OVER, |world| world.starts(&theirs).len() == 2));
    world.seen.calm();
    world.ended(&[mine, theirs], secs(5));
    world.assert_sound();
}

#[test]
fn an_executor_cut_off_for_less_than_a_lease_keeps_its_rows() {
    check(30, (any::<u64>(), 0..6_500u64), |(seed, cut)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let process = world.serve(shop());
        world.serve(shop());
        world.enqueue_many("w", 3, "red", ends(0, End::Never));
        assert!(world.until(secs(3), |world| world.running("red") == 3));
        for up in world.processes.iter().filter_map(|process| process.up.as_ref()).take(process + 1) {
            up.switch.cut();
        }
        world.advance(ms(cut));
        world.up(process).iter().for_each(|up| up.switch.mend());
        world.advance(secs(30));
        assert_eq!((world.launched().len(), world.ledger.returns), (3, 0));
        world.assert_sound();
    });
}

#[test]
fn an_executor_taken_over_by_mistake_drops_what_it_runs_and_writes_nothing() {
    check(30, (any::<u64>(), 12..40u64), |(seed, cut)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let process = world.serve(shop());
        let ids = world.enqueue_many("w", 3, "red", ends(0, End::Never));
        assert!(world.until(secs(3), |world| world.running("red") == 3));
        let old = world.engine(process).executor();
        world.serve(shop());
        world.up(process).iter().for_each(|up| up.switch.cut());
        world.advance(secs(cut).max(secs(16)));
        assert_eq!(world.launched().len(), 6, "the other runs them");
        // The old bodies have their results ready when the line comes back.
        let old_bodies: Vec<u64> = {
            let seen = world.seen.lock();
            seen.live.iter().filter(|(_, live)| &*live.run.0 == "p0#1").map(|(number, _)| *number).collect()
        };
        old_bodies.iter().for_each(|body| world.seen.tell(*body, End::Fail));
        world.up(process).iter().for_each(|up| up.switch.mend());
        world.advance(secs(20));
        assert_eq!(world.running("red"), 3, "one body each");
        assert_eq!(world.count(Status::Pending), 3, "the late results were refused");
        assert!(world.engine(process).executor() != old, "it goes on under a new id");
        world.seen.calm();
        world.ended(&ids, secs(5));
        assert_eq!(world.count(Status::Success), 3);
        world.assert_sound();
    });
}

#[test]
fn a_claim_that_fails_and_hangs_in_every_way_is_reconciled_within_the_audits_time() {
    let fail = prop_oneof![Just(Fail::Before), Just(Fail::LoseAck), Just(Fail::Delay), Just(Fail::Hang)];
    check(40, (any::<u64>(), fail, any::<bool>()), |(seed, fail, audit_too)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let process = world.serve(shop());
        world.advance(secs(2));
        let up = world.up(process).cloned().expect("it is up");
        up.fail_next(Call::Claim, fail);
        if audit_too {
            up.fail_next(Call::Audit, fail);
            up.fail_next(Call::Commit, fail);
        }
        let ids = world.enqueue_many("w", 4, "red", runs(20));
        // A hanging call ends by the deadline of 30 s of its line, and the outcome may hang after the claim.
        let bound = if fail == Fail::Hang { secs(70) } else { secs(12) };
        world.ended(&ids, bound);
        world.assert_sound();
    });
}

#[test]
fn shutdown_leaves_rows_that_others_run_at_once() {
    check(30, (any::<u64>(), any::<bool>()), |(seed, hangs)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let process = world.serve(shop());
        let ids = world.enqueue_many("w", 5, "red", ends(0, End::Never));
        assert!(world.until(secs(3), |world| world.running("red") == 5));
        world.serve(shop());
        let dispatch = world.engine(process);
        if hangs {
            world.up(process).iter().for_each(|up| up.switch.cut());
        }
        let begun = world.now();
        let drained = world.call(async move { dispatch.shutdown(secs(2)).await });
        let took = world.now().since(begun);
        assert!(took <= secs(5), "shutdown with a limit of 2 s took {took:?}");
        assert_eq!(drained.evicted, ids);
        let bound = if hangs { TAKE_OVER } else { secs(1) };
        assert!(world.until(bound, |world| world.launched().len() == 10), "the other runs them");
        assert_eq!(world.running("red"), 5);
        world.seen.calm();
        world.ended(&ids, secs(5));
        world.assert_sound();
    });
}
