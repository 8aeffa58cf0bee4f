//! The threads that read: each takes the next call that waits, and runs it on one snapshot.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_env::Env;
use rusqlite::Connection;

use crate::call::{self, Read};
use crate::clock::Time;
use crate::error;
use crate::pace::Pace;
use crate::sql::{self, Cached};
use crate::tx::Snapshot;
use crate::writer::wait;

/// The calls that wait, shared by the threads.
pub(crate) type Waiting = Arc<Mutex<Receiver<Box<dyn Read>>>>;

/// What one thread owns.
pub(crate) struct Reader {
    pub(crate) conn: Connection,
    pub(crate) env: Env,
    pub(crate) time: Time,
    pub(crate) jobs: Waiting,
}

impl Reader {
    /// Runs until the last handle of the store is dropped and the queue is empty.
    pub(crate) fn run(self) {
        loop {
            let job = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = job else { return };
            self.serve(job);
        }
    }

    fn serve(&self, mut job: Box<dyn Read>) {
        let op = job.op();
        let mut tries = 0;
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.snapshot(&mut *job))) {
                Ok(Ok(())) => return job.done(),
                Ok(Err(error)) if error::is_busy(&error) && self.env.monotonic() < job.deadline() => {
                    wait(Pace::retry(tries));
                    tries += 1;
                }
                Ok(Err(error)) => return job.failed(call::failure(op, error)),
                Err(_) => return job.failed(call::panicked(op)),
            }
        }
    }

    /// A reading transaction from its first statement to its last sees one state of the file.
    fn snapshot(&self, job: &mut dyn Read) -> rusqlite::Result<()> {
        // One that a panic left open is of no use.
        if !self.conn.is_autocommit() {
            self.conn.run(sql::ROLLBACK, [])?;
        }
        self.conn.run(sql::BEGIN_READ, [])?;
        let read = self.time.now(&self.conn).and_then(|now| job.run(&Snapshot { conn: &self.conn, now }));
        let ended = self.conn.run(sql::COMMIT, []);
        read.and(ended.map(drop))
    }
}
