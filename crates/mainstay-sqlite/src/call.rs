//! A call on its way to a thread: what to run, until when it may wait, and whom to answer.

use mainstay_env::Monotonic;
use mainstay_store::{ErrorKind, Result, StoreError, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error;
use crate::tx::{Snapshot, Tx};

/// A call that writes. It is run in a transaction, again in another if that one has to be undone, and then answered once.
pub(crate) trait Write: Send {
    /// Runs it.
    fn run(&mut self, tx: &mut Tx<'_>) -> rusqlite::Result<()>;

    /// Until when it may wait for the file.
    fn deadline(&self) -> Monotonic;

    /// The store method.
    fn op(&self) -> &'static str;

    /// Answers that the transaction it ran in has committed.
    fn committed(self: Box<Self>);

    /// Answers that it failed, and wrote nothing.
    fn failed(self: Box<Self>, error: StoreError);

    /// Answers that another process held the file for too long; `now` is the clock's reading.
    fn busy(self: Box<Self>, now: Timestamp);
}

/// A call that reads.
pub(crate) trait Read: Send {
    /// Runs it; a busy file is the one error that it returns, to be run again.
    fn run(&mut self, snapshot: &Snapshot<'_>) -> rusqlite::Result<()>;

    /// As [`Write::deadline`].
    fn deadline(&self) -> Monotonic;

    /// The store method.
    fn op(&self) -> &'static str;

    /// Answers with what it read.
    fn done(self: Box<Self>);

    /// Answers that it failed.
    fn failed(self: Box<Self>, error: StoreError);
}

/// What a claim answers instead of failing when the file is busy.
pub(crate) type OnBusy<T> = fn(Timestamp) -> T;

/// A call with the function that runs it.
pub(crate) struct Call<T, F> {
    pub(crate) op: &'static str,
    pub(crate) deadline: Monotonic,
    pub(crate) body: F,
    pub(crate) value: Option<T>,
    pub(crate) reply: oneshot::Sender<Result<T>>,
    pub(crate) on_busy: Option<OnBusy<T>>,
    /// Its place in the queue, given back with the answer.
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl<T, F> Call<T, F> {
    fn answer(self, result: Result<T>) {
        // Whoever asked may have gone; what was done stays done.
        let _ = self.reply.send(result);
    }

    fn done(mut self) {
        let result = self.value.take().ok_or_else(|| StoreError::new(ErrorKind::Bug, self.op));
        self.answer(result);
    }
}

impl<T: Send, F: FnMut(&mut Tx<'_>) -> rusqlite::Result<T> + Send> Write for Call<T, F> {
    fn run(&mut self, tx: &mut Tx<'_>) -> rusqlite::Result<()> {
        self.value = Some((self.body)(tx)?);
        Ok(())
    }

    fn deadline(&self) -> Monotonic {
        self.deadline
    }

    fn op(&self) -> &'static str {
        self.op
    }

    fn committed(self: Box<Self>) {
        self.done();
    }

    fn failed(self: Box<Self>, error: StoreError) {
        self.answer(Err(error));
    }

    fn busy(self: Box<Self>, now: Timestamp) {
        let result = match self.on_busy {
            Some(on_busy) => Ok(on_busy(now)),
            None => Err(StoreError::new(ErrorKind::Unavailable, self.op).with_source("another process holds the file")),
        };
        self.answer(result);
    }
}

impl<T: Send, F: FnMut(&Snapshot<'_>) -> rusqlite::Result<T> + Send> Read for Call<T, F> {
    fn run(&mut self, snapshot: &Snapshot<'_>) -> rusqlite::Result<()> {
        self.value = Some((self.body)(snapshot)?);
        Ok(())
    }

    fn deadline(&self) -> Monotonic {
        self.deadline
    }

    fn op(&self) -> &'static str {
        self.op
    }

    fn done(self: Box<Self>) {
        Call::done(*self);
    }

    fn failed(self: Box<Self>, error: StoreError) {
        self.answer(Err(error));
    }
}

/// What is said of a call whose thread is gone.
pub(crate) fn closed(op: &'static str) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, op).with_source("the store is closed")
}

/// What is said of a call that panicked.
pub(crate) fn panicked(op: &'static str) -> StoreError {
    StoreError::new(ErrorKind::Bug, op).with_source("the operation panicked")
}

/// A failure of SQLite as the failure of a call.
pub(crate) fn failure(op: &'static str, error: rusqlite::Error) -> StoreError {
    error::failed(op, error)
}
