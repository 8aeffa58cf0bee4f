//! Crashes at every poll: small programs, and a process that dies after its first, second, third … poll.

use super::coverage::Coverage;
use super::fleet::{Fleet, Setting};
use super::ledger::Amidst;
use super::play::{RECOVERY, drained, undisturbed};
use super::program::{Child, Dropped, Op, Place, Program, Stopper, Wait, Wins, Work};

/// Schedules of each program; ten times as many when `MAINSTAY_FULL` is 1.
const SCHEDULES: u64 = 3;

/// Who goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Heir {
    /// The same process, launched again.
    Itself,
    /// A second process, which is up all the time.
    Other,
}

fn work(value: i64) -> Work {
    Work { value, yields: 1, naps: 0, fails: false }
}

fn program(ops: &[Op]) -> Program {
    Program { ops: ops.to_vec(), fails: false }
}

fn child(place: Place, wait: Wait, asks: bool) -> Op {
    let program = program(&[Op::Step(work(20)), Op::Sleep(30), Op::Step(work(21))]);
    Op::Child(Child { program, place, wait, asks })
}

/// Kills the first process after every number of polls that the program lets it live for, in several schedules.
fn every_poll(name: &str, program: &Program) {
    let full = std::env::var("MAINSTAY_FULL").is_ok_and(|full| full == "1");
    let only = std::env::var("MAINSTAY_CRASH_AT").ok().map(|at| at.parse().expect("MAINSTAY_CRASH_AT is a number"));
    for heir in [Heir::Itself, Heir::Other] {
        let mut coverage = Coverage::default();
        for seed in 0..if full { 10 * SCHEDULES } else { SCHEDULES } {
            let wanted = undisturbed(seed, program).unwrap_or_else(|error| panic!("{name}: {error}"));
            for at in only.unwrap_or(1)..=only.unwrap_or(u32::MAX) {
                let processes = if heir == Heir::Itself { 1 } else { 2 };
                let mut fleet = Fleet::new(seed, processes, program, Setting::calm());
                fleet.all_up();
                if !crash_at(&mut fleet, at, heir) {
                    break;
                }
                if let Err(error) = drained(&mut fleet, &wanted, RECOVERY) {
                    panic!(
                        "{name}, schedule {seed}, killed after poll {at}, continued by {heir:?}: {error}\nreplay: \
                         MAINSTAY_CRASH_AT={at} cargo nextest run -p mainstay-runtime --test runtime {name}"
                    );
                }
                coverage.take(&fleet.ledger.lock().met);
            }
        }
        report(name, heir, &coverage);
        let wanted = [Amidst::Step, Amidst::StepAnswer, Amidst::OutcomeAnswer, Amidst::StartAnswer];
        let floors: Vec<_> = wanted.iter().map(|amidst| (amidst.label(), 0.01)).collect();
        assert!(only.is_some() || coverage.missed(&floors).is_empty(), "{name}: {:?}", coverage.missed(&floors));
    }
}

/// Runs for so many polls and kills the first process; false when all had ended and been told before.
fn crash_at(fleet: &mut Fleet, at: u32, heir: Heir) -> bool {
    for _ in 0..at {
        while !fleet.step() {}
        if fleet.is_done() && fleet.left().is_empty() {
            return false;
        }
    }
    fleet.kill(0);
    let unstarted = fleet.ledger.lock().open.is_empty();
    if heir == Heir::Itself || unstarted {
        fleet.launch(0);
    }
    true
}

#[allow(clippy::print_stdout, reason = "the figures of a run are for its reader")]
fn report(name: &str, heir: Heir, coverage: &Coverage) {
    println!("{name}, continued by {heir:?}: {coverage}");
}

#[test]
fn a_crash_at_every_poll_of_steps() {
    let failing = Op::Step(Work { fails: true, ..work(2) });
    let retried = Op::Retry { failures: 1, retries: 2, hangs: false, value: 3 };
    every_poll("a_crash_at_every_poll_of_steps", &program(&[Op::Step(work(1)), failing, retried, Op::Big(100)]));
}

#[test]
fn a_crash_at_every_poll_of_a_program_that_fails() {
    let program = Program { ops: vec![Op::Step(work(1)), Op::Sleep(10)], fails: true };
    every_poll("a_crash_at_every_poll_of_a_program_that_fails", &program);
}

#[test]
fn a_crash_at_every_poll_of_sleeps() {
    let dropped = [Dropped::Step, Dropped::Sleep, Dropped::SleepInside].map(Op::Dropped);
    let ops = [&[Op::Sleep(40), Op::Step(work(1))], &dropped[..], &[Op::Sleep(1500), Op::Step(work(2))]].concat();
    every_poll("a_crash_at_every_poll_of_sleeps", &program(&ops));
}

#[test]
fn a_crash_at_every_poll_of_children_here() {
    let ops = [child(Place::Here, Wait::Later, false), child(Place::Here, Wait::Now, true), Op::Step(work(1))];
    every_poll("a_crash_at_every_poll_of_children_here", &program(&ops));
}

#[test]
fn a_crash_at_every_poll_of_children_on_queues() {
    let ops = [
        child(Place::Narrow, Wait::Never, false),
        child(Place::Delayed(50), Wait::Later, true),
        Op::Dropped(Dropped::Start),
        Op::Run(program(&[Op::Step(work(5))])),
    ];
    every_poll("a_crash_at_every_poll_of_children_on_queues", &program(&ops));
}

#[test]
fn a_crash_at_every_poll_of_branches() {
    let branch =
        |value| Op::Branch { ops: vec![Op::Step(work(value)), Op::Sleep(20), Op::Step(work(value + 1))], now: false };
    let wide = Op::Branch { ops: vec![branch(7), Op::Step(work(9))], now: true };
    every_poll("a_crash_at_every_poll_of_branches", &program(&[branch(1), branch(3), Op::Step(work(5)), wide]));
}

#[test]
fn a_crash_at_every_poll_of_joins() {
    let joined = Op::Join(vec![work(1), Work { naps: 20, ..work(2) }, Work { fails: true, ..work(3) }]);
    every_poll("a_crash_at_every_poll_of_joins", &program(&[joined.clone(), Op::Dropped(Dropped::StepInside), joined]));
}

#[test]
fn a_crash_at_every_poll_of_races() {
    let wins = [Wins::Step(work(1)), Wins::Sleep(30), Wins::Either { naps: 20, sleeps: 20 }];
    let ops = [&wins.map(Op::Race)[..], &[Op::Step(work(2))]].concat();
    every_poll("a_crash_at_every_poll_of_races", &program(&ops));
}

#[test]
fn a_crash_at_every_poll_of_steps_that_call() {
    let inner = Some(program(&[Op::Step(work(3))]));
    let ops = [Op::Nested { value: 1, inner }, Op::Nested { value: 2, inner: None }];
    every_poll("a_crash_at_every_poll_of_steps_that_call", &program(&ops));
}

#[test]
fn a_crash_at_every_poll_of_cancellations() {
    let stoppers = [Stopper::Cancel(Place::Here), Stopper::Impatience(50), Stopper::Deadline(1200)];
    let ops = [&stoppers.map(Op::Stopped)[..], &[Op::Step(work(1))]].concat();
    every_poll("a_crash_at_every_poll_of_cancellations", &program(&ops));
}
