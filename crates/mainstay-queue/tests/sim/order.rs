//! In which order rows start: priority, then age, then id; and what ineligible rows must not change.

use crate::plan::Member;
use crate::tools::{check, concurrency, id, ms, row, runs, secs, shop};
use crate::world::World;
use mainstay_memory::Trouble;
use mainstay_store::{Limits, Status, WorkflowId, WorkflowRow};
use proptest::collection::vec;
use proptest::prelude::*;

/// Ids by the rank of their rows.
fn ranked(world: &World, ids: &[WorkflowId]) -> Vec<String> {
    let mut rows: Vec<&WorkflowRow> = ids.iter().filter_map(|id| world.row(id)).collect();
    rows.sort_by_key(|row| row.rank());
    rows.iter().map(|row| row.id.to_string()).collect()
}

#[test]
fn a_backlog_starts_by_priority_then_age_then_id() {
    // Priority 0 is none given and comes first; a gap of 0 ms makes rows of one age.
    let rows = vec((0..4i32, 0..3u64), 1..30);
    check(60, (any::<u64>(), rows, 1..4u32, 1..8u32), |(seed, rows, limit, batch)| {
        let mut world = World::kind(seed);
        world.queue("red", concurrency(limit));
        let ids: Vec<WorkflowId> = rows
            .iter()
            .enumerate()
            .map(|(number, (priority, gap))| {
                world.advance(ms(*gap));
                // Ids run against the order of submission, so that only the rank can explain the order.
                world.enqueue(row(&format!("w{:02}", 99 - number), "red").priority(*priority), runs(7))
            })
            .collect();
        let process = world.add(shop());
        let config = world.processes[process].config().batch(batch);
        world.launch_with(process, config);
        let expected = ranked(&world, &ids);
        world.ended(&ids, secs(60));
        assert_eq!(world.order(), expected);
        world.assert_sound();
    });
}

#[test]
fn one_at_a_time_starts_in_the_order_of_submission() {
    let gaps = vec(prop_oneof![3 => Just(0u64), 2 => 1..30u64, 1 => 100..900u64], 1..40);
    check(60, (any::<u64>(), gaps, any::<bool>()), |(seed, gaps, rough)| {
        let trouble = if rough { Trouble { lost: 0.4, contended: 0.2, ..Trouble::default() } } else { Trouble::none() };
        let mut world = World::new(seed, trouble);
        world.queue("red", concurrency(1));
        world.serve(shop());
        let ids: Vec<WorkflowId> = gaps
            .iter()
            .enumerate()
            .map(|(number, gap)| {
                world.advance(ms(*gap));
                world.enqueue(row(&format!("w{number:02}"), "red"), runs(20))
            })
            .collect();
        world.ended(&ids, secs(200));
        let order: Vec<String> = ids.iter().map(WorkflowId::to_string).collect();
        assert_eq!(world.order(), order);
        world.assert_sound();
    });
}

#[test]
fn unprioritised_rows_come_first_and_lower_numbers_before_higher_ones() {
    let mut world = World::kind(1);
    world.queue("red", concurrency(1));
    for (text, priority) in [("nine", 9), ("one", 1), ("none", 0), ("five", 5)] {
        world.enqueue(row(text, "red").priority(priority), runs(5));
    }
    world.serve(shop());
    world.advance(secs(5));
    assert_eq!(world.order(), ["none", "one", "five", "nine"]);
    world.assert_sound();
}

/// Rows in front of everything that the process may not run: of another version, application or function.
fn block(world: &mut World, count: usize) -> Vec<WorkflowId> {
    (0..count)
        .map(|number| {
            let submit = row(&format!("block{number:03}"), "red");
            let submit = match number % 3 {
                0 => submit.version("v0"),
                1 => submit.app("absent"),
                _ => mainstay_store::Submit::new(submit.id, "nobody", submit.token, submit.place).app("shop"),
            };
            world.enqueue(submit, runs(5))
        })
        .collect()
}

#[test]
fn rows_that_nobody_may_run_neither_stop_nor_slow_those_behind_them() {
    let took = |blocked: usize| {
        let mut world = World::kind(7);
        world.queue("red", concurrency(2));
        let blocking = block(&mut world, blocked);
        let ids = world.enqueue_many("w", 20, "red", runs(5));
        world.serve(shop());
        world.ended(&ids, secs(10));
        for id in &blocking {
            assert_eq!(world.status(id), Some(Status::Enqueued), "{id}");
            assert_eq!(world.row(id).map(|row| row.attempts), Some(0), "{id} was never claimed");
        }
        world.assert_sound();
        // From the first launch on: when the first poll comes is another matter.
        let launched = world.launched();
        launched[launched.len() - 1].at.since(launched[0].at)
    };
    let (without, with) = (took(0), took(300));
    assert!(with <= without + ms(25), "{with:?} with ineligible rows in front, {without:?} without");
}

#[test]
fn rows_over_their_attempts_in_front_are_parked_and_those_behind_start() {
    let mut world = World::kind(3);
    world.queue("red", Limits::default());
    let poison = world.enqueue(row("a", "red"), crate::tools::ends(1, crate::plan::End::Panic));
    let good = world.enqueue_many("w", 5, "red", runs(5));
    world.serve(Member { max_running: 1, ..shop() });
    world.ended(&good, secs(60));
    assert!(world.until(secs(60), |world| world.status(&poison) == Some(Status::Parked)));
    assert_eq!(world.status(&id("w04")), Some(Status::Success));
    world.assert_sound();
}
