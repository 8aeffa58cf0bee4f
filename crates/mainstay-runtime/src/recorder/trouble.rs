//! A store that does not commit: what its errors mean to a lane, and when it is asked again.

use std::time::Duration;

use mainstay_env::{Monotonic, Rng};
use mainstay_store::{ErrorKind, StoreError};

/// Pauses before the first and the longest repeat of what an outage or a conflict stopped. The retry wrapper has repeated the
/// call before an outage is seen here.
const OUTAGE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The same for what will hardly pass by itself: no space, no rights, unreadable data, a bug.
pub(super) const GRAVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Longest pause while a caller waits who will not wait for ever: after it the caller hears how it stands.
pub(super) const PRESSED: Duration = Duration::from_secs(1);

/// Jitter of a pause, so that processes that lost one store do not come back in step.
pub(super) const JITTER: (f64, f64) = (0.75, 1.25);

/// Workflows that fail one after the other until the store is blamed instead of them: a pause before each further try.
const BLAMED: usize = 3;

/// A run of failures.
pub(super) struct Trouble {
    /// The last one.
    pub(super) error: StoreError,
    pub(super) failures: u32,
    pub(super) since: Monotonic,
    /// When the last try ended.
    failed: Monotonic,
    /// How long after that the next one is due, before its jitter.
    base: Duration,
    /// The same with it.
    pause: Duration,
}

impl Trouble {
    /// The run with one more failure.
    pub(super) fn after(before: Option<Self>, error: StoreError, now: Monotonic, rng: &Rng) -> Self {
        let grave = is_grave(error.kind());
        let (first, longest) = if grave { GRAVE } else { OUTAGE };
        let doubled = before.as_ref().filter(|before| is_grave(before.error.kind()) == grave);
        let base = doubled.map_or(first, |before| before.base.saturating_mul(2).min(longest));
        let (failures, since) = before.map_or((1, now), |before| (before.failures + 1, before.since));
        Self { error, failures, since, failed: now, base, pause: rng.jitter(base, JITTER.0, JITTER.1) }
    }

    /// When the store is asked again. `aside` workflows are blamed for the failures; `pressed` is that somebody waits who will
    /// not wait for ever.
    pub(super) fn due(&self, aside: usize, pressed: bool) -> Monotonic {
        if is_doubtful(self.error.kind()) && aside < BLAMED {
            return self.failed;
        }
        self.failed + if pressed { self.pause.min(PRESSED) } else { self.pause }
    }
}

/// Whether a failure proves that nothing was written.
pub(super) const fn is_undone(kind: ErrorKind) -> bool {
    use ErrorKind::*;
    matches!(kind, Contended | Denied | Full | Unsupported | Invalid | NotFound)
}

/// Whether a failure will hardly pass by itself.
pub(super) const fn is_grave(kind: ErrorKind) -> bool {
    !matches!(kind, ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Contended)
}

/// Whether a failure may be the fault of one unit of the batch: any grave one but those that are the store's own state.
pub(super) const fn is_doubtful(kind: ErrorKind) -> bool {
    is_grave(kind) && !matches!(kind, ErrorKind::Full | ErrorKind::Denied)
}
