//! Every fault point between submit and outcome: whatever dies there, each row ends, and no invariant breaks on the way.

use crate::plan::{Call, End, Fail, Trap};
use crate::tools::{check, concurrency, ends, id, ms, name, row, runs, secs, shop, worker};
use crate::world::{World, instantly};
use mainstay_store::{Limits, Place, Status, Submit, Unit, When, WorkflowId, WriteStore};
use proptest::prelude::*;

/// A lease, its beat, a round and an audit.
const RECOVERY: std::time::Duration = secs(20);

/// A world with one process that works on `red`, and one that can take over.
fn pair(seed: u64, limits: Limits) -> World {
    let mut world = World::kind(seed);
    world.queue("red", limits);
    world.serve(shop());
    world.serve(shop());
    world
}

/// The process that holds the first launched body.
fn holder(world: &World) -> usize {
    let run = world.launched()[0].run.clone();
    let at = world.processes.iter().position(|process| process.up.as_ref().is_some_and(|up| up.run == run));
    at.expect("its process is up")
}

/// All rows have succeeded, none was lost or made up.
fn all_well(world: &mut World, ids: &[WorkflowId]) {
    world.ended(ids, RECOVERY);
    assert_eq!(world.count(Status::Success), ids.len());
    assert_eq!(world.ledger.rows.len(), ids.len());
    world.advance(ms(50));
    let busy = world.processes.iter().filter_map(|process| process.up.as_ref()?.dispatch());
    for stats in busy.map(|dispatch| dispatch.stats()) {
        assert_eq!((stats.running, stats.active), (0, 0), "{stats:?}");
    }
    world.assert_sound();
}

/// c1, c2: the client dies before its submit, or never hears its answer and sends it again.
#[test]
fn c1_c2_a_submit_that_is_sent_again_makes_one_row_that_runs_once() {
    check(30, (any::<u64>(), 0..60u8), |(seed, polls)| {
        let mut world = pair(seed, Limits::default());
        let submit = row("a", "red");
        let unit = [Unit::new().effect(submit.clone())];
        // The call is dropped before it has begun: nothing is there.
        drop(world.memory.commit(&unit));
        assert_eq!(world.ledger.rows.len(), 0);
        let a = world.enqueue(submit.clone(), runs(5));
        world.steps(polls.into());
        assert!(world.submit(submit).is_done());
        all_well(&mut world, std::slice::from_ref(&a));
        assert_eq!(world.starts(&a).len(), 1);
    });
}

/// c3: a delayed row comes due while nobody lives.
#[test]
fn c3_a_delay_that_ends_while_nobody_lives_is_released_by_the_next_process() {
    check(20, (any::<u64>(), 1..20_000u64), |(seed, down)| {
        let mut world = pair(seed, Limits::default());
        let place = Place::Queue { name: name("red"), key: None, delay: Some(When::In(secs(2))) };
        let a = world.enqueue(Submit::new("a", "alpha", "t", place).app("shop"), runs(5));
        world.crash(0);
        world.crash(1);
        world.advance(ms(down));
        world.launch(0);
        all_well(&mut world, &[a]);
    });
}

/// c4, c6, c7, c8: the process dies anywhere between sending a claim and starting its last row.
#[test]
fn c4_c6_c7_c8_a_crash_at_any_poll_around_a_claim_loses_and_doubles_nothing() {
    check(250, (any::<u64>(), 0..120u16, 1..8usize), |(seed, polls, rows)| {
        let mut world = pair(seed, worker(4));
        let ids = world.enqueue_many("w", rows, "red", runs(30));
        world.steps(polls.into());
        world.crash(usize::from(polls) % 2);
        all_well(&mut world, &ids);
        // Killed between two polls, it has started each row at most once; the other starts what it lost.
        assert!(ids.iter().all(|id| world.starts(id).len() <= 2));
    });
}

/// c4, c6: the same exactly between the flip and the first start.
#[test]
fn c6_a_crash_right_after_the_flip_costs_one_lease_and_no_row() {
    check(60, (any::<u64>(), 1..6usize), |(seed, rows)| {
        let mut world = pair(seed, concurrency(3));
        world.traps.push(Trap::Crash);
        let ids = world.enqueue_many("w", rows, "red", runs(30));
        world.advance(secs(3));
        assert!(world.traps.is_empty() && world.processes.iter().any(|process| process.up.is_none()));
        all_well(&mut world, &ids);
    });
}

/// c5: the claim commits, its answer is lost, and the process lives.
#[test]
fn c5_a_lost_claim_answer_is_asked_for_again_until_it_comes() {
    check(40, (any::<u64>(), 1..5u8), |(seed, times)| {
        let mut world = pair(seed, Limits::default());
        world.crash(1);
        let ids = world.enqueue_many("w", 3, "red", runs(30));
        for _ in 0..times {
            world.up(0).iter().for_each(|up| up.fail_next(Call::Claim, Fail::LoseAck));
            world.advance(ms(700));
        }
        all_well(&mut world, &ids);
        assert!(ids.iter().all(|id| world.starts(id).len() == 1));
    });
}

/// c10: the process dies while bodies run.
#[test]
fn c10_rows_that_ran_when_their_process_died_run_elsewhere() {
    check(30, (any::<u64>(), 0..3000u64), |(seed, after)| {
        let mut world = pair(seed, worker(2));
        let ids = world.enqueue_many("w", 6, "red", runs(900));
        assert!(world.until(secs(2), |world| world.running("red") > 0));
        world.advance(ms(after));
        let at = holder(&world);
        world.crash(at);
        all_well(&mut world, &ids);
    });
}

