//! The lane of one queue: what its worker does now. Pure: inputs and a reading of the clock in, effects out.

use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{ErrorKind, Queue, Reach, Revision, Stop, wire};

use crate::backoff::{Backoff, hold_off, scaled};
use crate::tally::Room;

/// Tries after a missed queue lock before it is left to the poll timer.
const RETRIES: u32 = 8;
/// Such a try comes after this much.
const RETRY_LEAST: Duration = Duration::from_millis(5);
/// And at most after this much.
const RETRY_MOST: Duration = Duration::from_millis(50);

/// What a lane goes by of its queue's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Revision that a claim names; none for the internal queue.
    pub revision: Option<Revision>,
    /// Most executions in this process, where limited.
    pub worker: Option<u32>,
    /// Interval of the poll.
    pub polling: Duration,
}

impl Plan {
    /// Of the internal queue: no row, no limit, the usual interval.
    #[must_use]
    pub const fn internal() -> Self {
        Self { revision: None, worker: None, polling: Duration::from_millis(wire::POLL_MILLIS) }
    }

    /// Of a stored queue, by its resolved limits.
    #[must_use]
    pub fn of(queue: &Queue) -> Self {
        let worker = queue.limits().worker_concurrency;
        Self { revision: Some(queue.revision), worker, polling: queue.polling.max(Duration::from_millis(1)) }
    }
}

/// What every lane of a process goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Most rows of one claim.
    pub batch: u32,
    /// Least time from one claim to the next.
    pub cooldown: Duration,
}

/// What happened to a lane.
#[derive(Clone, Debug, PartialEq)]
pub enum LaneInput {
    /// The set has the queue in this form, or no longer.
    Published(Option<Plan>),
    /// A hint that a row became claimable.
    Wakeup,
    /// A slot of the queue came free.
    Freed,
    /// The process may have a place, or time has passed.
    Look,
    /// A claim was answered, and its rows are counted.
    Replied(Stop),
    /// A claim failed.
    Failed(ErrorKind),
    /// The probe that the lane took part in was answered.
    Probed(Due),
    /// The executor's lease is gone: no claim, and no answer to one that is out, counts any more.
    Lost,
    /// The executor has a new lease.
    Renewed,
    /// The store answers again after it had failed the supervisor.
    Recovered,
    /// No claim may begin any more.
    Stop,
}

/// What a probe said of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It has an eligible row.
    Yes,
    /// It has none.
    No,
    /// The probe failed.
    Unknown,
}

/// What the worker of a lane must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneEffect {
    /// Send a claim.
    Claim {
        /// Most rows.
        budget: u32,
        /// Send the last one again, with its token, because its answer was lost.
        repeat: bool,
    },
    /// Take part in the next probe.
    Probe,
    /// Tell the supervisor that the lease is gone.
    Renew,
    /// End: the queue is out of the set or the engine stops, and nothing is out.
    End,
}

/// Where the queue stands among those that wait for a place of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It needs no place.
    Leave,
    /// It keeps its turn if it has one.
    Keep,
    /// It wants to claim and has no place.
    Wait,
}

/// What follows from an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneOutput {
    /// In order.
    pub effects: Vec<LaneEffect>,
    /// When to look again; `None` when only an input can change anything.
    pub until: Option<Monotonic>,
    /// The wish for a place.
    pub standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Flight {
    Idle,
    Out { budget: u32 },
    Unknown { budget: u32, again: Monotonic },
}

/// The state of one queue in this process.
#[derive(Clone, Debug)]
pub struct Lane {
    pace: Pace,
    plan: Option<Plan>,
    flight: Flight,
    backoff: Backoff,
    /// A claim is wanted from this moment on, without a probe.
    eager: Option<Monotonic>,
    /// A rate window is full until then.
    opens: Option<Monotonic>,
    /// A failure holds claims off until then.
    hold: Option<Monotonic>,
    sent_at: Option<Monotonic>,
    poll_at: Monotonic,
    probing: bool,
    /// The last claim left rows behind, as far as it can tell.
    backlog: bool,
    /// Hints that came while a claim was out.
    nudged: bool,
    freed: bool,
    misses: u32,
    failures: u32,
    leased: bool,
    stopping: bool,
    ended: bool,
}

impl Lane {
    /// A lane that polls as soon as its queue is published.
    #[must_use]
    pub const fn new(pace: Pace, plan: Plan) -> Self {
        Self {
            pace,
            plan: Some(plan),
            flight: Flight::Idle,
            backoff: Backoff::new(),
            eager: None,
            opens: None,
            hold: None,
            sent_at: None,
            poll_at: Monotonic(Duration::ZERO),
            probing: false,
            backlog: false,
            nudged: false,
            freed: false,
            misses: 0,
            failures: 0,
            leased: true,
            stopping: false,
            ended: false,
        }
    }

