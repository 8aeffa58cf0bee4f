//! Moments in requests.

use std::time::Duration;

use mainstay_env::Timestamp;
use serde::{Deserialize, Serialize};

/// A moment in a request, resolved by the store against its own clock, so that no two clocks are ever compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// The store's `now` plus this.
    In(Duration),
    /// A stamp that the store itself gave out, such as a parent's deadline.
    At(Timestamp),
}

impl When {
    /// The moment it means when the store's clock reads `now`.
    #[must_use]
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::In(delay) => now + delay,
            Self::At(at) => at,
        }
    }
}

impl From<Duration> for When {
    fn from(delay: Duration) -> Self {
        Self::In(delay)
    }
}

impl From<Timestamp> for When {
    fn from(at: Timestamp) -> Self {
        Self::At(at)
    }
}
