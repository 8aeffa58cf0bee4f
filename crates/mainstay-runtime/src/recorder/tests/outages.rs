//! A store that does not commit: who waits, who is told, and that everything commits once and in order afterwards.

use mainstay_env::Clock;
use mainstay_store::ErrorKind;
use mainstay_store::wrap::{self, WithDeadline};

use super::super::Patience;
use super::world::{Act, World, first, label, rewind, secs, submit};

#[test]
fn an_outage_of_minutes_delays_executions_and_costs_nothing_else() {
    for (seed, act) in [(1, Act::Fail(ErrorKind::Unavailable)), (2, Act::Lose(ErrorKind::Unavailable))] {
        let world = World::new(seed);
        let fences: Vec<_> = (0..3).map(|at| world.begin(&format!("w{at}"))).collect();
        world.store.script(move |_| act);
        for position in 0..4 {
            fences.iter().for_each(|fence| world.step(fence, position));
            world.sim.advance(secs(60));
        }
        assert_eq!(world.answers(), [], "nobody is told anything");
        let tries = world.store.batches().len();
        assert!((40..200).contains(&tries), "{tries} tries in four minutes");
        world.store.heal();
        let healed = world.sim.clock().monotonic();
        world.flush();
        assert!(world.sim.clock().monotonic().since(healed) <= secs(7), "the longest pause and its jitter");
        for fence in &fences {
            assert_eq!(world.recorded(fence.workflow().as_str()), [0, 1, 2, 3]);
        }
        in_order(&world.store.written());
        assert_eq!(world.answers().len(), 12);
        in_order(&world.answers().into_iter().map(|(label, _)| label).collect::<Vec<_>>());
    }
}

/// Labels of each workflow rise, and none comes twice.
pub(super) fn in_order(labels: &[String]) {
    let mut last = std::collections::BTreeMap::new();
    for label in labels {
        let (id, position) = label.split_once('/').expect("a step or an end");
        let position = position.parse().unwrap_or(i32::MAX);
        let before = last.insert(id, position);
        assert!(before.is_none_or(|before| before < position), "{label} after {before:?}: {labels:?}");
    }
}

#[test]
fn a_caller_outside_hears_the_last_error_when_its_patience_is_over() {
    let world = World::new(3);
    world.store.script(|_| Act::Fail(ErrorKind::Unavailable));
    let began = world.sim.clock().monotonic();
    let recorder = world.recorder.clone();
    let answer = world.sim.block_on(recorder.commit(&"a".into(), submit("a"), Patience::For(secs(30))));
    let error = answer.expect_err("the store is away");
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Unavailable, "commit: unavailable: scripted"));
    assert_eq!(world.sim.clock().monotonic().since(began), secs(30));
    world.store.heal();
    world.sim.advance(secs(60));
    assert_eq!(world.store.written(), Vec::<String>::new(), "what was answered is not sent any more");
}

#[test]
fn patience_ends_behind_a_commit_that_hangs() {
    let world = World::new(4);
    world.store.script(|_| Act::Hang);
    world.send("a", submit("a"), Patience::For(secs(2)));
    world.sim.run_until_stalled();
    world.send("b", submit("b"), Patience::For(secs(1)));
    world.sim.advance(secs(1));
    assert_eq!(world.answers(), [("submit b".to_owned(), "commit: timed out: no answer in time".to_owned())]);
    world.sim.advance(secs(1));
    assert_eq!(world.answers().len(), 2, "the one under way is told too");
}

#[test]
fn a_hung_commit_is_sent_again_after_its_deadline() {
    let world = World::with(5, 1, WithDeadline::new);
    let fence = world.begin("w");
    world.store.script(first(1, Act::Hang));
    world.step(&fence, 0);
    world.step(&fence, 1);
    world.sim.advance(secs(29));
    assert_eq!(world.answers(), []);
    world.sim.advance(secs(2));
    assert_eq!(world.recorded("w"), [0, 1]);
    assert_eq!(world.store.batches(), [["w/0", "w/1"], ["w/0", "w/1"]]);
}

#[test]
fn what_may_not_be_repeated_is_answered_unknown_when_its_answer_is_lost() {
    for (kind, expected) in [(ErrorKind::Unavailable, "Unknown"), (ErrorKind::Timeout, "Unknown")] {
        let world = World::new(6);
        world.store.script(first(1, Act::Lose(kind)));
        world.send("w", rewind("w"), Patience::For(secs(30)));
        world.flush();
        assert_eq!(world.answers(), [("rewind w".to_owned(), expected.to_owned())]);
        assert_eq!(world.store.batches().len(), 1, "sent once");
    }
    let world = World::new(7);
    world.store.script(first(2, Act::Fail(ErrorKind::Contended)));
    world.send("w", rewind("w"), Patience::For(secs(30)));
    world.flush();
    let refused = world.answers();
    assert!(refused[0].1.starts_with("Refused"), "a conflict proves that nothing was written: {refused:?}");
    assert_eq!(world.store.batches().len(), 3);
}

