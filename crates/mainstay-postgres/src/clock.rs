//! Where `now` comes from: the server reads its own clock inside the statement, or a test gives a moment.

use mainstay_store::StoreClock;

/// The clock of a store.
#[derive(Clone, Debug)]
pub(crate) struct Time(StoreClock);

impl Time {
    pub(crate) const fn new(clock: StoreClock) -> Self {
        Self(clock)
    }

    /// The parameter `now` of every statement: nothing for the server's own clock.
    pub(crate) fn now(&self) -> Option<i64> {
        match &self.0 {
            StoreClock::Server => None,
            StoreClock::Manual(clock) => Some(mainstay_env::Clock::now(clock).0),
        }
    }
}
