//! Ends: callers that go away, flushes, stops, and panics in every place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_env::{BoxFuture, Clock, Monotonic, SimClock, Timestamp};
use mainstay_memory::Memory;
use mainstay_store::wrap::WithDeadline;
use mainstay_store::{Beat, ErrorKind, ExecutorStore};

use super::super::lane::STOP_LIMIT;
use super::super::{Patience, Recorder};
use super::world::{Act, Heard, Scripted, World, first, secs, step, submit};

#[test]
fn dropping_the_waiting_future_does_not_take_the_unit_back() {
    let world = World::new(1);
    let fence = world.begin("w");
    let recorder = world.recorder.clone();
    let id = fence.workflow().clone();
    {
        let waiting = recorder.commit(&id, step(&fence, 0), Patience::Forever);
        let polled_once = world.sim.block_on(async move { futures_util::poll!(Box::pin(waiting)).is_pending() });
        assert!(polled_once, "it is not committed yet");
    }
    world.flush();
    assert_eq!(world.recorded("w"), [0]);
}

#[test]
fn a_flush_waits_for_what_was_sent_before_and_for_nothing_else() {
    let world = World::new(2);
    let fence = world.begin("w");
    world.flush();
    for position in 0..5 {
        world.step(&fence, position);
    }
    world.flush();
    assert_eq!(world.answers().len(), 5);
    world.store.script(|_| Act::Hang);
    let recorder = world.recorder.clone();
    let flushed = world.sim.env("shop").tasks().spawn("flush", async move { recorder.flushed().await });
    world.sim.block_on(flushed).expect("nothing is under way");
    world.step(&fence, 5);
    let recorder = world.recorder.clone();
    let flushed = world.sim.env("shop").tasks().spawn("flush", async move { recorder.flushed().await });
    world.sim.advance(secs(3600));
    assert!(!flushed.is_finished(), "a unit under way is not answered");
}

#[test]
fn a_stop_commits_what_was_sent_and_refuses_what_comes_later() {
    let world = World::new(3);
    let fence = world.begin("w");
    for position in 0..3 {
        world.step(&fence, position);
    }
    world.recorder.stop();
    world.step(&fence, 3);
    world.flush();
    world.sim.run_until_stalled();
    world.step(&fence, 4);
    assert_eq!(world.recorded("w"), [0, 1, 2]);
    let answers = world.answers();
    let of = |label: &str| answers.iter().find(|(it, _)| it == label).map(|(_, answer)| answer.as_str());
    assert_eq!(of("w/2"), Some("done"));
    assert_eq!((of("w/3"), of("w/4")), (Some("commit: unavailable: stopped"), Some("commit: unavailable: stopped")));
    assert!(!world.lives(), "{:?}", world.sim.live());
    world.flush();
}

#[test]
fn a_stop_in_an_outage_answers_everybody_in_bounded_time() {
    for act in [
        Act::Fail(ErrorKind::Unavailable),
        Act::Fail(ErrorKind::Full),
        Act::Fail(ErrorKind::Bug),
        Act::Hang,
        Act::Panic,
    ] {
        let world = World::with(4, 1, WithDeadline::new);
        let fences: Vec<_> = (0..20).map(|at| world.begin(&format!("w{at}"))).collect();
        world.store.script(move |_| act);
        for fence in &fences {
            world.step(fence, 0);
            world.step(fence, 1);
        }
        world.send("a", submit("a"), Patience::For(secs(600)));
        world.sim.advance(secs(17));
        let stopped = world.sim.clock().monotonic();
        world.recorder.stop();
        world.flush();
        assert!(world.sim.clock().monotonic().since(stopped) <= STOP_LIMIT, "{act:?}");
        let answers = world.answers();
        assert_eq!(answers.len(), 41, "{act:?}: {answers:?}");
        assert!(answers.iter().all(|(_, answer)| answer.starts_with("commit: ")), "{act:?}: {answers:?}");
        world.sim.run_until_stalled();
        assert!(!world.lives(), "{act:?}");
    }
}

#[test]
fn a_stop_lets_good_units_commit_beside_a_bad_one() {
    let world = World::new(5);
    let (bad, good) = (world.begin("bad"), world.begin("good"));
    let is_bad = |unit: &mainstay_store::Unit| unit.fence.as_ref().is_some_and(|fence| *fence.workflow() == "bad");
    world.store.script(move |units| if units.iter().any(is_bad) { Act::Fail(ErrorKind::Bug) } else { Act::Pass });
    world.step(&bad, 0);
    world.step(&good, 0);
    world.recorder.stop();
    world.flush();
    assert_eq!((world.recorded("bad"), world.recorded("good")), (vec![], vec![0]));
    assert_eq!(world.answers().len(), 2);
}

#[test]
fn a_process_that_ends_answers_what_it_holds() {
    let world = World::new(6);
    let fence = world.begin("w");
    world.store.script(|_| Act::Hang);
    world.step(&fence, 0);
    world.sim.run_until_stalled();
    world.step(&fence, 1);
    world.sim.env("shop").tasks().abort_all();
    world.sim.run_until_stalled();
    world.step(&fence, 2);
    let stopped = "commit: unavailable: stopped".to_owned();
    assert_eq!(world.answers(), ["w/0", "w/1", "w/2"].map(|label| (label.to_owned(), stopped.clone())));
    world.flush();
}

