//! When the supervisor ticks and when its lease beats. Pure: readings of the clock and answers in, calls to make out.

use std::time::Duration;

use mainstay_env::Monotonic;

use crate::backoff::scaled;

/// A call that takes longer is given up: what it holds up must not wait for the store's deadline.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Least time from one tick to the next, whatever asks for one.
const GAP: Duration = Duration::from_millis(50);
/// Jitter of a tick: this part of the interval less or more.
const JITTER: f64 = 0.05;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulseInput {
    /// Time has passed.
    Look,
    /// A tick was answered; a delayed row or a deadline is due after this time.
    Ticked(Option<Duration>),
    /// A tick failed.
    TickFailed,
    /// A beat that went alone was answered.
    Beaten,
    /// A beat that went alone failed.
    BeatFailed,
    /// A hint that the registry changed.
    Hint,
    /// The lease is gone: nothing beats until there is a new one.
    Lost,
    /// A new lease was opened.
    Renewed,
    /// The supervisor was started again: what was out is lost.
    Restarted,
}

/// A call to make, or to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PulseEffect {
    /// Send a tick.
    Tick {
        /// With the next beat.
        beat: bool,
    },
    /// Send a beat alone, because no tick carries it in time.
    Beat,
    /// Give the tick up.
    DropTick,
    /// Give the beat up.
    DropBeat,
}

#[derive(Clone, Copy, Debug)]
struct TickOut {
    at: Monotonic,
    beat: bool,
}

/// The rhythm of one supervisor.
#[derive(Clone, Debug)]
pub struct Pulse {
    tick: Duration,
    beat: Duration,
    tick_at: Monotonic,
    beat_at: Monotonic,
    ticked_at: Option<Monotonic>,
    tick_out: Option<TickOut>,
    beat_out: Option<Monotonic>,
    leased: bool,
}

impl Pulse {
    /// A rhythm that ticks at once, for a lease that was opened `now`.
    #[must_use]
    pub fn new(now: Monotonic, tick: Duration, beat: Duration) -> Self {
        let beat_at = now + beat;
        Self { tick, beat, tick_at: now, beat_at, ticked_at: None, tick_out: None, beat_out: None, leased: true }
    }

    /// Takes an input; `draw` in [0, 1) is where its jitter comes from. Answers the calls, and when to look again.
    pub fn step(&mut self, now: Monotonic, draw: f64, input: PulseInput) -> (Vec<PulseEffect>, Monotonic) {
        match input {
            PulseInput::Look => {}
            PulseInput::Ticked(next_due) => self.ticked(now, next_due),
            PulseInput::TickFailed => self.tick_out = None,
            PulseInput::Beaten => self.beaten(),
            PulseInput::BeatFailed => self.beat_failed(now),
            PulseInput::Hint => self.tick_at = self.tick_at.min(now),
            PulseInput::Lost => self.leased = false,
            PulseInput::Renewed => {
                self.leased = true;
                self.beat_at = now + self.beat;
            }
            PulseInput::Restarted => (self.tick_out, self.beat_out) = (None, None),
        }
        let mut effects = Vec::new();
        self.give_up(now, &mut effects);
        self.send(now, draw, &mut effects);
        let until = self.until();
        (effects, until)
    }

    fn ticked(&mut self, now: Monotonic, next_due: Option<Duration>) {
        if let Some(out) = self.tick_out.take()
            && out.beat
        {
            self.beat_at = self.beat_at.max(out.at + self.beat);
        }
        if let Some(due) = next_due {
            self.tick_at = self.tick_at.min(now + due);
        }
    }

    fn beaten(&mut self) {
        if let Some(at) = self.beat_out.take() {
            self.beat_at = self.beat_at.max(at + self.beat);
        }
    }

    /// Tries again after half a tick, unless a tick carries it before.
    fn beat_failed(&mut self, now: Monotonic) {
        self.beat_out = None;
        self.beat_at = self.beat_at.max(now);
    }

    fn give_up(&mut self, now: Monotonic, effects: &mut Vec<PulseEffect>) {
        if self.tick_out.is_some_and(|out| now >= out.at + PATIENCE) {
            self.tick_out = None;
            effects.push(PulseEffect::DropTick);
        }
        if self.beat_out.is_some_and(|at| now >= at + self.beat) {
            self.beat_failed(now);
            effects.push(PulseEffect::DropBeat);
        }
    }

    fn send(&mut self, now: Monotonic, draw: f64, effects: &mut Vec<PulseEffect>) {
        if self.tick_out.is_none() && now >= self.next_tick() {
            let beat = self.leased && self.beat_out.is_none() && now + self.tick / 2 >= self.beat_at;
            // The second tick comes anywhere within an interval, so that processes started together drift apart.
            let wait = match self.ticked_at {
                None => scaled(self.tick, draw),
                Some(_) => scaled(self.tick, 1.0 - JITTER + 2.0 * JITTER * draw),
            };
            self.tick_out = Some(TickOut { at: now, beat });
            self.ticked_at = Some(now);
            self.tick_at = now + wait;
            effects.push(PulseEffect::Tick { beat });
        }
        if now >= self.lone_beat() {
            self.beat_out = Some(now);
            effects.push(PulseEffect::Beat);
        }
    }

    fn next_tick(&self) -> Monotonic {
        self.ticked_at.map_or(self.tick_at, |last| self.tick_at.max(last + GAP))
    }

    /// When the beat goes alone: half a tick late, and a whole one after a tick that carries it and is not answered.
    fn lone_beat(&self) -> Monotonic {
        if !self.leased || self.beat_out.is_some() {
            return Monotonic::NEVER;
        }
        let late = self.beat_at + self.tick / 2;
        self.tick_out.filter(|out| out.beat).map_or(late, |out| late.max(out.at + self.tick))
    }

    fn until(&self) -> Monotonic {
        let tick = self.tick_out.map_or(self.next_tick(), |out| out.at + PATIENCE);
        let beat = self.beat_out.map_or(Monotonic::NEVER, |at| at + self.beat);
        tick.min(beat).min(self.lone_beat())
    }
}
