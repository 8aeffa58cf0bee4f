//! How soon things happen: work that may run starts, a freed slot is filled, a delay ends, and nothing else holds it up.

use crate::plan::{Call, End, Fail};
use crate::tools::{check, concurrency, ends, ms, name, row, runs, secs, shop, worker};
use crate::world::World;
use mainstay_env::Monotonic;
use mainstay_store::{Limits, Place, RegisterQueue, Status, Submit, When, WorkflowId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

/// From hint to launch: the cooldown of 5 ms and some polls that take no time.
const WAKE: Duration = ms(10);

/// When a row of this id was launched first.
#[track_caller]
fn first_start(world: &World, id: &WorkflowId) -> Monotonic {
    *world.starts(id).first().unwrap_or_else(|| panic!("{id} was never launched"))
}

/// Registers a queue whose poll comes so seldom that it explains nothing.
fn slow_queue(world: &mut World, queue: &str, limits: Limits, polling: Duration) {
    world.register(RegisterQueue::new(queue, "shop").limits(limits).polling(polling));
}

#[test]
fn a_row_starts_at_once_when_its_hint_arrives() {
    check(60, (any::<u64>(), vec((0..20u64, 0..9_000u64), 1..12), 1..4usize), |(seed, gaps, processes)| {
        let mut world = World::kind(seed);
        slow_queue(&mut world, "red", Limits::default(), secs(100));
        for _ in 0..processes {
            world.serve(shop());
        }
        for (number, (short, long)) in gaps.into_iter().enumerate() {
            world.advance(ms(if number % 2 == 0 { short } else { long }));
            let submitted = world.now();
            let id = world.enqueue(row(&format!("w{number}"), "red"), runs(3));
            world.advance(ms(50));
            let waited = first_start(&world, &id).since(submitted);
            assert!(waited <= WAKE, "{id} waited {waited:?}");
        }
        world.assert_sound();
    });
}

#[test]
fn a_row_starts_within_one_poll_when_no_hint_arrives() {
    check(60, (any::<u64>(), vec(0..3000u64, 1..8), 100..3000u64), |(seed, gaps, polling)| {
        let mut world = World::silent(seed);
        slow_queue(&mut world, "red", Limits::default(), ms(polling));
        world.serve(shop());
        // The set is published, and the lane has polled once.
        world.advance(secs(2));
        for (number, gap) in gaps.into_iter().enumerate() {
            world.advance(ms(gap));
            let submitted = world.now();
            let id = world.enqueue(row(&format!("w{number}"), "red"), runs(3));
            world.advance(secs(8));
            let waited = first_start(&world, &id).since(submitted);
            // The jitter of 5 %, and the interval that a probe keeps from the one before.
            let bound = ms(polling).mul_f64(1.05) + secs(1);
            assert!(waited <= bound, "{id} waited {waited:?}, polls come each {polling} ms");
        }
        world.assert_sound();
    });
}

#[test]
fn a_freed_slot_is_filled_without_the_poll_timer() {
    check(40, (any::<u64>(), 1..4u32, 10..200u16, any::<bool>()), |(seed, limit, run, silent)| {
        let mut world = if silent { World::silent(seed) } else { World::kind(seed) };
        slow_queue(&mut world, "red", worker(limit), secs(100));
        let ids = world.enqueue_many("w", 24, "red", runs(run));
        world.serve(shop());
        world.until(secs(5), |world| world.running("red") > 0);
        let begun = world.now();
        world.ended(&ids, secs(60));
        let took = world.now().since(begun);
        let rounds = u64::from(24u32.div_ceil(limit));
        let bound = ms(rounds * (u64::from(run) + 10) + 20);
        assert!(took <= bound, "24 rows of {run} ms, {limit} at once, took {took:?}");
        world.assert_sound();
    });
}

#[test]
fn a_fleet_slot_freed_in_another_process_is_filled_by_its_hint() {
    let mut world = World::kind(4);
    slow_queue(&mut world, "red", concurrency(2), secs(100));
    world.serve(shop());
    world.serve(shop());
    let ids = world.enqueue_many("w", 40, "red", runs(50));
    let took = world.ended(&ids, secs(20));
    assert!(took <= ms(20 * 60 + 50), "took {took:?}");
    let here = world.launched().iter().filter(|launched| &*launched.run.0 == "p0#1").count();
    assert!((1..40).contains(&here), "both processes take part: {here} of 40");
    world.assert_sound();
}

#[test]
fn no_queue_delays_another() {
    let hindrance = prop_oneof![Just(0u8), Just(1), Just(2), Just(3)];
    check(40, (any::<u64>(), hindrance, 0..200u64), |(seed, hindrance, gap)| {
        let mut world = World::kind(seed);
        slow_queue(&mut world, "red", worker(2), secs(100));
        slow_queue(&mut world, "green", worker(2), secs(100));
        let process = world.serve(shop());
        world.advance(secs(2));
        let up = world.up(process).cloned().expect("it is up");
        match hindrance {
            // Its claim hangs, or fails; its bodies never end; its launches panic.
            0 => up.fail_next(Call::Claim, Fail::Hang),
            1 => up.fail_next(Call::Claim, Fail::Before),
            2 => {}
            _ => (0..4).for_each(|number| up.launcher.poison(&format!("red{number:02}").into())),
        }
        world.enqueue_many("red", 6, "red", ends(0, End::Never));
        world.advance(ms(gap));
        for number in 0..5 {
            let submitted = world.now();
            let id = world.enqueue(row(&format!("green{number}"), "green"), runs(20));
            world.advance(ms(100));
            let waited = first_start(&world, &id).since(submitted);
            assert!(waited <= WAKE, "{id} waited {waited:?}, hindrance {hindrance}");
        }
        world.assert_sound();
    });
}

/// A row of `red` that is delayed.
fn delayed(number: usize, delay: u64) -> Submit {
    let place = Place::Queue { name: name("red"), key: None, delay: Some(When::In(ms(delay))) };
    Submit::new(format!("w{number}"), "alpha", format!("t{number}"), place).app("shop")
}

#[test]
fn a_delayed_row_starts_when_it_is_due_and_never_before() {
    check(50, (any::<u64>(), vec((0..4000u64, 1..9_000u64), 1..10), any::<bool>()), |(seed, rows, silent)| {
        let mut world = if silent { World::silent(seed) } else { World::kind(seed) };
        world.queue("red", Limits::default());
        world.serve(shop());
        let mut due = Vec::new();
        for (number, (gap, delay)) in rows.into_iter().enumerate() {
            world.advance(ms(gap));
            let id = world.enqueue(delayed(number, delay), runs(2));
            due.push((id, world.now() + ms(delay)));
        }
        world.advance(secs(15));
        for (id, due) in due {
            let start = first_start(&world, &id);
            assert!(start >= due, "{id} started {:?} early", due.since(start));
            // Without hints the supervisor learns of it by its round, and the lane by its poll.
            let bound = if silent { ms(2200) } else { ms(1100) };
            assert!(start.since(due) <= bound, "{id} started {:?} late, silent {silent}", start.since(due));
        }
        world.assert_sound();
    });
}

#[test]
fn a_deleted_queue_is_claimed_no_more_until_it_is_registered_again() {
    check(30, (any::<u64>(), any::<bool>()), |(seed, silent)| {
        let mut world = if silent { World::silent(seed) } else { World::kind(seed) };
        world.queue("red", worker(2));
        world.serve(shop());
        let ids = world.enqueue_many("w", 10, "red", runs(700));
        world.advance(secs(1));
        let store = world.client.clone();
        world.call(async move { store.queue_delete(&"shop".into(), &"red".into()).await }).expect("deleted");
        world.advance(ms(1100));
        let (started, claims) = (world.launched().len(), world.claims_on("red"));
        assert!(started < ids.len());
        world.advance(secs(20));
        assert_eq!((world.launched().len(), world.claims_on("red")), (started, claims), "no claim begins");
        assert_eq!(world.count(Status::Enqueued), ids.len() - started, "the backlog stays");
        world.queue("red", worker(2));
        world.ended(&ids, secs(10));
        world.assert_sound();
    });
}

#[test]
fn an_unlistened_queue_is_never_claimed() {
    let mut world = World::kind(2);
    world.queue("red", Limits::default());
    world.queue("green", Limits::default());
    let process = world.add(shop());
    let config = world.processes[process].config().listen([name("green")]);
    world.launch_with(process, config);
    world.engine(process);
    let red = world.enqueue(row("r", "red"), runs(1));
    let green = world.enqueue(row("g", "green"), runs(1));
    world.ended(&[green], secs(5));
    world.advance(secs(10));
    assert_eq!((world.status(&red), world.claims_on("red")), (Some(Status::Enqueued), 0));
    world.assert_sound();
}

#[test]
fn failing_reads_of_the_registry_stop_no_worker() {
    check(20, (any::<u64>(), any::<bool>()), |(seed, silent)| {
        let mut world = if silent { World::silent(seed) } else { World::kind(seed) };
        world.queue("red", worker(2));
        let process = world.serve(shop());
        world.advance(secs(2));
        let up = world.up(process).cloned().expect("it is up");
        up.switch.fail_reads(u32::MAX);
        let ids = world.enqueue_many("w", 10, "red", runs(300));
        // Longer than a lease: the process goes on beating although its rounds fail.
        world.advance(secs(25));
        let late = world.enqueue(row("late", "red"), runs(5));
        world.advance(secs(5));
        for id in ids.iter().chain([&late]) {
            assert_eq!(world.status(id), Some(Status::Success), "{id}");
        }
        assert!(up.switch.reads_failed() > 10);
        assert_eq!(world.engine(process).stats().renewals, 0, "its lease lives");
        world.assert_sound();
    });
}

#[test]
fn the_internal_queue_is_always_served_and_never_limited() {
    for listen in [true, false] {
        let mut world = World::silent(8);
        let process = world.add(shop());
        let config = world.processes[process].config();
        world.launch_with(process, if listen { config } else { config.listen([]) });
        world.engine(process);
        let internal = mainstay_store::wire::INTERNAL_QUEUE;
        let ids = world.enqueue_many("w", 90, internal, ends(0, End::Never));
        assert!(world.until(secs(3), |world| world.running(internal) == 90), "all of them run at once");
        world.seen.calm();
        world.ended(&ids, secs(5));
        world.assert_sound();
    }
}
