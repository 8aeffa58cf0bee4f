//! Random programs: run undisturbed, and again while processes die, calls fail and hints are lost. All ends the same.

mod body;
mod coverage;
mod crashes;
mod fleet;
mod ledger;
mod link;
mod play;
mod program;
mod scale;

use coverage::Coverage;
use play::{Plan, play};

/// Programs of a run, over all shards; ten times as many when `MAINSTAY_FULL` is 1.
const PROGRAMS: u64 = 2400;
const SHARDS: u64 = 2;
/// Most plans that are tried to make a failing one smaller.
const SHRINKS: u32 = 400;

/// Percent of the programs of a shard that must have met each thing: about half of what is met.
const FLOORS: &[(&str, f64)] = &[
    ("claim: more steps than it brings", 0.3),
    ("call: branch", 3e+01),
    ("call: cancel", 2e+01),
    ("call: delayed start", 7e+00),
    ("call: failing step", 2e+01),
    ("call: join", 4e+01),
    ("call: limited wait", 6e+00),
    ("call: replayed", 3e+01),
    ("call: run", 2e+01),
    ("call: sleep", 4e+01),
    ("call: start here", 3e+01),
    ("call: start inside a step", 1e+01),
    ("call: start on a narrow queue", 9e+00),
    ("call: start on a queue", 2e+01),
    ("call: start with a deadline", 6e+00),
    ("call: status", 2e+01),
    ("call: step", 4e+01),
    ("call: step with a large value", 9e+00),
    ("call: step with calls inside", 2e+01),
    ("call: step with retries", 2e+01),
    ("deadlines by a tick", 3e+00),
    ("dropped: sleep", 6e+00),
    ("dropped: sleep that has begun", 6e+00),
    ("dropped: start", 6e+00),
    ("dropped: step", 6e+00),
    ("dropped: step that has begun", 6e+00),
    ("execution: later one", 3e+01),
    ("fault: after", 4e+01),
    ("fault: before", 4e+01),
    ("fault: delay", 4e+01),
    ("fault: hang", 4e+01),
    ("hints: silent", 2e+01),
    ("kill", 5e+01),
    ("kill between a claim and its reply", 6e+00),
    ("kill between a start's commit and reply", 9e+00),
    ("kill between a step's commit and reply", 2e+01),
    ("kill between an outcome's commit and reply", 7e+00),
    ("kill inside a step", 2e+01),
    ("lease of a living process taken", 1e+01),
    ("leases renewed", 8e+00),
    ("places: few", 1e+01),
    ("race: fixed", 3e+01),
    ("race: won by the sleep", 8e+00),
    ("race: won by the step", 1e+01),
    ("reply: recorded", 2e+01),
    ("reply: superseded", 1e+01),
    ("rows taken over", 3e+01),
    ("shutdown", 1e+01),
];

fn shard(shard: u64, name: &str) {
    let mut coverage = Coverage::default();
    if let Ok(seed) = std::env::var("MAINSTAY_SIM_SEED") {
        return run(seed.parse().expect("MAINSTAY_SIM_SEED is a number"), name, &mut coverage);
    }
    let full = std::env::var("MAINSTAY_FULL").is_ok_and(|full| full == "1");
    let programs = if full { 10 * PROGRAMS } else { PROGRAMS } / SHARDS;
    for seed in 0..programs {
        run(shard * 1_000_000 + seed, name, &mut coverage);
    }
    report(&coverage);
    let missed = coverage.missed(FLOORS);
    assert!(missed.is_empty(), "met too seldom: {}", missed.join("; "));
}

#[allow(clippy::print_stdout, reason = "the figures of a run are for its reader")]
fn report(coverage: &Coverage) {
    println!("{coverage}");
}

/// Plays the plan of a seed; a failing one is made smaller first.
fn run(seed: u64, name: &str, coverage: &mut Coverage) {
    let plan = Plan::draw(seed);
    let (met, judged) = play(&plan);
    coverage.take(&met);
    let Err(error) = judged else { return };
    let (plan, error) = shrink(plan, error);
    panic!(
        "seed {seed}: {error}\n{plan:#?}\nreplay: MAINSTAY_SIM_SEED={seed} cargo nextest run -p mainstay-runtime --test \
         runtime {name}"
    );
}

/// The smallest plan found that still fails, and how.
fn shrink(mut plan: Plan, mut error: String) -> (Plan, String) {
    let mut tries = 0;
    'again: loop {
        let mut smaller: Vec<Plan> = Vec::new();
        for at in 0..plan.events.len() {
            let mut less = plan.clone();
            less.events.remove(at);
            smaller.push(less);
        }
        smaller.extend(plan.program.smaller().into_iter().map(|program| Plan { program, ..plan.clone() }));
        for less in smaller {
            tries += 1;
            if tries > SHRINKS {
                return (plan, error);
            }
            if let (_, Err(found)) = play(&less) {
                (plan, error) = (less, found);
                continue 'again;
            }
        }
        return (plan, error);
    }
}

#[test]
fn random_programs_end_as_undisturbed_1_of_2() {
    shard(0, "random_programs_end_as_undisturbed_1_of_2");
}

#[test]
fn random_programs_end_as_undisturbed_2_of_2() {
    shard(1, "random_programs_end_as_undisturbed_2_of_2");
}
