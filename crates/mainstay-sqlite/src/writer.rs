//! The thread that writes: it takes what waits, runs it in one transaction, commits, and answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use mainstay_env::Env;
use mainstay_store::{StoreError, Wakeup, Wakeups};
use rusqlite::Connection;

use crate::call::{self, Write};
use crate::clock::Time;
use crate::error;
use crate::hints::{self, Hints};
use crate::locks::Locks;
use crate::pace::Pace;
use crate::sql::{self, Cached};
use crate::tx::{After, Tx};

/// Most calls of one transaction. 64, 256 and 1,024 measure alike (`examples/rates.rs`), and every call waits for the last.
const BATCH: usize = 256;

type Job = Box<dyn Write>;

/// What the thread owns.
pub(crate) struct Writer {
    pub(crate) conn: Connection,
    pub(crate) env: Env,
    pub(crate) time: Time,
    pub(crate) wakeups: Wakeups,
    pub(crate) locks: Arc<Locks>,
    pub(crate) jobs: Receiver<Job>,
    pub(crate) hints: Hints,
    pub(crate) pace: Pace,
    /// Set by whoever reads or listens: a sign that work is expected, as a call to write is.
    pub(crate) expected: Arc<AtomicBool>,
}

/// How a transaction ended.
enum Ended {
    Committed,
    /// Undone, and why.
    Undone(rusqlite::Error),
    /// Undone because a call panicked.
    Panicked,
}

/// Whether calls that come while a transaction waits may join it.
#[derive(Clone, Copy)]
enum Company {
    Wanted,
    None,
}

