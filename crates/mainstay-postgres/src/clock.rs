//! Where `now` comes from: the server reads its own clock inside the statement, or a test gives a moment.

use std::sync::atomic::{AtomicI64, Ordering};

use mainstay_store::StoreClock;

use crate::fault::Fault;
use crate::row::get;
use crate::session::Session;
use crate::text::{Text, text};

static LATEST: Text = text!("clock_latest");

/// The clock of a store.
#[derive(Debug)]
pub(crate) struct Time {
    clock: StoreClock,
    /// The latest stamp that was seen stored; a test's clock that goes back is not followed behind it.
    latest: AtomicI64,
}

impl Time {
    pub(crate) const fn new(clock: StoreClock) -> Self {
        Self { clock, latest: AtomicI64::new(i64::MIN) }
    }

    /// The parameter `now` of every statement: nothing for the server's own clock.
    pub(crate) fn now(&self) -> Option<i64> {
        match &self.clock {
            StoreClock::Server => None,
            StoreClock::Manual(clock) => {
                Some(mainstay_env::Clock::now(clock).0.max(self.latest.load(Ordering::Relaxed)))
            }
        }
    }

    /// Whether a test moves the clock.
    pub(crate) fn is_manual(&self) -> bool {
        matches!(self.clock, StoreClock::Manual(_))
    }

    /// Looks at what is stored after a call, where a test moves the clock.
    pub(crate) async fn hold(&self, session: &mut Session) -> Result<(), Fault> {
        let found = session.one(&LATEST, &[]).await?;
        let latest: Option<i64> = found.first().map(|row| get(row, "latest")).transpose()?.flatten();
        self.latest.fetch_max(latest.unwrap_or(i64::MIN), Ordering::Relaxed);
        Ok(())
    }
}
