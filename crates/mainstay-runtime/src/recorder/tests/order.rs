//! Random programs against random faults: everything commits once, in the order of each workflow, and is answered once.

use std::cell::Cell;

use mainstay_store::wrap::{FaultPlan, Faults, Method, Rates, with_faults};
use mainstay_store::{ErrorKind, Fence, Outcome, Unit};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::Patience;
use super::outages::in_order;
use super::world::{Act, World, secs, step, submit};

/// One thing that a test does.
#[derive(Clone, Debug)]
enum Move {
    /// The next step of a workflow.
    Step(usize),
    /// A unit of a workflow that is refused.
    Bad(usize),
    /// A caller outside, with so many seconds of patience.
    Outside(u64),
    /// Time passes, in milliseconds.
    Wait(u64),
    /// Everything but time goes on.
    Run,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        6 => (0..5_usize).prop_map(Move::Step),
        1 => (0..5_usize).prop_map(Move::Bad),
        2 => (0..40_u64).prop_map(Move::Outside),
        2 => (0..4000_u64).prop_map(Move::Wait),
        2 => Just(Move::Run),
    ];
    vec(one, 1..80)
}

/// Where the faults come from.
#[derive(Clone, Copy, Debug)]
enum Faulty {
    /// The wrappers of an engine over drawn faults: lost answers, delays, hung calls.
    Wrapped(f64),
    /// Drawn errors of any kind, straight from the store.
    Bare(u64),
}

fn faulty() -> impl Strategy<Value = Faulty> {
    prop_oneof![(0.02..0.22).prop_map(Faulty::Wrapped), (2..9_u64).prop_map(Faulty::Bare)]
}

fn world(seed: u64, lanes: usize, faulty: Faulty) -> (World, Option<Faults>) {
    let mut faults = None;
    let world = World::with(seed, lanes, |store| match faulty {
        Faulty::Bare(_) => store,
        Faulty::Wrapped(rate) => {
            let (store, handle) = with_faults(store, FaultPlan::new(seed).on(Method::Commit, Rates::each(rate)));
            faults = Some(handle);
            store
        }
    });
    if let Faulty::Bare(one_in) = faulty {
        let rng = world.sim.rng().child("script");
        world.store.script(move |_| {
            let kinds =
                [ErrorKind::Unavailable, ErrorKind::Timeout, ErrorKind::Contended, ErrorKind::Full, ErrorKind::Bug];
            let kind = *rng.pick(&kinds).expect("five");
            match rng.below(one_in) {
                0 if matches!(kind, ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Bug) => Act::Lose(kind),
                0 | 1 => Act::Fail(kind),
                _ => Act::Pass,
            }
        });
    }
    (world, faults)
}

/// Plays the moves; the answer says how many units were sent and how many steps each workflow has.
fn play(world: &World, fences: &[Fence], moves: &[Move]) -> (usize, Vec<i32>) {
    let mut next = vec![0; fences.len()];
    let mut sent = 0;
    for (at, one) in moves.iter().enumerate() {
        match *one {
            Move::Step(of) => {
                world.step(&fences[of], next[of]);
                next[of] += 1;
            }
            Move::Bad(of) => {
                let gone = Fence::issue(fences[of].workflow().clone(), "of an earlier run");
                world.send(fences[of].workflow().as_str(), step(&gone, i32::MAX - 1), Patience::Forever);
            }
            Move::Outside(patience) => {
                world.send("outside", submit(&format!("o{at}")), Patience::For(secs(patience)));
            }
            Move::Wait(millis) => world.sim.advance(std::time::Duration::from_millis(millis)),
            Move::Run => world.sim.run_until_stalled(),
        }
        sent += usize::from(matches!(one, Move::Step(_) | Move::Bad(_) | Move::Outside(_)));
    }
    (sent, next)
}

/// Counts units, and those among them that were committed by a try whose answer was lost.
fn check(seed: u64, lanes: usize, faulty: Faulty, moves: &[Move]) -> (usize, usize) {
    let (world, faults) = world(seed, lanes, faulty);
    let fences: Vec<Fence> = (0..5).map(|at| world.begin(&format!("w{at}"))).collect();
    let (mut sent, next) = play(&world, &fences, moves);
    for fence in &fences {
        let end = Unit::by(fence).outcome(Outcome::Success("1".into()));
        world.send(fence.workflow().as_str(), end, Patience::Forever);
        sent += 1;
    }
    world.sim.advance(secs(1));
    faults.iter().for_each(Faults::stop);
    world.store.heal();
    world.flush();
    let answers = world.answers();
    assert_eq!(answers.len(), sent, "each unit is answered once: {answers:?}");
    for (fence, steps) in fences.iter().zip(next) {
        let id = fence.workflow().as_str();
        assert_eq!(world.recorded(id), (0..steps).collect::<Vec<_>>(), "{id}");
    }
    let (outside, written): (Vec<_>, Vec<_>) =
        world.store.written().into_iter().partition(|it| it.starts_with("submit"));
    in_order(&written);
    assert_eq!(written.iter().filter(|label| label.ends_with("/end")).count(), 5);
    for (label, answer) in &answers {
        let own = label.ends_with("/end") || label.ends_with(&format!("/{}", i32::MAX - 1));
        let fits = match answer.as_str() {
            "done" => true,
            "recorded" => !label.starts_with("submit") && !own,
            // Written together with the outcome, its answer lost: the repeat finds the workflow ended.
            "superseded" => !label.starts_with("submit"),
            error => label.starts_with("submit") && error.starts_with("commit: "),
        };
        assert!(fits, "{label}: {answer}");
        let is_written = written.contains(label) || outside.contains(label);
        assert!(is_written || answer != "done", "{label} is told to be done and is not");
    }
    assert!(world.sim.panics().is_empty(), "{:?}", world.sim.panics());
    world.recorder.stop();
    world.sim.run_until_stalled();
    assert!(!world.lives());
    (sent, answers.iter().filter(|(_, answer)| answer == "recorded").count())
}

#[test]
fn whatever_fails_each_unit_commits_once_and_each_workflow_keeps_its_order() {
    let full = u32::from(std::env::var_os("MAINSTAY_FULL").is_some_and(|full| full == "1")) * 9 + 1;
    let config = Config { cases: 2_000 * full, failure_persistence: None, ..Config::default() };
    let (units, repeated) = (Cell::new(0), Cell::new(0));
    let cases = (any::<u64>(), 1..4_usize, faulty(), moves());
    let outcome = TestRunner::new(config).run(&cases, |(seed, lanes, faulty, moves)| {
        let (sent, recorded) = check(seed, lanes, faulty, &moves);
        units.set(units.get() + sent);
        repeated.set(repeated.get() + recorded);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let (units, repeated) = (units.get(), repeated.get());
    assert!(units > 40_000 && repeated > 2_000, "{units} units, {repeated} answered by a repeat");
}
