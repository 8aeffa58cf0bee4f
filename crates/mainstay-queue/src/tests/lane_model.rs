//! A model of what a lane owes, kept beside it: every step of the lane is judged by it.

use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{ErrorKind, Queue, Reach, Revision, Stop};

use super::property::Word;
use crate::{Due, Lane, LaneEffect, LaneInput, LaneOutput, Pace, Plan, Room, Standing};

const MILLI: Duration = Duration::from_millis(1);
/// The longest hold-off, with its jitter.
const LONGEST_HOLD: Duration = Duration::from_millis(6_250);

/// A lane, its clock, the counts around it, and what it owes.
pub(super) struct Judged {
    lane: Lane,
    pace: Pace,
    now: Monotonic,
    room: Room,
    until: Option<Monotonic>,
    out: Option<u32>,
    unknown: Option<u32>,
    plan: Option<Plan>,
    revision: i64,
    stopping: bool,
    ended: bool,
    leased: bool,
    probing: bool,
    /// A claim is owed from this moment on.
    owed: Option<Monotonic>,
    /// A claim may also come from this moment on: a failed one may be tried again.
    allowed: Option<Monotonic>,
    opens: Option<Monotonic>,
    held: Option<Monotonic>,
    again: Option<Monotonic>,
    cooled: Option<Monotonic>,
    backlog: bool,
    hinted: bool,
    freed: bool,
    misses: u32,
    failing: bool,
    pub(super) claims: u64,
    pub(super) repeats: u64,
    pub(super) probes: u64,
}

impl Judged {
    pub(super) fn new() -> Self {
        let pace = Pace { batch: 8, cooldown: 5 * MILLI };
        let plan = Plan { revision: Some(Revision(0)), worker: Some(4), polling: Duration::from_secs(1) };
        let mut judged = Self {
            lane: Lane::new(pace, plan),
            pace,
            now: Monotonic(Duration::from_secs(1)),
            room: Room { process: 16, running: 0 },
            until: None,
            out: None,
            unknown: None,
            plan: Some(plan),
            revision: 0,
            stopping: false,
            ended: false,
            leased: true,
            probing: false,
            owed: None,
            allowed: None,
            opens: None,
            held: None,
            again: None,
            cooled: None,
            backlog: false,
            hinted: false,
            freed: false,
            misses: 0,
            failing: false,
            claims: 0,
            repeats: 0,
            probes: 0,
        };
        judged.step(LaneInput::Look, 0.5);
        judged
    }

    /// Decodes a word into one thing that happens.
    pub(super) fn act(&mut self, mut word: Word) {
        if self.ended {
            let (claims, repeats, probes) = (self.claims, self.repeats, self.probes);
            *self = Self { claims, repeats, probes, ..Self::new() };
        }
        let draw = word.draw();
        match word.below(24) {
            0..=4 => self.advance(Duration::from_millis(u64::from(word.below(40)))),
            5 => self.advance(Duration::from_millis(u64::from(word.below(200_000)))),
            6..=8 => self.wakeup(draw),
            9 | 10 => {
                self.room.running = self.room.running.saturating_sub(1);
                self.room.process += 1;
                self.freed(draw);
            }
            11 => {
                self.room.process = word.below(12);
                self.step(LaneInput::Look, draw);
            }
            12..=17 if self.out.is_some() => self.reply(&mut word, draw),
            18 if self.out.is_some() => self.fail(word.below(2) == 0, draw),
            12..=18 if self.probing => self.probed(word.below(3), draw),
            19 => self.publish(&mut word, draw),
            20 => self.lease(draw),
            21 => self.recover(draw),
            22 if word.below(40) == 0 => {
                self.stopping = true;
                self.step(LaneInput::Stop, draw);
            }
            _ => self.join(),
        }
    }

    fn advance(&mut self, by: Duration) {
        let target = self.now + by;
        while let Some(until) = self.until.filter(|until| *until <= target) {
            self.now = until;
            self.step(LaneInput::Look, 0.5);
        }
        self.now = target;
    }

    fn owe(&mut self, at: Monotonic) {
        self.owed = Some(self.owed.map_or(at, |owed| owed.min(at)));
    }

    fn wakeup(&mut self, draw: f64) {
        if self.out.is_some() || self.unknown.is_some() {
            self.hinted = true;
        } else {
            self.owe(self.now);
        }
        self.step(LaneInput::Wakeup, draw);
    }

    fn freed(&mut self, draw: f64) {
        if self.out.is_some() || self.unknown.is_some() {
            self.freed = true;
        } else if self.backlog {
            self.owe(self.now);
        }
        self.step(LaneInput::Freed, draw);
    }