#[test]
fn a_hearer_that_panics_stops_nobody() {
    let world = World::new(7);
    let fence = world.begin("w");
    world.step(&fence, 0);
    world.recorder.send(&"w".into(), step(&fence, 1), Patience::Forever, Box::new(|_| panic!("on purpose")));
    world.step(&fence, 2);
    world.flush();
    assert_eq!(world.recorded("w"), [0, 1, 2]);
    assert_eq!(world.answers().len(), 2);
    assert!(world.sim.panics().is_empty(), "{:?}", world.sim.panics());
}

#[test]
fn a_hearer_may_send_again() {
    let world = World::new(8);
    let fence = world.begin("w");
    let (recorder, heard, next) = (world.recorder.clone(), world.heard.clone(), step(&fence, 1));
    let again = move |_| {
        let done = Box::new(move |answer| heard.lock().unwrap().push(("second".to_owned(), answer)));
        recorder.send(&"w".into(), next, Patience::Forever, done);
    };
    world.recorder.send(&"w".into(), step(&fence, 0), Patience::Forever, Box::new(again));
    world.flush();
    world.flush();
    assert_eq!(world.answers(), [("second".to_owned(), "done".to_owned())]);
}

#[test]
fn a_unit_that_is_sent_while_the_lane_looks_in_is_not_left_behind() {
    let world = World::new(12);
    let fence = world.begin("w");
    let (recorder, next) = (world.recorder.clone(), step(&fence, 0));
    // Without patience it is answered at the look, and what its hearer sends meets a lane that is busy.
    let again = move |_| recorder.send(&"w".into(), next, Patience::Forever, Box::new(|_| ()));
    world.recorder.send(&"w".into(), submit("a"), Patience::For(secs(0)), Box::new(again));
    world.sim.run_until_stalled();
    assert_eq!(world.recorded("w"), [0]);
}

/// The simulation's clock, whose next sleep panics when it is armed.
#[derive(Clone, Debug)]
struct Trap {
    clock: SimClock,
    armed: Arc<AtomicBool>,
}

impl Clock for Trap {
    fn now(&self) -> Timestamp {
        Clock::now(&self.clock)
    }
    fn monotonic(&self) -> Monotonic {
        self.clock.monotonic()
    }
    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        assert!(!self.armed.swap(false, Ordering::Relaxed), "a clock panics on purpose");
        self.clock.sleep_until(at)
    }
}

#[test]
fn a_panic_of_the_lane_costs_the_batch_under_way_and_nothing_else() {
    let world = World::new(9);
    let fence = world.begin("w");
    let armed = Arc::new(AtomicBool::new(false));
    let trap = Trap { clock: world.sim.clock().clone(), armed: armed.clone() };
    let env = world.sim.env("shop").with_clock(Arc::new(trap));
    let store = Scripted::new(world.memory.clone(), env.clone());
    let recorder = Recorder::start(store, env.tasks(), 1);
    armed.store(true, Ordering::Relaxed);
    let heard = Heard::default();
    let hear = |label: &str| {
        let (heard, label) = (heard.clone(), label.to_owned());
        Box::new(move |answer| heard.lock().unwrap().push((label, answer)))
    };
    // The first deadline makes the lane ask the clock for a sleep.
    recorder.send(&"a".into(), submit("a"), Patience::For(secs(30)), hear("lost"));
    world.sim.run_until_stalled();
    recorder.send(&"w".into(), step(&fence, 0), Patience::Forever, hear("kept"));
    world.sim.block_on(recorder.flushed());
    let heard = heard.lock().unwrap();
    assert_eq!(heard[0].0, "lost");
    assert_eq!(heard[0].1.as_ref().expect_err("it panicked").kind(), ErrorKind::Bug);
    assert!(heard[1].0 == "kept" && heard[1].1.is_ok(), "{heard:?}");
    assert_eq!(world.recorded("w"), [0]);
}

#[test]
fn a_unit_is_answered_once_whatever_comes_after() {
    let world = World::with(10, 1, WithDeadline::new);
    world.store.script(first(1, Act::Lose(ErrorKind::Timeout)));
    world.send("a", submit("a"), Patience::For(secs(0)));
    world.sim.advance(secs(120));
    world.recorder.stop();
    world.sim.advance(secs(120));
    assert_eq!(world.answers().len(), 1);
}

#[test]
fn two_processes_have_two_recorders() {
    let world = World::new(11);
    let memory: Memory = world.memory.attach(world.sim.env("other"));
    world.sim.block_on(memory.lease_beat(Beat::new("web~2", "shop", 1_u64))).expect("a first beat");
    let env = world.sim.env("other");
    let store = Scripted::new(memory, env.clone());
    let recorder = Recorder::start(store.clone(), env.tasks(), 1);
    world.recorder.stop();
    let answer = world.sim.block_on(recorder.commit(&"a".into(), submit("a"), Patience::For(secs(1))));
    assert!(answer.is_ok_and(|answer| answer.reply.is_done()), "one stop is one recorder's");
}
