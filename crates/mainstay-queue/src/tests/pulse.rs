//! Properties of the supervisor's rhythm.

use std::time::Duration;

use mainstay_env::Monotonic;

use super::property::{Word, sequences};
use crate::{Pulse, PulseEffect, PulseInput};

const MILLI: Duration = Duration::from_millis(1);
const TICK: Duration = Duration::from_secs(1);
const BEAT: Duration = Duration::from_millis(2_500);

/// A pulse whose calls are answered, fail or hang by chance.
struct Driven {
    pulse: Pulse,
    now: Monotonic,
    until: Monotonic,
    tick: Option<bool>,
    beat: bool,
    leased: bool,
    last_tick: Option<Monotonic>,
    last_beat_sent: Monotonic,
    beats: u64,
}

impl Driven {
    fn new() -> Self {
        let now = Monotonic(TICK);
        let mut driven = Self {
            pulse: Pulse::new(now, TICK, BEAT),
            now,
            until: now,
            tick: None,
            beat: false,
            leased: true,
            last_tick: None,
            last_beat_sent: now,
            beats: 0,
        };
        driven.step(PulseInput::Look, 0.0);
        driven
    }

    fn step(&mut self, input: PulseInput, draw: f64) {
        let (effects, until) = self.pulse.step(self.now, draw, input);
        self.until = until;
        assert!(until > self.now, "a time to look again that has come already");
        for effect in effects {
            match effect {
                PulseEffect::Tick { beat } => {
                    assert!(self.tick.is_none(), "one tick at a time");
                    assert!(!beat || self.leased, "no beat without a lease");
                    assert!(self.last_tick.is_none_or(|last| self.now.since(last) >= 50 * MILLI), "ticks too close");
                    (self.tick, self.last_tick) = (Some(beat), Some(self.now));
                    self.sent(beat);
                }
                PulseEffect::Beat => {
                    assert!(!self.beat && self.leased, "one beat alone at a time, for a lease");
                    self.beat = true;
                    self.sent(true);
                }
                PulseEffect::DropTick => self.tick = None,
                PulseEffect::DropBeat => self.beat = false,
            }
        }
        if self.leased {
            assert!(self.now.since(self.last_beat_sent) <= BEAT + 2 * TICK, "a beat is sent in time, whatever hangs");
        }
        assert!(self.tick.is_some() || self.until.since(self.now) <= TICK.mul_f64(1.05), "a tick comes in time");
    }

    fn sent(&mut self, beat: bool) {
        if beat {
            self.last_beat_sent = self.now;
            self.beats += 1;
        }
    }

    fn act(&mut self, mut word: Word) {
        let draw = word.draw();
        match word.below(12) {
            0..=4 => {
                let target = self.now + MILLI * word.below(1500);
                while self.until <= target {
                    self.now = self.until;
                    self.step(PulseInput::Look, draw);
                }
                self.now = target;
            }
            5..=7 if self.tick.take().is_some() => {
                let due = (word.below(3) == 0).then(|| MILLI * word.below(5_000));
                self.step(PulseInput::Ticked(due), draw);
            }
            8 if self.tick.take().is_some() => self.step(PulseInput::TickFailed, draw),
            9 if std::mem::take(&mut self.beat) => {
                let input = [PulseInput::Beaten, PulseInput::BeatFailed][word.below(2) as usize];
                self.step(input, draw);
            }
            10 => self.step(PulseInput::Hint, draw),
            11 if word.below(8) == 0 => {
                self.leased = !self.leased;
                if self.leased {
                    self.last_beat_sent = self.now;
                } else {
                    self.beat = false;
                }
                self.step(if self.leased { PulseInput::Renewed } else { PulseInput::Lost }, draw);
            }
            _ => {}
        }
    }
}

#[test]
fn ticks_come_once_a_second_and_beats_in_time_whatever_hangs() {
    sequences(800, 120_000, |words| {
        let mut driven = Driven::new();
        for word in words {
            driven.act(Word(*word));
        }
    });
}

#[test]
fn a_healthy_pulse_needs_one_call_a_second_and_no_beat_alone() {
    let mut pulse = Pulse::new(Monotonic(TICK), TICK, BEAT);
    let (mut now, mut ticks, mut beats) = (Monotonic(TICK), 0, 0);
    let (mut effects, mut until) = pulse.step(now, 0.3, PulseInput::Look);
    while now < Monotonic(Duration::from_secs(1001)) {
        for effect in std::mem::take(&mut effects) {
            let PulseEffect::Tick { beat } = effect else { panic!("{effect:?} at {now:?}") };
            (ticks, beats) = (ticks + 1, beats + u32::from(beat));
            until = pulse.step(now, 0.3, PulseInput::Ticked(None)).1;
        }
        assert!(until > now, "time goes on");
        now = until;
        (effects, until) = pulse.step(now, 0.5, PulseInput::Look);
    }
    assert!((999..=1002).contains(&ticks) && (330..=510).contains(&beats), "{ticks} ticks, {beats} beats");
}

#[test]
fn a_delayed_row_brings_the_tick_forward_to_the_moment_it_is_due() {
    let mut pulse = Pulse::new(Monotonic(TICK), TICK, BEAT);
    pulse.step(Monotonic(TICK), 0.9, PulseInput::Look);
    let (_, until) = pulse.step(Monotonic(TICK), 0.5, PulseInput::Ticked(Some(120 * MILLI)));
    assert_eq!(until, Monotonic(TICK + 120 * MILLI));
}
