//! What goes into a batch, and that it holds many.

use super::super::Patience;
use super::super::batch::{Entry, MAX_BYTES, MAX_UNITS, take, weight};
use super::world::{World, rewind, secs, step, submit};
use std::collections::VecDeque;

use mainstay_store::{Effect, Outcome, Payload, StepOutput, StepRow, Submit, Unit};

fn entries(units: impl IntoIterator<Item = Unit>) -> VecDeque<Entry> {
    units.into_iter().map(|unit| Entry::new("w".into(), unit, None, Box::new(|_| ()))).collect()
}

/// A submit whose input has so many bytes.
fn sized(bytes: u64) -> Unit {
    let bytes = usize::try_from(bytes).expect("small");
    Unit::new().effect(Submit::new("w", "job", "t", mainstay_store::Place::queue("q")).input("x".repeat(bytes)))
}

fn cuts(mut waiting: VecDeque<Entry>) -> Vec<usize> {
    std::iter::from_fn(|| Some(take(&mut waiting).len()).filter(|len| *len > 0)).collect()
}

#[test]
fn a_batch_is_cut_by_units() {
    assert_eq!(cuts(entries(vec![submit("w"); MAX_UNITS * 2 + 1])), [MAX_UNITS, MAX_UNITS, 1]);
}

#[test]
fn a_batch_is_cut_by_bytes_and_takes_at_least_one_unit() {
    let third = MAX_BYTES / 3 - 1000;
    assert_eq!(cuts(entries(vec![sized(third); 4])), [3, 1]);
    assert_eq!(cuts(entries([sized(1), sized(MAX_BYTES), sized(1), sized(MAX_BYTES * 2)])), [1, 1, 1, 1]);
}

#[test]
fn units_that_may_not_be_repeated_go_without_others() {
    let mixed = [submit("a"), submit("b"), rewind("c"), rewind("d"), submit("e")];
    assert_eq!(cuts(entries(mixed)), [2, 2, 1]);
}

#[test]
fn a_doubtful_unit_goes_alone() {
    let mut waiting = entries(vec![submit("w"); 5]);
    waiting[2].doubtful = true;
    waiting[3].doubtful = true;
    assert_eq!(cuts(waiting), [2, 1, 1, 1]);
}

#[test]
fn every_payload_of_a_unit_counts_against_the_bytes() {
    let big = || Payload::from("x".repeat(1000));
    let fence = mainstay_store::Fence::issue("w".into(), "t");
    let step = |output| Unit::by(&fence).step(StepRow::new(0, "s", output));
    let effect = |effect: Effect| Unit::by(&fence).effect(effect);
    let at = 0.into();
    let units = [
        step(StepOutput::Value(big())),
        step(StepOutput::Failure(big())),
        Unit::by(&fence).outcome(Outcome::Success(big())),
        Unit::by(&fence).outcome(Outcome::Parked(big())),
        effect(mainstay_store::Mail::new("m", "w", big()).into()),
        effect(Effect::SetEvent { at, key: "k".into(), value: big(), codec: None }),
        effect(Effect::StreamWrite { at, key: "k".into(), value: big(), codec: None }),
        effect(Effect::Attributes { id: "w".into(), json: Some(big()) }),
        effect(Effect::Debounce { queue: "q".into(), dedup: "d".into(), push: secs(1), input: big() }),
        sized(1000),
    ];
    for unit in units {
        assert!((1000..2000).contains(&weight(&unit)), "{unit:?} weighs {}", weight(&unit));
    }
}

#[test]
fn a_lone_unit_commits_at_once() {
    let world = World::new(1);
    let fence = world.begin("w");
    let before = world.sim.clock().clone();
    let began = mainstay_env::Clock::monotonic(&before);
    world.step(&fence, 0);
    world.flush();
    assert_eq!(world.answers(), [("w/0".to_owned(), "done".to_owned())]);
    assert_eq!(mainstay_env::Clock::monotonic(world.sim.clock()), began, "no time passes");
}

#[test]
fn many_units_need_few_commits() {
    let world = World::new(2);
    let (workflows, steps) = (16, 20);
    let fences: Vec<_> = (0..workflows).map(|at| world.begin(&format!("w{at}"))).collect();
    let callers: Vec<_> = fences
        .into_iter()
        .map(|fence| {
            let recorder = world.recorder.clone();
            let body = async move {
                for position in 0..steps {
                    let unit = step(&fence, position);
                    let answer = recorder.commit(fence.workflow(), unit, Patience::Forever).await;
                    assert!(answer.is_ok_and(|answer| answer.reply.is_done()));
                }
            };
            world.sim.env("shop").tasks().spawn("caller", body)
        })
        .collect();
    for caller in callers {
        world.sim.block_on(caller).expect("every step commits");
    }
    let (units, commits) = (workflows * steps, world.store.batches().len());
    assert_eq!(world.store.written().len(), usize::try_from(units).expect("few"));
    assert!(commits * 4 < usize::try_from(units).expect("few"), "{commits} commits for {units} units");
}

#[test]
fn the_units_of_a_workflow_share_a_lane_and_all_lanes_are_used() {
    let world = World::with(3, 4, |store| store);
    let lanes: Vec<usize> = (0..100)
        .map(|at| {
            let lane = |id: &str| {
                let found = world.recorder.lane(&id.into());
                world.recorder.lanes.iter().position(|lane| std::sync::Arc::ptr_eq(lane, found)).expect("a lane")
            };
            assert_eq!(lane(&format!("w{at}")), lane(&format!("w{at}")));
            lane(&format!("w{at}"))
        })
        .collect();
    for lane in 0..4 {
        let share = lanes.iter().filter(|at| **at == lane).count();
        assert!((10..=45).contains(&share), "lane {lane} has {share} of 100");
    }
}

#[test]
fn an_inner_error_is_its_units_alone() {
    let world = World::new(4);
    let fence = world.begin("w");
    world.step(&fence, 0);
    let bad = Unit::by(&fence).step(StepRow::new(1, "", StepOutput::Nothing));
    world.send("w", bad, Patience::Forever);
    world.step(&fence, 2);
    world.flush();
    assert_eq!(world.recorded("w"), [0, 2]);
    let answers = world.answers();
    assert_eq!((answers[0].1.as_str(), answers[2].1.as_str()), ("done", "done"));
    assert!(answers[1].1.starts_with("commit: invalid: steps.name"), "{answers:?}");
}
