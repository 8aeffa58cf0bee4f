//! Limits as the engine keeps them: what runs at once, what a window starts, and what a change of a limit does.

use crate::plan::{End, Member};
use crate::tools::{check, concurrency, ends, ms, name, rate, row, runs, secs, shop, worker};
use crate::world::World;
use mainstay_memory::Trouble;
use mainstay_store::{Limits, Status, WorkflowId};
use proptest::collection::vec;
use proptest::prelude::*;

/// The greatest number of bodies of `red` that run at once, per process and over all, while `ids` end.
fn peaks(world: &mut World, ids: &[WorkflowId], limit: std::time::Duration) -> (usize, usize) {
    let mut peaks = (0, 0);
    let all = world.until(limit, |world| {
        let seen = world.seen.lock();
        let live = seen.live.values().filter(|live| live.queue.as_ref().is_some_and(|queue| *queue == name("red")));
        let mut runs = std::collections::BTreeMap::<_, usize>::new();
        live.for_each(|live| *runs.entry(live.run.clone()).or_default() += 1);
        peaks.0 = runs.values().copied().max().unwrap_or(0).max(peaks.0);
        peaks.1 = runs.values().sum::<usize>().max(peaks.1);
        drop(seen);
        ids.iter().all(|id| world.status(id).is_some_and(Status::is_ended))
    });
    assert!(all, "the backlog drains within {limit:?}");
    peaks
}

#[test]
fn a_backlog_fills_every_limit_and_exceeds_none() {
    check(40, (any::<u64>(), 1..4u32, 1..4u32, 1..4usize), |(seed, fleet, per_process, processes)| {
        let mut world = World::new(seed, Trouble { lost: 0.2, contended: 0.1, ..Trouble::default() });
        let limits = Limits { worker_concurrency: Some(per_process.min(fleet)), ..concurrency(fleet) };
        world.queue("red", limits);
        let ids = world.enqueue_many("w", 30, "red", runs(300));
        for _ in 0..processes {
            world.serve(shop());
        }
        let (most_here, most) = peaks(&mut world, &ids, secs(60));
        let here = per_process.min(fleet) as usize;
        assert_eq!(most_here, here, "each process runs as many as it may");
        assert!(most <= fleet as usize && most >= here.min(fleet as usize));
        if processes * here >= fleet as usize {
            assert_eq!(most, fleet as usize, "together they fill the fleet's limit");
        }
        world.assert_sound();
    });
}

#[test]
fn no_window_of_any_rate_starts_more_than_it_allows_and_each_is_used_up() {
    check(40, (any::<u64>(), 1..4u32, 100..900u64, 1..3usize), |(seed, starts, period, processes)| {
        let mut world = World::kind(seed);
        world.queue("red", rate(starts, ms(period)));
        for _ in 0..processes {
            world.serve(shop());
        }
        let ids = world.enqueue_many("w", 12, "red", runs(1));
        let took = world.ended(&ids, secs(60));
        let launched = world.launched();
        for (number, first) in launched.iter().enumerate() {
            let until = first.at + ms(period);
            let within = launched[number..].iter().take_while(|launched| launched.at < until).count();
            assert!(within <= starts as usize, "{within} starts within {period} ms of {:?}", first.at);
        }
        // Exact timers: the last window opens without waiting for a poll of a second.
        let windows = (12 - 1) / u64::from(starts);
        let least = ms(period * windows);
        assert!(took <= least + ms(30 * (windows + 1)), "took {took:?}, the windows need {least:?}");
        world.assert_sound();
    });
}

