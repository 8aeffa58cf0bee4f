//! Two kinds of time: [`Timestamp`], which is stored and shown, and [`Monotonic`], which measures waits in one process.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Milliseconds since the Unix epoch, by some clock (a store's or a process's).
///
/// Arithmetic saturates, and drops what a duration has below a millisecond. Serialized as the bare number.
///
/// ```
/// use mainstay_env::Timestamp;
/// use std::time::Duration;
///
/// let noon = Timestamp::from_millis(1_700_000_000_000);
/// let later = noon + Duration::from_secs(2);
/// assert_eq!(later.since(noon), Duration::from_secs(2));
/// assert_eq!(noon.since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// The time `millis` milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Timestamp) -> Duration {
        if self.0 <= earlier.0 { Duration::ZERO } else { Duration::from_millis(self.0.abs_diff(earlier.0)) }
    }
}

/// Whole milliseconds of a duration, at most `i64::MAX`.
fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(millis(duration)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;

    fn sub(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(millis(duration)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A reading of a process's monotonic clock: the time passed since an arbitrary origin.
///
/// Readings of two clocks cannot be compared. Addition saturates at [`Monotonic::NEVER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(pub Duration);

impl Monotonic {
    /// The reading that is never reached.
    pub const NEVER: Monotonic = Monotonic(Duration::MAX);

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Monotonic) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// True for what lies so far away (1,000 years) that no process sees it: a sleep until then just never ends.
    pub(crate) fn is_never(self) -> bool {
        const FAR: Duration = Duration::from_secs(1_000 * 366 * 86_400);
        self.0 >= FAR
    }
}

impl Add<Duration> for Monotonic {
    type Output = Monotonic;

    fn add(self, duration: Duration) -> Monotonic {
        Monotonic(self.0.saturating_add(duration))
    }
}