/// c11: the outcome commits and its answer is lost.
#[test]
fn c11_an_outcome_whose_answer_is_lost_is_written_once() {
    check(30, (any::<u64>(), any::<bool>()), |(seed, dies)| {
        let mut world = pair(seed, Limits::default());
        world.crash(1);
        let a = world.enqueue(row("a", "red"), runs(200));
        assert!(world.until(secs(2), |world| world.running("red") == 1));
        world.up(0).iter().for_each(|up| up.fail_next(Call::Commit, Fail::LoseAck));
        assert!(world.until(secs(2), |world| world.status(&id("a")) == Some(Status::Success)));
        if dies {
            world.crash(0);
            world.launch(0);
        }
        world.advance(secs(20));
        assert_eq!(world.starts(&a).len(), 1, "an ended row is not begun again");
        all_well(&mut world, &[a]);
    });
}

/// c12: the body ends without an outcome and the process lives.
#[test]
fn c12_a_body_that_panics_or_ends_in_silence_is_begun_again_in_the_living_process() {
    for end in [End::Panic, End::Control] {
        check(20, any::<u64>(), |seed| {
            let mut world = pair(seed, concurrency(1));
            let a = world.enqueue(row("a", "red"), ends(20, end));
            assert!(world.until(secs(2), |world| world.starts(&id("a")).len() == 1));
            world.seen.lock().plans.insert(a.clone(), runs(5));
            all_well(&mut world, &[a]);
        });
    }
}

/// c15: a cancel, a resume or a delete falls between the claim and the start.
#[test]
fn c15_a_row_taken_away_between_claim_and_start_is_not_written_by_that_claim() {
    let trap = prop_oneof![Just(Trap::Cancel), Just(Trap::Resume), Just(Trap::Delete)];
    check(90, (any::<u64>(), trap), |(seed, trap)| {
        let mut world = pair(seed, concurrency(2));
        world.traps.push(trap);
        let a = world.enqueue(row("a", "red"), runs(50));
        let b = world.enqueue(row("b", "red"), runs(50));
        world.ended(&[a.clone(), b.clone()], RECOVERY);
        world.advance(secs(1));
        assert!(world.traps.is_empty());
        // The claim may have taken either of them first.
        let rows = [&a, &b].map(|id| world.status(id));
        let ended = match trap {
            Trap::Cancel => [Some(Status::Cancelled), Some(Status::Success)],
            Trap::Delete => [None, Some(Status::Success)],
            _ => [Some(Status::Success), Some(Status::Success)],
        };
        assert!(rows == ended || rows == [ended[1], ended[0]], "{rows:?} after {trap:?}");
        assert_eq!(world.seen.lock().settled.len(), ended.iter().filter(|status| **status == ended[1]).count());
        world.assert_sound();
    });
}

/// c16: the row is taken over between its claim and its start, because the process seems dead.
#[test]
fn c16_a_claim_that_was_taken_over_before_its_start_writes_nothing() {
    check(60, (any::<u64>(), 15..40u64), |(seed, away)| {
        let mut world = pair(seed, Limits::default());
        world.traps.push(Trap::Cut);
        let a = world.enqueue(row("a", "red"), ends(0, End::Never));
        world.advance(secs(away));
        assert!(world.traps.is_empty());
        world.processes.iter().filter_map(|process| process.up.as_ref()).for_each(|up| up.switch.mend());
        assert!(world.until(RECOVERY, |world| world.running("red") == 1), "one body, of the one that took it over");
        world.advance(secs(20));
        assert_eq!(world.running("red"), 1);
        let current = world.row(&a).and_then(|row| row.started_at);
        assert!(world.seen.lock().runs(&a, current), "the body that lives is that of the row's fence");
        world.seen.calm();
        all_well(&mut world, &[a]);
    });
}

/// c17: the queue is deleted while claims are in flight.
#[test]
fn c17_claims_in_flight_of_a_deleted_queue_finish() {
    check(40, (any::<u64>(), 0..60u8), |(seed, polls)| {
        let mut world = pair(seed, worker(3));
        let ids = world.enqueue_many("w", 9, "red", runs(300));
        world.steps(polls.into());
        let gone = instantly(mainstay_store::Registry::queue_delete(&world.memory, &"shop".into(), &name("red")));
        assert!(gone.expect("deleted"));
        world.seen.lock().registry = true;
        world.check();
        world.advance(secs(10));
        let pending = world.count(Status::Pending);
        assert_eq!((pending, world.running("red")), (0, 0), "what was claimed has ended");
        world.queue("red", worker(3));
        all_well(&mut world, &ids);
    });
}

/// c18: a limit is lowered below what runs.
#[test]
fn c18_what_runs_over_a_lowered_limit_goes_on_to_its_end() {
    check(30, any::<u64>(), |seed| {
        let mut world = pair(seed, concurrency(4));
        let ids = world.enqueue_many("w", 8, "red", runs(700));
        assert!(world.until(secs(2), |world| world.running("red") == 4));
        world.queue("red", concurrency(1));
        world.advance(ms(300));
        assert_eq!((world.running("red"), world.launched().len()), (4, 4), "the excess runs on, nothing new starts");
        all_well(&mut world, &ids);
        assert!(ids.iter().all(|id| world.starts(id).len() == 1));
    });
}
