//! How far a poll timer is stretched, and how long a failing claim is held off.

use std::time::Duration;

/// The longest that trouble stretches an interval, unless the interval itself is longer.
const CEILING: Duration = Duration::from_secs(120);
/// What one contended or failed poll does to the interval.
const STRETCH: f64 = 2.0;
/// What one clean poll does to it: seven undo one stretch.
const RELAX: f64 = 0.9;
/// A jittered interval lies within this part of the interval and as much above it.
const JITTER: f64 = 0.05;
/// Hold-off after the first failure in a row; it doubles with each.
const HOLD_FIRST: Duration = Duration::from_millis(100);
/// Longest hold-off: a store that is back must not wait long for the claim whose answer was lost.
const HOLD_MOST: Duration = Duration::from_secs(5);

/// Factors on the interval of a queue, so that a changed interval takes effect at once. Contention fades; failures are
/// over with the first success, or queues would lie idle for minutes after an outage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Backoff {
    contention: f64,
    failures: f64,
}

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self { contention: 1.0, failures: 1.0 }
    }

    /// The interval now: never under `floor`, never over the ceiling or `floor`.
    pub(crate) fn interval(self, floor: Duration) -> Duration {
        scaled(floor, self.contention * self.failures).clamp(floor, CEILING.max(floor))
    }

    /// The interval with jitter; `draw` lies in [0, 1).
    pub(crate) fn jittered(self, floor: Duration, draw: f64) -> Duration {
        scaled(self.interval(floor), 1.0 - JITTER + 2.0 * JITTER * draw)
    }

    /// After contention with foreign claimers.
    pub(crate) fn contended(&mut self, floor: Duration) {
        self.contention = stretched(self.contention, floor);
    }

    /// After a failure.
    pub(crate) fn failed(&mut self, floor: Duration) {
        self.failures = stretched(self.failures, floor);
    }

    /// After a clean poll.
    pub(crate) fn relax(&mut self) {
        self.contention = (self.contention * RELAX).max(1.0);
        self.failures = 1.0;
    }

    /// Whether the last poll failed.
    pub(crate) fn is_failing(self) -> bool {
        self.failures > 1.0
    }

    /// The store answers again.
    pub(crate) fn recover(&mut self) {
        self.failures = 1.0;
    }
}

fn stretched(factor: f64, floor: Duration) -> f64 {
    let most = CEILING.max(floor).as_secs_f64() / floor.as_secs_f64().max(f64::MIN_POSITIVE);
    (factor * STRETCH).min(most.max(STRETCH))
}

/// How long the next try waits after so many failures in a row, give or take a quarter.
pub(crate) fn hold_off(failures: u32, draw: f64) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    scaled(HOLD_FIRST.saturating_mul(doubled).min(HOLD_MOST), 0.75 + 0.5 * draw)
}

/// A duration times a factor, rounded to what a clock can tell.
pub(crate) fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_clean_polls_undo_one_stretch() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new();
        backoff.contended(second);
        assert_eq!(backoff.interval(second), 2 * second);
        for _ in 0..6 {
            backoff.relax();
        }
        assert!(backoff.interval(second) > second);
        backoff.relax();
        assert_eq!(backoff.interval(second), second);
    }

    #[test]
    fn the_ceiling_is_two_minutes_or_a_longer_interval() {
        for (floor, most) in [(1, 120), (60, 120), (300, 300)] {
            let floor = Duration::from_secs(floor);
            let mut backoff = Backoff::new();
            (0..40).for_each(|_| backoff.contended(floor));
            assert_eq!(backoff.interval(floor), Duration::from_secs(most));
            backoff.relax();
            assert!(backoff.interval(floor) < Duration::from_secs(most) || floor == Duration::from_secs(300));
        }
    }

    #[test]
    fn a_lowered_interval_takes_effect_at_once() {
        let mut backoff = Backoff::new();
        backoff.contended(Duration::from_secs(10));
        assert_eq!(backoff.interval(Duration::from_secs(1)), Duration::from_secs(2));
    }

    #[test]
    fn failures_are_forgotten_with_the_first_success() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new();
        (0..9).for_each(|_| backoff.failed(second));
        assert_eq!(backoff.interval(second), CEILING);
        backoff.relax();
        assert_eq!(backoff.interval(second), second);
    }

    #[test]
    fn hold_offs_double_up_to_five_seconds() {
        assert_eq!(hold_off(1, 0.5), Duration::from_millis(100));
        assert_eq!(hold_off(4, 0.5), Duration::from_millis(800));
        assert_eq!(hold_off(99, 0.5), Duration::from_secs(5));
    }
}