impl Writer {
    /// Runs until the last handle of the store is dropped and its queue is empty.
    pub(crate) fn run(mut self) {
        loop {
            let mut batch = Vec::new();
            self.fill(&mut batch);
            if batch.is_empty() {
                if self.expected.swap(false, Ordering::Relaxed) {
                    self.pace.worked(self.env.monotonic());
                }
                self.pace.idle(self.env.monotonic());
                match self.jobs.recv_timeout(self.pace.interval(self.env.monotonic())) {
                    Ok(job) => batch.push(job),
                    Err(RecvTimeoutError::Timeout) => {
                        self.look();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                self.fill(&mut batch);
            }
            self.pace.worked(self.env.monotonic());
            self.serve(batch);
        }
        self.close();
    }

    fn fill(&self, batch: &mut Vec<Job>) {
        while batch.len() < BATCH {
            match self.jobs.try_recv() {
                Ok(job) => batch.push(job),
                Err(_) => return,
            }
        }
    }

    /// Answers every call of a batch.
    fn serve(&mut self, mut batch: Vec<Job>) {
        if !self.begin(&mut batch, Company::Wanted) {
            return;
        }
        match self.transact(&mut batch, false) {
            Ended::Committed => self.answer(batch),
            Ended::Undone(error) if !error::is_of_the_row(&error) => fail(batch, &error),
            Ended::Undone(_) | Ended::Panicked => self.one_by_one(batch),
        }
    }

    /// After one call of a batch has failed: each in a transaction of its own, so that it fails alone.
    fn one_by_one(&mut self, batch: Vec<Job>) {
        for job in batch {
            let mut alone = vec![job];
            if !self.begin(&mut alone, Company::None) {
                continue;
            }
            match self.transact(&mut alone, true) {
                Ended::Committed => self.answer(alone),
                Ended::Undone(error) => fail(alone, &error),
                Ended::Panicked => alone.into_iter().for_each(|job| {
                    let op = job.op();
                    job.failed(call::panicked(op));
                }),
            }
        }
    }

    /// Begins a transaction, as soon as no other process is in one. Calls that come meanwhile join the batch; those whose
    /// time is over are answered. False when none is left.
    fn begin(&mut self, batch: &mut Vec<Job>, company: Company) -> bool {
        let mut tries = 0;
        loop {
            match self.conn.run(sql::BEGIN_WRITE, []) {
                Ok(_) => return true,
                Err(error) if error::is_busy(&error) => {}
                Err(error) => {
                    fail(std::mem::take(batch), &error);
                    return false;
                }
            }
            self.expire(batch);
            if batch.is_empty() {
                return false;
            }
            self.pace.crowded();
            wait(Pace::retry(tries));
            tries += 1;
            if matches!(company, Company::Wanted) {
                self.fill(batch);
            }
        }
    }

    fn expire(&self, batch: &mut Vec<Job>) {
        let now = self.env.monotonic();
        for job in batch.extract_if(.., |job| job.deadline() <= now) {
            tracing::warn!(op = job.op(), "another process holds the file");
            job.busy(self.time.read());
        }
    }

    /// Runs the calls and commits, or undoes all of it.
    fn transact(&mut self, batch: &mut [Job], careful: bool) -> Ended {
        let ended = self.attempt(batch, careful);
        if !matches!(ended, Ended::Committed) && !self.conn.is_autocommit() {
            // What cannot even be undone is undone by SQLite when the next transaction begins or the file is closed.
            if let Err(error) = self.conn.run(sql::ROLLBACK, []) {
                tracing::warn!(%error, "a transaction was not undone");
            }
        }
        ended
    }

    fn attempt(&mut self, batch: &mut [Job], careful: bool) -> Ended {
        self.look();
        let mut tx = match Tx::begun(&self.conn, &self.time, careful) {
            Ok(tx) => tx,
            Err(error) => return Ended::Undone(error),
        };
        for job in batch {
            tx.operation();
            match catch_unwind(AssertUnwindSafe(|| job.run(&mut tx))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Ended::Undone(error),
                Err(_) => return Ended::Panicked,
            }
        }
        let mut seq = None;
        let told = hints::sorted(std::mem::take(&mut tx.hints));
        let sealed = tx.seal().and_then(|()| {
            seq = (!told.is_empty()).then(|| self.hints.write(&self.conn, &told)).transpose()?;
            Ok(())
        });
        let after = std::mem::take(&mut tx.after);
        if let Err(error) = sealed.and_then(|()| self.conn.run(sql::COMMIT, []).map(drop)) {
            return Ended::Undone(error);
        }
        if let Some(seq) = seq {
            self.hints.wrote(seq);
        }
        self.follow(told, after);
        Ended::Committed
    }

    /// What is done once a transaction has committed.
    fn follow(&mut self, told: Vec<Wakeup>, after: Vec<After>) {
        for wakeup in told {
            self.wakeups.publish(wakeup);
        }
        for step in after {
            match step {
                After::Unlock(executor) => self.locks.release(&executor),
                After::RemoveLock(name) => self.locks.remove(&name),
            }
        }
    }

    fn answer(&mut self, batch: Vec<Job>) {
        for job in batch {
            job.committed();
        }
        if let Some(pause) = self.pace.yields(self.env.monotonic()) {
            wait(pause);
        }
    }

    /// Asks whether another process has written, and passes on its hints.
    fn look(&mut self) {
        match self.conn.exactly(sql::DATA_VERSION, [], |row| row.get(0)) {
            Ok(version) if !self.pace.is_news(version) => {}
            Ok(_) => match self.hints.look(&self.conn) {
                Ok(heard) => heard.into_iter().for_each(|wakeup| self.wakeups.publish(wakeup)),
                Err(error) => {
                    tracing::warn!(%error, "hints of other processes cannot be read");
                    self.wakeups.publish(Wakeup::All);
                }
            },
            Err(error) if error::is_busy(&error) => {}
            Err(error) => tracing::warn!(%error, "the file's version cannot be read"),
        }
    }

    /// Leaves one file behind: the log is folded in, unless another process still uses it.
    fn close(self) {
        let folded = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        if let Err(error) = folded {
            tracing::debug!(%error, "the log was not folded in");
        }
        if let Err((_, error)) = self.conn.close() {
            tracing::warn!(%error, "the file was not closed");
        }
    }
}

/// Sleeps on a thread of this crate. The file system's locks know nothing of a virtual clock.
pub(crate) fn wait(pause: Duration) {
    thread::park_timeout(pause);
}

fn fail(batch: Vec<Job>, error: &rusqlite::Error) {
    let kind = error::kind(error);
    let text = error.to_string();
    for job in batch {
        let op = job.op();
        job.failed(StoreError::new(kind, op).with_source(text.clone()));
    }
}