    fn reply(&mut self, word: &mut Word, draw: f64) {
        let Some(budget) = self.out.take() else { return };
        let stop = match word.below(9) {
            0 => Stop::Drained,
            1 => Stop::More,
            2 => Stop::Limit(Reach::Process),
            3 => Stop::Limit(Reach::Fleet),
            4 => Stop::RateIn(Duration::from_millis(u64::from(word.below(3_000)))),
            5 | 6 => Stop::Contended,
            7 => Stop::Stale(Box::new(self.changed_queue(word))),
            _ => [Stop::NoQueue, Stop::Unleased][word.below(2) as usize].clone(),
        };
        let took = match stop {
            Stop::More | Stop::Limit(Reach::Process) => budget,
            Stop::Drained | Stop::RateIn(_) | Stop::Limit(_) => word.below(budget + 1).min(budget - 1),
            _ => 0,
        };
        self.room.running += took;
        self.room.process = self.room.process.saturating_sub(took);
        self.settle(&stop);
        self.step(LaneInput::Replied(stop), draw);
    }

    fn changed_queue(&mut self, word: &mut Word) -> Queue {
        self.revision += 1;
        let mut queue = Queue::new("q", Revision(self.revision));
        queue.stored.worker_concurrency = Some(word.below(6));
        queue.polling(Duration::from_millis(u64::from(word.below(5_000)) + 1))
    }

    /// What an answer leaves the lane to owe.
    fn settle(&mut self, stop: &Stop) {
        let (hinted, freed) = (std::mem::take(&mut self.hinted), std::mem::take(&mut self.freed));
        (self.owed, self.allowed, self.opens, self.held, self.probing) = (None, None, None, None, false);
        let misses = std::mem::take(&mut self.misses);
        self.failing &= *stop == Stop::Contended;
        match stop {
            Stop::More | Stop::Limit(Reach::Process) => (self.backlog, self.owed) = (true, Some(self.now)),
            Stop::Limit(_) => (self.backlog, self.owed) = (true, freed.then_some(self.now)),
            Stop::RateIn(time) => {
                (self.backlog, self.opens) = (true, Some(self.now + *time));
                self.owed = self.opens;
            }
            Stop::Contended if misses < 8 => {
                self.misses = misses + 1;
                self.owed = Some(self.now + 50 * MILLI);
                self.allowed = Some(self.now + 5 * MILLI);
            }
            Stop::Contended => {}
            Stop::Stale(queue) => {
                if self.plan.is_some() {
                    self.plan = Some(Plan::of(queue));
                }
                (self.cooled, self.owed) = (None, Some(self.now));
            }
            Stop::Unleased => (self.leased, self.owed) = (false, Some(self.now)),
            _ => self.backlog = false,
        }
        if hinted {
            self.owe(self.now);
        }
    }

    fn fail(&mut self, unknown: bool, draw: f64) {
        let budget = self.out.take();
        self.failing = true;
        if unknown {
            self.unknown = budget;
            self.again = Some(self.now + LONGEST_HOLD);
            self.step(LaneInput::Failed(ErrorKind::Unavailable), draw);
        } else {
            let hinted = std::mem::take(&mut self.hinted) | std::mem::take(&mut self.freed);
            self.probing = false;
            self.held = Some(self.now + LONGEST_HOLD);
            self.owed = Some(if hinted { self.now } else { self.now + Duration::from_secs(5_000) });
            self.allowed = Some(self.now);
            self.step(LaneInput::Failed(ErrorKind::Denied), draw);
        }
    }

    fn probed(&mut self, which: u32, draw: f64) {
        self.probing = false;
        self.failing = (self.failing || which == 2) && which != 1;
        let due = [Due::Yes, Due::No, Due::Unknown][which as usize];
        // A claim that is out answers the question better.
        if due == Due::Yes && self.out.is_none() && self.unknown.is_none() {
            self.owe(self.now);
        } else if due == Due::Yes {
            self.allowed = Some(self.now);
        }
        self.step(LaneInput::Probed(due), draw);
    }

    fn publish(&mut self, word: &mut Word, draw: f64) {
        let plan = match word.below(30) {
            0 => None,
            _ => Some(Plan::of(&self.changed_queue(word))),
        };
        if self.out.is_some() || self.unknown.is_some() {
            self.hinted = true;
        } else if self.opens.is_some() || self.held.is_some() || self.backlog {
            self.owe(self.now);
        }
        (self.opens, self.held) = (None, None);
        self.plan = plan;
        self.step(LaneInput::Published(plan), draw);
    }

    fn lease(&mut self, draw: f64) {
        if self.leased {
            (self.leased, self.out, self.unknown) = (false, None, None);
            self.owe(self.now);
            self.step(LaneInput::Lost, draw);
        } else {
            self.leased = true;
            self.step(LaneInput::Renewed, draw);
        }
    }

    fn recover(&mut self, draw: f64) {
        if std::mem::take(&mut self.failing) {
            self.held = None;
            self.owed = self.owed.map(|owed| owed.min(self.now));
            self.allowed = Some(self.now);
        }
        self.again = Some(self.now);
        self.step(LaneInput::Recovered, draw);
    }

    fn join(&mut self) {
        let was = self.probing;
        let joined = self.lane.join(self.now, self.room);
        assert!(joined || !was, "a lane that waits for a probe takes part in it");
        if joined && !was {
            assert!(self.out.is_none() && self.unknown.is_none() && self.leased && !self.stopping, "it may poll");
        }
        self.probing = joined;
        self.step(LaneInput::Look, 0.5);
    }

