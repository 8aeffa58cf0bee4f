//! Interleavings that broke other implementations of the same queue, each as a test of its own on the engine.

use crate::plan::{Call, End, Fail, Member, Trap};
use crate::tools::{check, concurrency, ends, id, ms, rate, row, runs, secs, shop};
use crate::world::World;
use mainstay_store::{Limits, QueueName, Refusal, Status, UnitReply};
use proptest::prelude::*;

/// s1: two claimers count before an older row arrives, and each takes another head.
#[test]
fn s1_two_claimers_and_an_older_row_never_exceed_a_concurrency_of_1() {
    check(120, (any::<u64>(), 0..40u8, 0..40u8), |(seed, before, between)| {
        let mut world = World::kind(seed);
        world.queue("red", concurrency(1));
        let (a, b) = (world.serve(shop()), world.serve(shop()));
        let low = world.enqueue(row("h1", "red").priority(5), runs(200));
        world.steps(before.into());
        let high = world.enqueue(row("h0", "red").priority(1), runs(200));
        world.steps(between.into());
        let mut peak = 0;
        world.until(secs(5), |world| {
            peak = world.count(Status::Pending).max(peak);
            [&low, &high].iter().all(|id| world.status(id) == Some(Status::Success))
        });
        assert_eq!(peak, 1, "of {a} and {b} one at a time");
        world.ended(&[low, high], ms(1));
        world.assert_sound();
    });
}

/// s4: the same interleaving over a rate of one start in a period.
#[test]
fn s4_two_claimers_and_an_older_row_never_exceed_a_rate_of_1() {
    check(120, (any::<u64>(), 0..40u8), |(seed, before)| {
        let mut world = World::kind(seed);
        world.queue("red", rate(1, secs(2)));
        world.serve(shop());
        world.serve(shop());
        let low = world.enqueue(row("h1", "red").priority(5), runs(1));
        world.steps(before.into());
        let high = world.enqueue(row("h0", "red").priority(1), runs(1));
        world.ended(&[low, high], secs(5));
        let starts = world.launched();
        assert_eq!(starts.len(), 2);
        assert!(starts[1].at.since(starts[0].at) >= secs(2));
        world.assert_sound();
    });
}

/// s5: a row that is deleted between its claim and its start stays deleted.
#[test]
fn s5_a_row_deleted_between_claim_and_start_does_not_come_back() {
    check(60, any::<u64>(), |seed| {
        let mut world = World::kind(seed);
        world.queue("red", concurrency(1));
        world.serve(shop());
        world.traps.push(Trap::Delete);
        let gone = world.enqueue(row("a", "red"), runs(500));
        let next = world.enqueue(row("b", "red"), runs(5));
        world.ended(&[next], secs(20));
        world.advance(secs(20));
        assert!(world.traps.is_empty(), "the row was deleted in time");
        assert_eq!(world.row(&gone), None, "it does not come back");
        assert_eq!(world.ledger.rows.len(), 1);
        world.assert_sound();
    });
}

/// s6: the claim commits and its answer is lost while the process lives.
#[test]
fn s6_a_claim_whose_answer_is_lost_is_started_once_and_by_the_first_try() {
    check(60, (any::<u64>(), 1..8usize, any::<bool>()), |(seed, rows, twice)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let process = world.serve(shop());
        world.advance(secs(2));
        let up = world.up(process).cloned().expect("it is up");
        up.fail_next(Call::Claim, Fail::LoseAck);
        let ids = world.enqueue_many("w", rows, "red", runs(50));
        if twice {
            world.advance(ms(20));
            up.fail_next(Call::Claim, Fail::LoseAck);
        }
        world.ended(&ids, secs(8));
        for id in &ids {
            assert_eq!(world.starts(id).len(), 1, "{id} starts once");
            assert_eq!(world.row(id).map(|row| row.attempts), Some(1), "no second claim was needed for {id}");
        }
        world.assert_sound();
    });
}

/// s7: a function that nobody knows is neither claimed for ever nor holds a place of the fleet.
#[test]
fn s7_an_unknown_function_is_never_claimed_and_holds_nothing() {
    let mut world = World::kind(11);
    world.queue("red", concurrency(1));
    world.serve(Member { names: 0b001, ..shop() });
    let unknown =
        world.enqueue(mainstay_store::Submit::new("a", "beta", "t", mainstay_store::Place::queue("red")), runs(1));
    let ids = world.enqueue_many("w", 3, "red", runs(10));
    world.ended(&ids, secs(3));
    world.advance(secs(60));
    let row = world.row(&unknown).expect("it is there");
    assert_eq!((row.status, row.attempts), (Status::Enqueued, 0));
    let knowing = world.serve(Member { names: 0b010, ..shop() });
    world.ended(&[unknown], secs(3));
    assert_eq!(&*world.launched()[3].run.0, format!("p{knowing}#1"), "it goes to the one that knows it");
    world.assert_sound();
}

