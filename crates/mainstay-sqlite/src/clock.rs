//! The store's clock: read once an operation, and never behind a stamp that any process has written to the file.

use mainstay_env::{Clock, Env};
use mainstay_store::{StoreClock, Timestamp};
use rusqlite::Connection;

use crate::sql::{self, Cached};

/// Where `now` comes from.
#[derive(Clone, Debug)]
pub(crate) struct Time {
    env: Env,
    clock: StoreClock,
}

impl Time {
    pub(crate) fn new(env: &Env, clock: StoreClock) -> Self {
        Self { env: env.clone(), clock }
    }

    /// The clock's reading, whatever is stored.
    pub(crate) fn read(&self) -> Timestamp {
        match &self.clock {
            StoreClock::Server => self.env.now(),
            StoreClock::Manual(clock) => clock.now(),
        }
    }

    /// The clock's reading, or the greatest stamp of the file where that is later.
    pub(crate) fn now(&self, conn: &Connection) -> rusqlite::Result<Timestamp> {
        Ok(self.read().max(latest(conn)?))
    }
}

/// The greatest stamp that any process has written.
pub(crate) fn latest(conn: &Connection) -> rusqlite::Result<Timestamp> {
    conn.exactly(sql::LATEST, [], |row| row.get(0).map(Timestamp::from_millis))
}