#[test]
fn a_lowered_limit_starts_nothing_new_until_enough_have_ended() {
    check(30, (any::<u64>(), vec(50..900u16, 12)), |(seed, times)| {
        let mut world = World::kind(seed);
        world.queue("red", worker(4));
        world.serve(shop());
        let ids: Vec<_> = times
            .iter()
            .enumerate()
            .map(|(number, time)| world.enqueue(row(&format!("w{number:02}"), "red"), runs(*time)))
            .collect();
        world.advance(ms(20));
        assert_eq!(world.running("red"), 4);
        world.queue("red", worker(1));
        let before = world.launched().len();
        world.ended(&ids, secs(30));
        for launched in &world.launched()[before..] {
            assert_eq!(launched.running, 1, "{} starts beside others", launched.claimed.row.id);
        }
        world.assert_sound();
    });
}

#[test]
fn a_raised_limit_takes_effect_at_once_with_hints_and_within_a_tick_without() {
    for (mut world, bound) in [(World::kind(5), ms(50)), (World::silent(5), ms(1200))] {
        world.queue("red", worker(1));
        world.serve(shop());
        let ids = world.enqueue_many("w", 6, "red", ends(0, End::Never));
        assert!(world.until(secs(3), |world| world.running("red") == 1));
        world.advance(secs(5));
        assert_eq!(world.running("red"), 1);
        world.queue("red", worker(4));
        assert!(world.until(bound, |world| world.running("red") == 4), "after {bound:?}");
        world.seen.calm();
        world.ended(&ids, secs(10));
        world.assert_sound();
    }
}

#[test]
fn max_running_bounds_what_does_not_wait_over_all_queues() {
    check(30, (any::<u64>(), 1..5u32, 1..4usize), |(seed, most, queues)| {
        let mut world = World::kind(seed);
        let names = ["red", "green", "blue"];
        for queue in &names[..queues] {
            world.queue(queue, Limits::default());
        }
        world.serve(Member { max_running: most, ..shop() });
        let mut ids = Vec::new();
        for queue in &names[..queues] {
            ids.extend(world.enqueue_many(queue, 8, queue, runs(200)));
        }
        let mut peak = 0;
        world.until(secs(60), |world| {
            peak = world.seen.lock().live.len().max(peak);
            ids.iter().all(|id| world.status(id).is_some_and(Status::is_ended))
        });
        assert_eq!(peak, most as usize, "the bound is reached and kept");
        world.ended(&ids, secs(1));
        world.assert_sound();
    });
}

#[test]
fn waiting_executions_give_their_place_back_and_queue_limits_keep_counting_them() {
    let mut world = World::kind(9);
    world.queue("red", worker(2));
    world.queue("green", Limits::default());
    world.serve(Member { max_running: 1, ..shop() });
    let waiting = crate::plan::Body { run_ms: 5000, end: End::Succeed, waits: true };
    world.enqueue_many("wait", 3, "red", waiting);
    world.advance(ms(500));
    assert_eq!(world.running("red"), 2, "two wait at once over one place, the third over the queue's limit");
    let ids = world.enqueue_many("w", 3, "green", runs(10));
    world.ended(&ids, ms(500));
    world.assert_sound();
}

#[test]
fn every_end_of_a_body_frees_its_slot_once() {
    let plan = vec(
        prop_oneof![Just(End::Succeed), Just(End::Fail), Just(End::Panic), Just(End::Control), Just(End::GiveBack),],
        1..15,
    );
    check(40, (any::<u64>(), plan, any::<bool>()), |(seed, plan, poison)| {
        let mut world = World::kind(seed);
        world.queue("red", worker(2));
        let process = world.serve(shop());
        let ids: Vec<_> = plan
            .iter()
            .enumerate()
            .map(|(number, end)| {
                let submit = row(&format!("w{number:02}"), "red");
                if poison && number % 3 == 0 {
                    world.up(process).iter().for_each(|up| up.launcher.poison(&submit.id));
                }
                world.enqueue(submit, ends(30, *end))
            })
            .collect();
        world.advance(secs(2));
        world.seen.lock().calm = true;
        world.ended(&ids, secs(60));
        world.advance(ms(10));
        let stats = world.engine(process).stats();
        assert_eq!((stats.running, stats.active, stats.queues.len()), (0, 0, 0), "{stats:?}");
        world.assert_sound();
    });
}