    fn step(&mut self, input: LaneInput, draw: f64) {
        let output = self.lane.step(self.now, self.room, draw, input);
        self.until = output.until;
        for effect in &output.effects {
            self.effect(*effect);
        }
        self.judge(&output);
    }

    fn effect(&mut self, effect: LaneEffect) {
        assert!(!self.ended, "nothing follows the end");
        match effect {
            LaneEffect::Claim { budget, repeat: true } => {
                assert_eq!(self.unknown.take(), Some(budget), "a repeat sends the lost claim again");
                assert!(!self.stopping, "no claim begins after the stop");
                self.repeats += 1;
                self.sent(budget);
            }
            LaneEffect::Claim { budget, repeat: false } => {
                assert!(
                    self.out.is_none() && self.unknown.is_none(),
                    "one claim at a time, none in place of a lost one"
                );
                assert!(self.plan.is_some() && self.leased && !self.stopping, "it may claim");
                assert_eq!(budget, self.exact(), "a claim asks for exactly the room there is");
                assert!(budget > 0, "a claim without room");
                assert!(self.cooled.is_none_or(|cooled| self.now >= cooled), "within the cooldown");
                assert!(self.opens.is_none_or(|opens| self.now >= opens), "before the rate window opens");
                let due = |at: Option<Monotonic>| at.is_some_and(|at| at <= self.now);
                assert!(due(self.owed) || due(self.allowed), "a claim without a reason: {:?}", self.lane);
                self.claims += 1;
                self.sent(budget);
            }
            LaneEffect::Probe => {
                assert!(self.out.is_none() && self.unknown.is_none() && !self.probing && self.leased, "it may poll");
                self.probing = true;
                self.probes += 1;
            }
            LaneEffect::Renew => assert!(!self.leased, "the lease is gone"),
            LaneEffect::End => {
                assert!(self.out.is_none() && (self.stopping || self.plan.is_none()), "a reason to end");
                assert!(self.stopping || self.unknown.is_none(), "a lost claim is asked for before the end");
                (self.ended, self.probing) = (true, false);
            }
        }
    }

    fn sent(&mut self, budget: u32) {
        (self.out, self.owed, self.allowed) = (Some(budget), None, None);
        self.cooled = Some(self.now + self.pace.cooldown);
    }

    fn worker_room(&self) -> u32 {
        let worker = self.plan.and_then(|plan| plan.worker);
        worker.map_or(u32::MAX, |worker| worker.saturating_sub(self.room.running))
    }

    fn exact(&self) -> u32 {
        self.pace.batch.min(self.worker_room()).min(self.room.process)
    }

    /// What must hold after every step.
    fn judge(&self, output: &LaneOutput) {
        assert!(output.until.is_none_or(|until| until > self.now), "a time to look again that has come already");
        let floor = self.plan.map_or(Duration::from_secs(1), |plan| plan.polling);
        let interval = self.lane.interval();
        assert!(interval >= floor && interval <= floor.max(Duration::from_secs(120)), "{interval:?} of {floor:?}");
        assert_eq!(self.lane.is_out(), self.out.is_some());
        assert_eq!(self.lane.outstanding(), self.out.is_some() || self.unknown.is_some());
        assert_eq!(self.lane.has_ended(), self.ended);
        if self.ended || self.out.is_some() {
            return;
        }
        assert!(
            !self.stopping && (self.plan.is_some() || self.unknown.is_some()),
            "it has a reason to end and did not"
        );
        if self.unknown.is_some() {
            let again = output.until.expect("a lost claim is sent again some time");
            assert!(self.again.is_none_or(|latest| again <= latest.max(self.now)), "and soon");
            return;
        }
        if self.leased && self.worker_room() > 0 {
            self.judge_liveness(output);
        }
    }

    fn judge_liveness(&self, output: &LaneOutput) {
        let gates = [self.cooled, self.opens, self.held];
        let due = self.owed.map(|owed| gates.into_iter().flatten().fold(owed, Monotonic::max));
        match due {
            Some(due) if due <= self.now => {
                assert_eq!(self.room.process, 0, "a due lane with room has a claim out: {:?}", self.lane);
                assert_eq!(output.standing, Standing::Wait, "a due lane without a place waits in line");
            }
            _ if output.standing == Standing::Wait => assert_eq!(self.room.process, 0, "it waits for nothing else"),
            Some(due) => {
                let until = output.until.expect("an owed claim has its time");
                assert!(until <= due, "it comes {until:?}, owed {due:?}");
            }
            None => assert!(self.probing || output.until.is_some(), "an idle lane polls some time"),
        }
        if let Some(until) = output.until {
            let most =
                self.lane.interval().mul_f64(1.05).max(self.opens.map_or(Duration::ZERO, |at| at.since(self.now)));
            assert!(until.since(self.now) <= most.max(LONGEST_HOLD), "not later than the poll timer");
        }
    }
}