#[test]
fn a_store_without_space_makes_executions_wait_and_tells_callers_at_once() {
    for kind in [ErrorKind::Full, ErrorKind::Denied, ErrorKind::Corrupt, ErrorKind::Bug] {
        let world = World::new(8);
        let fence = world.begin("w");
        world.store.script(move |_| Act::Fail(kind));
        world.step(&fence, 0);
        world.send("a", submit("a"), Patience::For(secs(30)));
        world.sim.run_until_stalled();
        world.sim.advance(secs(2));
        assert_eq!(world.answers(), [("submit a".to_owned(), format!("commit: {kind}: scripted"))], "{kind}");
        world.sim.advance(secs(600));
        let tries = world.store.batches().len();
        assert!((15..50).contains(&tries), "{tries} tries in ten minutes, {kind}");
        let began = world.sim.clock().monotonic();
        let recorder = world.recorder.clone();
        let answer = world.sim.block_on(recorder.commit(&"b".into(), submit("b"), Patience::For(secs(30))));
        assert_eq!(answer.expect_err("still full").kind(), kind);
        assert!(world.sim.clock().monotonic().since(began) <= secs(2), "{kind}: a new caller does not wait long");
        world.store.heal();
        world.flush();
        assert_eq!(world.recorded("w"), [0], "{kind}");
    }
}

#[test]
fn a_unit_that_fails_alone_stops_nobody_but_its_workflow() {
    for act in [Act::Fail(ErrorKind::Bug), Act::Panic, Act::Miscount] {
        let world = World::new(9);
        let fences: Vec<_> = ["bad", "good", "fine"].map(|id| world.begin(id)).into();
        let is_bad = |unit: &mainstay_store::Unit| label(unit) == "bad/1";
        world.store.script(move |units| if units.iter().any(is_bad) { act } else { Act::Pass });
        for position in 0..4 {
            fences.iter().for_each(|fence| world.step(fence, position));
        }
        world.sim.advance(secs(5));
        assert_eq!((world.recorded("good"), world.recorded("fine")), (vec![0, 1, 2, 3], vec![0, 1, 2, 3]), "{act:?}");
        let before = world.store.batches().len();
        for position in 4..40 {
            fences.iter().for_each(|fence| world.step(fence, position));
            world.sim.advance(secs(10));
        }
        let expected: Vec<_> = (0..40).collect();
        assert_eq!((world.recorded("good"), world.recorded("fine")), (expected.clone(), expected.clone()), "{act:?}");
        let commits = world.store.batches().len() - before;
        assert!(commits < 36 * 2 + 10, "{commits} commits: the bad one is tried seldom");
        if act != Act::Miscount {
            assert_eq!(world.recorded("bad"), [0], "{act:?}");
        }
        world.store.heal();
        world.flush();
        assert_eq!(world.recorded("bad"), expected, "{act:?}");
        in_order(&world.store.written());
        assert!(world.sim.panics().is_empty(), "{:?}", world.sim.panics());
    }
}

#[test]
fn wrapped_as_an_engine_has_it_an_outage_is_survived_too() {
    let world = World::with(10, 2, wrap::standard);
    let fences: Vec<_> = (0..8).map(|at| world.begin(&format!("w{at}"))).collect();
    world.store.script(|_| Act::Lose(ErrorKind::Unavailable));
    for position in 0..3 {
        fences.iter().for_each(|fence| world.step(fence, position));
        world.sim.advance(secs(45));
    }
    world.store.heal();
    world.flush();
    for fence in &fences {
        assert_eq!(world.recorded(fence.workflow().as_str()), [0, 1, 2]);
    }
    in_order(&world.store.written());
}

#[test]
fn new_units_join_a_batch_that_is_tried_again_behind_the_old_ones() {
    let world = World::new(11);
    let (a, b) = (world.begin("a"), world.begin("b"));
    world.store.script(first(1, Act::Fail(ErrorKind::Contended)));
    world.step(&a, 0);
    world.sim.run_until_stalled();
    world.step(&b, 0);
    world.step(&a, 1);
    world.flush();
    assert_eq!(world.store.batches(), [vec!["a/0"], vec!["a/0", "b/0", "a/1"]]);
}
