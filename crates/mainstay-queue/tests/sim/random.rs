//! The random sequences: actions and faults, every invariant after every poll, and a drain once faults are over.

mod drain;
mod play;

use crate::coverage::{Coverage, Met};
use crate::plan::{self, Sequence};
use play::play;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::RefCell;

/// Sequences of a run in CI, over all shards; ten times as many when `MAINSTAY_FULL` is set.
const SEQUENCES: u64 = 2000;
const SHARDS: u64 = 4;
/// Actions of a sequence.
const ACTIONS: usize = 60;
/// What shrinking may take: a broken engine is slow to drain, and the runner ends a test after five minutes.
const SHRINKS: u32 = 3000;
const SHRINK_MILLIS: u32 = 60_000;

/// Percent of the sequences of a shard that must have met each thing at least once: every action, fault and limit, at
/// about half of what is met, and the first of each kind at what was asked for.
const FLOORS: &[(&str, f64)] = &[
    ("limit: any", 30.0),
    ("limit: direct start", 5.0),
    ("limit: fleet", 30.0),
    ("limit: process", 40.0),
    ("limit: rate", 30.0),
    ("crash between claim and start", 20.0),
    ("cancel between claim and start", 10.0),
    ("resume between claim and start", 10.0),
    ("delete between claim and start", 10.0),
    ("lost acknowledgement", 20.0),
    ("lost claim acknowledgement", 15.0),
    ("failure before", 30.0),
    ("failed read", 8.0),
    ("delayed call", 25.0),
    ("hanging call", 8.0),
    ("claim: contended", 15.0),
    ("claim: no queue", 2.0),
    ("claim: stale", 15.0),
    ("claim: unleased", 2.0),
    ("take-over", 35.0),
    ("false dead taken over", 3.0),
    ("lease lost", 3.0),
    ("parked", 8.0),
    ("action: advance", 90.0),
    ("action: batch", 50.0),
    ("action: cancel", 30.0),
    ("action: control end", 15.0),
    ("action: crash", 25.0),
    ("action: delete", 30.0),
    ("action: delete queue", 20.0),
    ("action: direct start", 45.0),
    ("action: enqueue", 90.0),
    ("action: enqueue again", 35.0),
    ("action: fail", 15.0),
    ("action: fail reads", 14.0),
    ("action: fail the next call", 40.0),
    ("action: false dead", 17.0),
    ("action: finish", 40.0),
    ("action: forced resume", 30.0),
    ("action: give back", 10.0),
    ("action: launch", 35.0),
    ("action: mend", 25.0),
    ("action: panic", 9.0),
    ("action: pause queue", 20.0),
    ("action: promote version", 20.0),
    ("action: register queue", 40.0),
    ("action: resume", 35.0),
    ("action: set a trap", 40.0),
    ("action: set delay", 30.0),
    ("action: shut down", 18.0),
    ("action: stall the launcher", 15.0),
    ("action: stop claiming", 15.0),
    ("action: unstall the launcher", 25.0),
    ("action: update queue", 35.0),
];

/// One shard: its own seeds, its own floors.
fn shard(shard: u64, name: &str) {
    let base = shard * 1_000_000;
    let mut coverage = Coverage::default();
    match std::env::var("MAINSTAY_SIM_SEED").ok().map(|seed| seed.parse::<u64>()) {
        Some(seed) => return run(seed.expect("MAINSTAY_SIM_SEED is a number"), name, &mut coverage),
        None => {
            for seed in base..base + sequences() / SHARDS {
                run(seed, name, &mut coverage);
            }
        }
    }
    report(&coverage);
    let below = coverage.below(FLOORS);
    assert!(below.is_empty(), "met too seldom: {}", below.join(", "));
}

fn sequences() -> u64 {
    let full = std::env::var_os("MAINSTAY_FULL").is_some_and(|full| full == "1");
    if full { 10 * SEQUENCES } else { SEQUENCES }
}

#[allow(clippy::print_stdout, reason = "the figures of a run are for its reader")]
fn report(coverage: &Coverage) {
    println!("{coverage}");
}

/// Says what is wrong before it is shrunk, in case that shrinking is cut short.
#[allow(clippy::print_stdout, reason = "the figures of a run are for its reader")]
fn announce(seed: u64, violations: &[String]) {
    if !violations.is_empty() {
        println!("seed {seed} fails, shrinking: {}", violations.join("\n"));
    }
}

/// Draws the sequence of a seed, plays it, and shrinks it when it fails.
fn run(seed: u64, name: &str, coverage: &mut Coverage) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        cases: 1,
        max_shrink_iters: SHRINKS,
        max_shrink_time: SHRINK_MILLIS,
        failure_persistence: None,
        source_file: None,
        ..Config::default()
    };
    let first: RefCell<Option<Met>> = RefCell::default();
    let result = TestRunner::new_with_rng(config, rng).run(&plan::sequence(ACTIONS), |sequence| {
        let played = play(&sequence);
        if first.borrow().is_none() {
            announce(seed, &played.violations);
        }
        first.borrow_mut().get_or_insert(played.met);
        match played.violations.is_empty() {
            true => Ok(()),
            false => Err(TestCaseError::fail(played.violations.join("\n"))),
        }
    });
    if let Some(met) = first.into_inner() {
        coverage.add(&met);
    }
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, sequence)) => fail(seed, name, reason.message(), &sequence),
        Err(TestError::Abort(reason)) => panic!("seed {seed}: {reason}"),
    }
}

fn fail(seed: u64, name: &str, reason: &str, sequence: &Sequence) {
    let actions: Vec<String> = sequence.actions.iter().map(|action| format!("    {action:?}")).collect();
    panic!(
        "seed {seed}, shrunk to {} actions: {reason}\n  seed of the schedule {}, hints {:?}\n  fleet {:#?}\n  queues {:?}\n  actions\n{}\n\
         replay: MAINSTAY_SIM_SEED={seed} cargo nextest run -p mainstay-queue --test sim {name}",
        actions.len(),
        sequence.seed,
        sequence.hints,
        sequence.fleet,
        sequence.queues,
        actions.join("\n"),
    );
}

#[test]
fn random_sequences_keep_every_invariant_and_drain_1_of_4() {
    shard(0, "random_sequences_keep_every_invariant_and_drain_1_of_4");
}

#[test]
fn random_sequences_keep_every_invariant_and_drain_2_of_4() {
    shard(1, "random_sequences_keep_every_invariant_and_drain_2_of_4");
}

#[test]
fn random_sequences_keep_every_invariant_and_drain_3_of_4() {
    shard(2, "random_sequences_keep_every_invariant_and_drain_3_of_4");
}

#[test]
fn random_sequences_keep_every_invariant_and_drain_4_of_4() {
    shard(3, "random_sequences_keep_every_invariant_and_drain_4_of_4");
}
