//! What an operation works in: a writing transaction, shared with others of its batch, or a snapshot.

use std::collections::BTreeMap;

use mainstay_store::{ExecutorId, QueueName, Timestamp, Wakeup};
use rusqlite::Connection;

use crate::clock::{self, Time};
use crate::sql::{self, Cached};

/// One snapshot of the file, for an operation that writes nothing.
#[derive(Debug)]
pub(crate) struct Snapshot<'c> {
    pub(crate) conn: &'c Connection,
    pub(crate) now: Timestamp,
}

/// What is done once the transaction has committed.
#[derive(Debug)]
pub(crate) enum After {
    /// Let go of an executor's lock, and remove its file.
    Unlock(ExecutorId),
    /// Remove a lock file of an executor that is gone.
    RemoveLock(String),
}

/// A writing transaction. The operations of a batch share it, one after the other.
#[derive(Debug)]
pub(crate) struct Tx<'c> {
    pub(crate) conn: &'c Connection,
    /// The clock, as the present operation read it.
    pub(crate) now: Timestamp,
    /// Whether a unit that fails is to be undone alone, and a row that cannot be read parked.
    pub(crate) careful: bool,
    pub(crate) hints: Vec<Wakeup>,
    pub(crate) after: Vec<After>,
    time: &'c Time,
    written: Timestamp,
    latest: Timestamp,
    limited: BTreeMap<QueueName, bool>,
}

/// A place to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    hints: usize,
    after: usize,
}

impl<'c> Tx<'c> {
    /// Takes part in a transaction that has begun.
    pub(crate) fn begun(conn: &'c Connection, time: &'c Time, careful: bool) -> rusqlite::Result<Self> {
        let latest = clock::latest(conn)?;
        Ok(Self {
            conn,
            now: latest,
            careful,
            hints: Vec::new(),
            after: Vec::new(),
            time,
            written: latest,
            latest,
            limited: BTreeMap::new(),
        })
    }

    /// Reads the clock for the next operation.
    pub(crate) fn operation(&mut self) {
        self.now = self.time.read().max(self.latest);
    }

    /// Notes a stamp that is written; none is later than what this says.
    pub(crate) fn stamped(&mut self, at: Timestamp) {
        self.latest = self.latest.max(at);
    }

    /// Writes down the latest stamp, where it has moved.
    pub(crate) fn seal(&mut self) -> rusqlite::Result<()> {
        if self.latest > self.written {
            self.conn.run(sql::SET_LATEST, [self.latest.0])?;
        }
        Ok(())
    }

    /// Remembers a hint for after the commit.
    pub(crate) fn hint(&mut self, wakeup: Wakeup) {
        self.hints.push(wakeup);
    }

    /// Hints that a pending row has left a queue, where a fleet limit makes that matter.
    pub(crate) fn hint_room(&mut self, queue: Option<&QueueName>) -> rusqlite::Result<()> {
        let Some(queue) = queue else { return Ok(()) };
        let limited = match self.limited.get(queue) {
            Some(limited) => *limited,
            None => {
                let limited = self.conn.maybe(sql::QUEUE_LIMITED, [queue.as_str()], |_| Ok(()))?.is_some();
                self.limited.insert(queue.clone(), limited);
                limited
            }
        };
        if limited {
            self.hint(Wakeup::Queue(queue.clone()));
        }
        Ok(())
    }

    /// Forgets what is known of the limits of queues: one has changed.
    pub(crate) fn queues_changed(&mut self) {
        self.limited.clear();
        self.hint(Wakeup::Registry);
    }

    /// Runs `body`, and undoes what it wrote when it answers an `Err` inside.
    pub(crate) fn attempt<T, E>(
        &mut self,
        body: impl FnOnce(&mut Self) -> rusqlite::Result<Result<T, E>>,
    ) -> rusqlite::Result<Result<T, E>> {
        let mark = Mark { hints: self.hints.len(), after: self.after.len() };
        self.conn.run(sql::SAVEPOINT, [])?;
        let result = body(self);
        // A disk that is full or fails can make SQLite undo the whole transaction, and the savepoint with it.
        if result.is_err() && self.conn.is_autocommit() {
            return result;
        }
        if !matches!(result, Ok(Ok(_))) {
            self.conn.run(sql::UNDO, [])?;
            self.hints.truncate(mark.hints);
            self.after.truncate(mark.after);
        }
        self.conn.run(sql::RELEASE, [])?;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error;
    use mainstay_store::{Env, ErrorKind, StoreClock};

    #[test]
    fn a_full_disk_is_named_although_it_takes_the_savepoint_along() {
        let conn = Connection::open_in_memory().expect("a database");
        for migration in mainstay_migrations::SQLITE {
            conn.execute_batch(migration.sql).expect("the schema");
        }
        // A table whose numbers have run out: the insert fails as on a full disk, and SQLite undoes the transaction.
        let spent = "CREATE TABLE spent (n INTEGER PRIMARY KEY AUTOINCREMENT); \
            INSERT INTO spent VALUES (9223372036854775807); BEGIN";
        conn.execute_batch(spent).expect("a table");
        let time = Time::new(&Env::system("test").expect("a thread"), StoreClock::Server);
        let mut tx = Tx::begun(&conn, &time, true).expect("a transaction");
        let tried = tx.attempt(|tx| tx.conn.execute("INSERT INTO spent VALUES (NULL)", []).map(Ok::<usize, ()>));
        assert_eq!(tried.map_err(|error| error::kind(&error)), Err(ErrorKind::Full));
        assert!(conn.is_autocommit(), "nothing is left of it");
    }
}
