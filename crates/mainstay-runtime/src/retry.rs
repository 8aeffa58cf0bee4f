//! When a failed attempt is made again, and after how long.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mainstay_env::Rng;

use crate::error::Error;

/// Which errors are worth another attempt.
pub(crate) type WorthIt = Arc<dyn Fn(&Error) -> bool + Send + Sync>;

/// How a step that fails is tried again.
#[derive(Clone)]
pub(crate) struct Retry {
    /// Attempts after the first one.
    pub(crate) retries: u32,
    /// Wait before the first of them.
    pub(crate) backoff: Duration,
    /// What each later wait is longer by.
    pub(crate) rate: f64,
    /// The longest wait.
    pub(crate) max_backoff: Duration,
    /// How far a wait is moved at random, as a fraction of itself.
    pub(crate) jitter: f64,
    /// Which errors are worth it; all where missing.
    pub(crate) only: Option<WorthIt>,
    /// How long one attempt may take.
    pub(crate) timeout: Option<Duration>,
}

impl Default for Retry {
    /// No retry. Once asked for: a second, doubled up to an hour, moved by a tenth.
    fn default() -> Self {
        Self {
            retries: 0,
            backoff: Duration::from_secs(1),
            rate: 2.0,
            max_backoff: Duration::from_secs(3600),
            jitter: 0.1,
            only: None,
            timeout: None,
        }
    }
}

impl Retry {
    /// Most attempts.
    pub(crate) fn most(&self) -> u32 {
        self.retries.saturating_add(1)
    }

    /// Whether the failure of attempt `number`, counted from 1, is tried again.
    pub(crate) fn again(&self, number: u32, error: &Error) -> bool {
        number <= self.retries && self.only.as_ref().is_none_or(|only| only(error))
    }

    /// The wait after attempt `number`, before it is moved; a rate that is no number means the longest one.
    pub(crate) fn wait(&self, number: u32) -> Duration {
        if self.backoff.is_zero() {
            return Duration::ZERO;
        }
        let exponent = i32::try_from(number.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.backoff.as_secs_f64() * self.rate.powi(exponent);
        Duration::try_from_secs_f64(seconds).unwrap_or(self.max_backoff).min(self.max_backoff)
    }

    /// The wait after attempt `number`.
    pub(crate) fn jittered(&self, number: u32, rng: &Rng) -> Duration {
        let jitter = if self.jitter.is_finite() { self.jitter.clamp(0.0, 1.0) } else { 0.0 };
        rng.jitter(self.wait(number), 1.0 - jitter, 1.0 + jitter).min(self.max_backoff)
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("retries", &self.retries)
            .field("backoff", &self.backoff)
            .field("rate", &self.rate)
            .field("max_backoff", &self.max_backoff)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_by_the_rate_up_to_the_longest() {
        let retry = Retry { retries: 9, max_backoff: Duration::from_secs(5), ..Retry::default() };
        let waits: Vec<u64> = (1..=5).map(|number| retry.wait(number).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 5, 5]);
        assert_eq!(retry.wait(u32::MAX), retry.max_backoff);
        assert_eq!(Retry { backoff: Duration::ZERO, ..retry.clone() }.wait(1_025), Duration::ZERO);
        for rate in [f64::NAN, f64::INFINITY, -3.0] {
            assert_eq!(Retry { rate, ..retry.clone() }.wait(2), retry.max_backoff, "{rate}");
        }
    }

    #[test]
    fn a_wait_is_moved_by_its_jitter_and_never_over_the_longest() {
        let rng = Rng::seeded(1);
        let retry = Retry { jitter: 0.5, max_backoff: Duration::from_millis(1_200), ..Retry::default() };
        let waits: Vec<Duration> = (0..200).map(|_| retry.jittered(1, &rng)).collect();
        assert!(waits.iter().all(|wait| *wait >= Duration::from_millis(500) && *wait <= Duration::from_millis(1_200)));
        assert!(waits.iter().any(|wait| *wait < Duration::from_millis(800)));
        assert!(waits.contains(&Duration::from_millis(1_200)));
        let none = Retry { jitter: f64::NAN, ..Retry::default() };
        assert_eq!(none.jittered(1, &rng), Duration::from_secs(1));
    }

    #[test]
    fn the_predicate_and_the_count_both_decide() {
        let retry = Retry { retries: 2, only: Some(Arc::new(|error| error.message() != "no")), ..Retry::default() };
        let (yes, no) = (Error::new("yes"), Error::new("no"));
        assert!(retry.again(1, &yes) && retry.again(2, &yes) && !retry.again(3, &yes));
        assert!(!retry.again(1, &no));
        assert_eq!(retry.most(), 3);
    }
}
