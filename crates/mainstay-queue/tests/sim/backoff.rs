//! The poll timer of a lane under contention and failures, against the recurrence that it must follow.

use crate::tools::{check, ms, secs};
use mainstay_env::Monotonic;
use mainstay_queue::{Due, Lane, LaneEffect, LaneInput, LaneOutput, Pace, Plan, Room};
use mainstay_store::{ErrorKind, Stop};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

/// Missed locks in a row until the timer is stretched: the first try and eight more.
const MISSES: usize = 9;

/// What happens to the lane in one round.
#[derive(Clone, Copy, Debug)]
enum Round {
    /// The queue's lock is missed until the lane leaves it to the timer.
    Contended,
    /// A claim comes through and finds nothing.
    Clean,
    /// A claim is refused.
    Refused,
    /// A probe fails.
    Unknown,
    /// A probe finds nothing.
    Nothing,
}

struct Rig {
    lane: Lane,
    now: Monotonic,
    draw: f64,
}

impl Rig {
    fn step(&mut self, input: LaneInput) -> LaneOutput {
        let room = Room { process: 100, running: 0 };
        self.lane.step(self.now, room, self.draw, input)
    }

    /// Lets time pass until the lane sends what is wanted.
    fn until(&mut self, input: LaneInput, wanted: impl Fn(&LaneEffect) -> bool) {
        let mut output = self.step(input);
        for _ in 0..20 {
            if output.effects.iter().any(&wanted) {
                return;
            }
            self.now = output.until.expect("the lane waits for a time").max(self.now);
            output = self.step(LaneInput::Look);
        }
        panic!("the lane never sends what is due: {:?}", self.lane);
    }

    fn claim(&mut self, input: LaneInput) {
        self.until(input, |effect| matches!(effect, LaneEffect::Claim { .. }));
    }

    /// Plays a round and answers the lane's last output.
    fn play(&mut self, round: Round) -> LaneOutput {
        match round {
            Round::Contended => {
                self.claim(LaneInput::Wakeup);
                for _ in 1..MISSES {
                    self.step(LaneInput::Replied(Stop::Contended));
                    self.claim(LaneInput::Look);
                }
                self.step(LaneInput::Replied(Stop::Contended))
            }
            Round::Clean => {
                self.claim(LaneInput::Wakeup);
                self.step(LaneInput::Replied(Stop::Drained))
            }
            Round::Refused => {
                self.claim(LaneInput::Wakeup);
                self.step(LaneInput::Failed(ErrorKind::Denied))
            }
            Round::Unknown | Round::Nothing => {
                self.until(LaneInput::Look, |effect| matches!(effect, LaneEffect::Probe));
                let due = if matches!(round, Round::Nothing) { Due::No } else { Due::Unknown };
                self.step(LaneInput::Probed(due))
            }
        }
    }
}

/// The recurrence: trouble doubles, a clean poll takes a tenth off contention and ends failures, within the bounds.
#[derive(Clone, Copy, Debug)]
struct Model {
    floor: f64,
    contention: f64,
    failures: f64,
}

impl Model {
    fn ceiling(self) -> f64 {
        self.floor.max(120.0)
    }

    fn interval(self) -> f64 {
        (self.floor * self.contention * self.failures).clamp(self.floor, self.ceiling())
    }

    fn play(&mut self, round: Round) {
        // One stretch is always kept, so that contention over a long floor fades like any other.
        let most = (self.ceiling() / self.floor).max(2.0);
        match round {
            Round::Contended => self.contention = (self.contention * 2.0).min(most),
            Round::Refused | Round::Unknown => self.failures = (self.failures * 2.0).min(most),
            Round::Clean | Round::Nothing => {
                self.contention = (self.contention * 0.9).max(1.0);
                self.failures = 1.0;
            }
        }
    }
}

fn rig(polling: Duration, draw: f64) -> Rig {
    let pace = Pace { batch: 64, cooldown: ms(5) };
    let mut plan = Plan::internal();
    plan.polling = polling;
    let mut rig = Rig { lane: Lane::new(pace, plan), now: Monotonic(secs(1000)), draw };
    // The first poll is due at once and is not what these tests are about.
    rig.play(Round::Nothing);
    rig
}

#[test]
fn the_poll_interval_follows_its_recurrence_within_floor_and_ceiling() {
    let round = prop_oneof![
        Just(Round::Contended),
        Just(Round::Clean),
        Just(Round::Refused),
        Just(Round::Unknown),
        Just(Round::Nothing),
    ];
    check(300, (1..300_000u64, 0.0..1.0f64, vec(round, 0..40)), |(polling, draw, rounds)| {
        let mut rig = rig(ms(polling), draw);
        let floor = ms(polling).as_secs_f64();
        let mut model = Model { floor, contention: 1.0, failures: 1.0 };
        let mut refused = false;
        for drawn in rounds {
            // What follows a refusal is a claim again, not a probe.
            let round = match drawn {
                Round::Unknown if refused => Round::Refused,
                Round::Nothing if refused => Round::Clean,
                other => other,
            };
            refused = matches!(round, Round::Refused);
            let output = rig.play(round);
            model.play(round);
            let interval = rig.lane.interval().as_secs_f64();
            assert!((interval - model.interval()).abs() < 1e-3, "{interval} after {round:?}, {model:?}");
            assert!(interval >= floor && interval <= model.ceiling());
            // The timer is the interval with its jitter; a refusal holds claims off for 6.25 s at most besides.
            let timer = output.until.expect("the poll timer runs").since(rig.now).as_secs_f64();
            let most = if matches!(round, Round::Refused) { (interval * 1.05).max(6.25) } else { interval * 1.05 };
            assert!(timer >= interval * 0.95 - 1e-3 && timer <= most + 1e-3, "{timer} of {interval}");
        }
    });
}

#[test]
fn contention_that_ends_is_forgotten_after_seven_clean_polls_a_doubling() {
    let mut rig = rig(secs(1), 0.5);
    for _ in 0..20 {
        rig.play(Round::Contended);
    }
    assert_eq!(rig.lane.interval(), secs(120), "the ceiling");
    // 2 is less than 0.9 to the power of minus 7, and 120 less than 2 to the power of 7.
    for _ in 0..49 {
        rig.play(Round::Nothing);
    }
    assert_eq!(rig.lane.interval(), secs(1), "the floor");
}

#[test]
fn a_wakeup_claims_after_the_cooldown_however_far_the_timer_is_stretched() {
    let mut rig = rig(secs(1), 0.5);
    for _ in 0..20 {
        rig.play(Round::Contended);
    }
    let asked = rig.now;
    rig.claim(LaneInput::Wakeup);
    assert!(rig.now.since(asked) <= ms(5));
}