    /// Whether a claim is out, or its answer was lost and it will be sent again.
    #[must_use]
    pub const fn outstanding(&self) -> bool {
        !matches!(self.flight, Flight::Idle)
    }

    /// Whether a claim waits for its answer.
    #[must_use]
    pub const fn is_out(&self) -> bool {
        matches!(self.flight, Flight::Out { .. })
    }

    /// Whether the lane waits for a probe.
    #[must_use]
    pub const fn is_probing(&self) -> bool {
        self.probing
    }

    /// Whether the lane has told its worker to end.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// The form of the queue that the next claim goes by.
    #[must_use]
    pub const fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// The poll interval now, before jitter.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.backoff.interval(self.polling())
    }

    /// Whether the lane takes part in a probe that goes out now: because it waits for one, or because its own poll would
    /// come within half an interval, so that the polls of all queues fall together.
    pub fn join(&mut self, now: Monotonic, room: Room) -> bool {
        let near = self.poll_at.since(now) <= self.interval() / 2;
        if near && self.may_poll(room) {
            self.probing = true;
        }
        self.probing
    }

    /// Takes an input; `draw` in [0, 1) is where its jitter comes from.
    pub fn step(&mut self, now: Monotonic, room: Room, draw: f64, input: LaneInput) -> LaneOutput {
        let mut effects = Vec::new();
        match input {
            LaneInput::Published(plan) => self.publish(now, plan),
            LaneInput::Wakeup if self.outstanding() => self.nudged = true,
            LaneInput::Wakeup => self.want(now),
            LaneInput::Freed if self.outstanding() => self.freed = true,
            LaneInput::Freed if self.backlog => self.want(now),
            LaneInput::Freed | LaneInput::Look => {}
            LaneInput::Replied(stop) if self.is_out() => self.replied(now, draw, stop, &mut effects),
            LaneInput::Failed(kind) if self.is_out() => self.failed(now, draw, kind),
            LaneInput::Replied(_) | LaneInput::Failed(_) => {}
            LaneInput::Probed(due) => self.probed(now, draw, due),
            LaneInput::Lost => self.lose(now),
            LaneInput::Renewed => self.leased = true,
            LaneInput::Recovered => self.recover(now),
            LaneInput::Stop => self.stopping = true,
        }
        self.decide(now, room, effects)
    }

    fn polling(&self) -> Duration {
        self.plan.map_or(Duration::from_millis(wire::POLL_MILLIS), |plan| plan.polling)
    }

    fn want(&mut self, at: Monotonic) {
        self.eager = Some(self.eager.map_or(at, |eager| eager.min(at)));
    }

    fn poll_later(&mut self, now: Monotonic, draw: f64) {
        self.poll_at = now + self.backoff.jittered(self.polling(), draw);
    }

    fn publish(&mut self, now: Monotonic, plan: Option<Plan>) {
        if self.plan == plan {
            return;
        }
        self.plan = plan;
        // A limit may be higher than the one that stopped the last claim, or stops the one that is out.
        let stopped = self.opens.take().is_some() | self.hold.take().is_some() | self.backlog;
        if self.outstanding() {
            self.nudged = true;
        } else if stopped {
            self.want(now);
        }
        self.poll_at = self.poll_at.min(now);
    }

    fn probed(&mut self, now: Monotonic, draw: f64, due: Due) {
        if !self.probing {
            return;
        }
        self.probing = false;
        match due {
            Due::Yes => self.want(now),
            Due::No => self.backoff.relax(),
            Due::Unknown => self.backoff.failed(self.polling()),
        }
        self.poll_later(now, draw);
    }

    fn recover(&mut self, now: Monotonic) {
        if self.backoff.is_failing() {
            self.backoff.recover();
            self.poll_at = self.poll_at.min(now);
            self.hold = None;
            self.eager = self.eager.map(|_| now);
        }
        if let Flight::Unknown { again, .. } = &mut self.flight {
            *again = now.min(*again);
        }
    }

    fn lose(&mut self, now: Monotonic) {
        self.leased = false;
        self.flight = Flight::Idle;
        self.want(now);
    }

    fn replied(&mut self, now: Monotonic, draw: f64, stop: Stop, effects: &mut Vec<LaneEffect>) {
        self.flight = Flight::Idle;
        self.probing = false;
        self.failures = 0;
        self.hold = None;
        self.opens = None;
        self.eager = None;
        let freed = std::mem::take(&mut self.freed);
        if stop != Stop::Contended {
            self.misses = 0;
            self.backoff.relax();
        }
        match stop {
            Stop::More | Stop::Limit(Reach::Process) => {
                self.backlog = true;
                self.want(now);
            }
            Stop::Limit(Reach::Fleet | Reach::Key) => {
                self.backlog = true;
                self.eager = freed.then_some(now);
            }
            Stop::RateIn(time) => {
                self.backlog = true;
                self.opens = Some(now + time);
                self.want(now + time);
            }
            Stop::Contended => self.missed(now, draw),
            Stop::Stale(queue) => self.adopt(now, &queue),
            Stop::Unleased => {
                self.leased = false;
                self.want(now);
                effects.push(LaneEffect::Renew);
            }
            // What is new to this code left nothing behind that it could wait for.
            _ => self.backlog = false,
        }
        if std::mem::take(&mut self.nudged) {
            self.want(now);
        }
        self.poll_later(now, draw);
    }

    fn missed(&mut self, now: Monotonic, draw: f64) {
        if self.misses < RETRIES {
            self.misses += 1;
            self.want(now + RETRY_LEAST + scaled(RETRY_MOST - RETRY_LEAST, draw));
        } else {
            self.misses = 0;
            self.backoff.contended(self.polling());
        }
    }

    fn adopt(&mut self, now: Monotonic, queue: &Queue) {
        let plan = Plan::of(queue);
        if self.plan.is_some_and(|old| old.revision != plan.revision) {
            // Nothing was taken, so the cooldown has nothing to space.
            self.sent_at = None;
        }
        if self.plan.is_some() {
            self.plan = Some(plan);
        }
        self.want(now);
    }

    fn failed(&mut self, now: Monotonic, draw: f64, kind: ErrorKind) {
        let Flight::Out { budget } = self.flight else { return };
        self.failures += 1;
        self.backoff.failed(self.polling());
        self.poll_later(now, draw);
        let again = now + hold_off(self.failures, draw);
        if kind.outcome_unknown() {
            self.flight = Flight::Unknown { budget, again };
            return;
        }
        self.flight = Flight::Idle;
        self.probing = false;
        self.hold = Some(again);
        let nudged = std::mem::take(&mut self.nudged) | std::mem::take(&mut self.freed);
        self.eager = Some(if nudged { now } else { self.poll_at });
    }

    /// When the wanted claim may go: after the cooldown, and not before a full window opens or a hold-off ends.
    fn ready_at(&self) -> Option<Monotonic> {
        let cooled = self.sent_at.map(|sent| sent + self.pace.cooldown);
        self.eager.map(|eager| [cooled, self.opens, self.hold].into_iter().flatten().fold(eager, Monotonic::max))
    }

    fn worker_room(&self, room: Room) -> u32 {
        self.plan.and_then(|plan| plan.worker).map_or(u32::MAX, |worker| worker.saturating_sub(room.running))
    }

    fn may_poll(&self, room: Room) -> bool {
        let idle = !self.outstanding() && self.eager.is_none();
        idle && self.leased && !self.stopping && self.plan.is_some() && self.worker_room(room) > 0
    }

    fn decide(&mut self, now: Monotonic, room: Room, mut effects: Vec<LaneEffect>) -> LaneOutput {
        let mut standing = Standing::Leave;
        let until = match self.flight {
            _ if self.ended => None,
            Flight::Out { .. } => None,
            Flight::Idle | Flight::Unknown { .. } if self.stopping => self.end(&mut effects),
            Flight::Unknown { again, .. } if now < again => Some(again),
            Flight::Unknown { budget, .. } => self.send(now, budget, true, &mut effects),
            Flight::Idle if self.plan.is_none() => self.end(&mut effects),
            Flight::Idle if !self.leased => None,
            Flight::Idle => self.idle(now, room, &mut standing, &mut effects),
        };
        LaneOutput { effects, until, standing }
    }

    fn idle(
        &mut self,
        now: Monotonic,
        room: Room,
        standing: &mut Standing,
        effects: &mut Vec<LaneEffect>,
    ) -> Option<Monotonic> {
        let worker = self.worker_room(room);
        if worker == 0 {
            return None;
        }
        if let Some(ready) = self.ready_at() {
            if now < ready {
                *standing = Standing::Keep;
                return Some(ready);
            }
            let budget = self.pace.batch.min(worker).min(room.process);
            if budget == 0 {
                *standing = Standing::Wait;
                return None;
            }
            return self.send(now, budget, false, effects);
        }
        if self.probing {
            return None;
        }
        if now < self.poll_at {
            return Some(self.poll_at);
        }
        self.probing = true;
        effects.push(LaneEffect::Probe);
        None
    }

    fn send(&mut self, now: Monotonic, budget: u32, repeat: bool, effects: &mut Vec<LaneEffect>) -> Option<Monotonic> {
        self.flight = Flight::Out { budget };
        self.sent_at = Some(now);
        effects.push(LaneEffect::Claim { budget, repeat });
        None
    }

    fn end(&mut self, effects: &mut Vec<LaneEffect>) -> Option<Monotonic> {
        self.ended = true;
        self.probing = false;
        effects.push(LaneEffect::End);
        None
    }
}