/// s8: a resume while the row is pending.
#[test]
fn s8_a_resume_while_pending_is_refused_and_by_force_never_runs_twice_in_one_process() {
    check(60, (any::<u64>(), 0..60u64, any::<bool>()), |(seed, wait, stalled)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let process = world.serve(shop());
        if stalled {
            world.up(process).iter().for_each(|up| up.launcher.stall());
        }
        let a = world.enqueue(row("a", "red"), ends(0, End::Never));
        world.until(secs(2), |world| world.status(&id("a")) == Some(Status::Pending));
        world.advance(ms(wait));
        let refused = world.resume(&a, Some(QueueName::from("red")), false);
        assert_eq!(refused, UnitReply::Refused { effect: 0, why: Refusal::Running(a.clone()) });
        assert!(world.resume(&a, Some(QueueName::from("red")), true).is_done());
        world.advance(secs(2));
        assert_eq!(world.launched().len(), 2, "the second execution starts");
        assert_eq!(world.running("red"), 1, "and the first has been dropped");
        world.up(process).iter().for_each(|up| up.launcher.unstall());
        world.seen.calm();
        world.ended(&[a], secs(5));
        world.assert_sound();
    });
}

/// s9: starts that are cancelled, resumed or taken over inside a window still count.
#[test]
fn s9_cancelled_resumed_and_recovered_starts_still_count_in_their_window() {
    check(60, (any::<u64>(), 0..3u8), |(seed, how)| {
        let mut world = World::kind(seed);
        world.queue("red", rate(2, secs(30)));
        let process = world.serve(shop());
        let ids = world.enqueue_many("w", 6, "red", ends(0, End::Never));
        assert!(world.until(secs(2), |world| world.running("red") == 2));
        let first: Vec<_> = world.launched().iter().map(|launched| launched.claimed.row.id.clone()).collect();
        match how {
            0 => first.iter().for_each(|id| world.cancel(id)),
            1 => first.iter().for_each(|id| drop(world.resume(id, Some(QueueName::from("red")), true))),
            _ => {
                world.crash(process);
                world.launch(process);
            }
        }
        let begun = world.launched()[0].at;
        world.advance(begun.since(world.now()) + secs(25));
        assert_eq!(world.launched().len(), 2, "nothing else starts in this window");
        world.advance(secs(10));
        assert_eq!(world.launched().len(), 4, "the next window starts two more");
        world.seen.calm();
        world.ended(&ids, secs(200));
        world.assert_sound();
    });
}

/// s10: two processes whose executors have one name.
#[test]
fn s10_a_second_process_of_one_name_leaves_the_rows_of_the_first_alone() {
    check(40, (any::<u64>(), 0..30u64), |(seed, wait)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let first = world.add(shop());
        world.processes[first].alias = "local".into();
        world.launch(first);
        world.engine(first);
        let ids = world.enqueue_many("w", 5, "red", ends(0, End::Never));
        assert!(world.until(secs(2), |world| world.running("red") == 5));
        let second = world.add(shop());
        world.processes[second].alias = "local".into();
        world.advance(secs(wait));
        world.launch(second);
        let (one, two) = (world.engine(first).executor(), world.engine(second).executor());
        assert!(one != two && one.as_str().starts_with("local~") && two.as_str().starts_with("local~"));
        world.advance(secs(30));
        assert_eq!((world.launched().len(), world.running("red")), (5, 5), "nothing was started again");
        // The second is launched anew again and again; each time it is a stranger to the rows of the first.
        world.crash(second);
        world.launch(second);
        world.advance(secs(30));
        assert_eq!((world.launched().len(), world.ledger.returns), (5, 0));
        world.seen.calm();
        world.ended(&ids, secs(5));
        world.assert_sound();
    });
}

/// s13: every read fails right after a claim has taken rows.
#[test]
fn s13_reads_that_fail_after_a_claim_orphan_none_of_its_rows() {
    check(40, (any::<u64>(), 1..20usize), |(seed, rows)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let process = world.serve(shop());
        let ids = world.enqueue_many("w", rows, "red", runs(400));
        assert!(world.until(secs(3), |world| world.count(Status::Pending) > 0));
        let up = world.up(process).cloned().expect("it is up");
        up.switch.fail_reads(30);
        up.fail_next(Call::Probe, Fail::Before);
        up.fail_next(Call::Audit, Fail::Before);
        world.ended(&ids, secs(3));
        assert_eq!(world.launched().len(), rows, "each row starts once");
        world.assert_sound();
    });
}
