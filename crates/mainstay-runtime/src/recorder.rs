//! Group commit: the units of a process go to lanes, and what waits in a lane commits together.
//!
//! A lane has one batch in flight. Units of one workflow share a lane, and a lane keeps the order in which they were sent,
//! whatever fails. Nobody is told of a commit before it has happened, so that durability is that of a commit a unit.
//!
//! What waits is not bounded here but by its senders: an execution has one unit under way for each of its branches, and an
//! outside caller waits for the answer to its own.

mod batch;
mod lane;
#[cfg(test)]
mod tests;
mod trouble;

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_env::{Env, Monotonic, Tasks};
use mainstay_store::{ErrorKind, Store, StoreError, Timestamp, Unit, UnitReply, WorkflowId};
use tokio::sync::{Notify, oneshot};

use batch::Entry;
use lane::Lane;

/// What a committed batch says to one of its units.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The store's clock at the commit; with [`UnitReply::Unknown`] the last reading that the lane has heard of.
    pub(crate) now: Timestamp,
    /// What became of the unit.
    pub(crate) reply: UnitReply,
}

/// Hears the answer to a unit.
pub(crate) type Done = Box<dyn FnOnce(Result<Answer, StoreError>) + Send>;

/// How long a unit waits for a store that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until it commits, is refused, or the recorder stops: an execution.
    Forever,
    /// Until this has passed since it was sent, then it is answered with the last error: a caller outside.
    For(Duration),
}

/// Sends units to the store in batches. A cheap clone.
#[derive(Clone)]
pub(crate) struct Recorder {
    env: Env,
    lanes: Arc<[Arc<Mailbox>]>,
}

impl Recorder {
    /// Starts `lanes` lanes, at least one, as tasks of the group.
    pub(crate) fn start(store: Arc<dyn Store>, tasks: &Tasks, lanes: usize) -> Self {
        let env = store.env().clone();
        let start = |number: usize| {
            let mailbox = Arc::new(Mailbox::default());
            let lane = Lane::new(number, store.clone(), mailbox.clone());
            // The group owns the task; a lane ends after `stop`, and answers what is left however it ends.
            drop(tasks.spawn(format!("recorder-{number}"), lane.run()));
            mailbox
        };
        Self { env, lanes: (0..lanes.max(1)).map(start).collect() }
    }

    /// Sends a unit of the workflow `id`; units of one workflow commit in the order in which they are sent.
    ///
    /// `done` is called exactly once, on the lane's task, and its panic is caught. When the recorder stops it hears an error of
    /// kind `Unavailable` with the source `stopped`. Only a unit that is sent when the lane has ended already hears that
    /// before this returns: hold no lock that `done` takes.
    pub(crate) fn send(&self, id: &WorkflowId, unit: Unit, patience: Patience, done: Done) {
        let deadline = match patience {
            Patience::Forever => None,
            Patience::For(limit) => Some(self.env.deadline(limit)),
        };
        self.lane(id).send(Entry::new(id.clone(), unit, deadline, done));
    }

    /// Sends a unit and waits for its answer. Dropping the future does not take the unit back.
    pub(crate) async fn commit(&self, id: &WorkflowId, unit: Unit, patience: Patience) -> Result<Answer, StoreError> {
        self.commit_and(id, unit, patience, |_| ()).await
    }

    /// As [`Recorder::commit`], and `then` is called with the answer even when the future has been dropped.
    pub(crate) async fn commit_and(
        &self,
        id: &WorkflowId,
        unit: Unit,
        patience: Patience,
        then: impl FnOnce(&Answer) + Send + 'static,
    ) -> Result<Answer, StoreError> {
        let (tell, told) = oneshot::channel();
        let done = move |answer: Result<Answer, StoreError>| {
            if let Ok(answer) = &answer {
                then(answer);
            }
            // A caller that is gone hears nothing.
            drop(tell.send(answer));
        };
        self.send(id, unit, patience, Box::new(done));
        told.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Ends all waiting: what was sent before is tried once more at most, and answered within [`lane::STOP_LIMIT`]; what is
    /// sent from now on is answered with an error. The lanes end then.
    pub(crate) fn stop(&self) {
        let now = self.env.monotonic();
        for lane in &*self.lanes {
            lane.stop(now);
        }
    }

    /// Returns when all that was sent before this call has been answered.
    pub(crate) async fn flushed(&self) {
        let sent: Vec<u64> = self.lanes.iter().map(|lane| lane.lock().sent).collect();
        for (lane, sent) in self.lanes.iter().zip(sent) {
            lane.flushed(sent).await;
        }
    }

    fn lane(&self, id: &WorkflowId) -> &Arc<Mailbox> {
        // A remainder is smaller than the number of lanes.
        &self.lanes[(spread(id.as_str()) % self.lanes.len() as u64) as usize]
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("lanes", &self.lanes.len()).finish_non_exhaustive()
    }
}

/// The answer to what can no longer be committed.
fn stopped() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "commit").with_source("stopped")
}

/// FNV-1a of an id. Nothing durable depends on it: a lane is a matter of this process.
fn spread(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What senders and their lane share.
#[derive(Default)]
struct Mailbox {
    state: Mutex<Mail>,
    /// Rung when the lane has a reason to look in.
    bell: Notify,
    /// Told after answers.
    answered: Notify,
}

/// The letters of a mailbox.
#[derive(Default)]
struct Mail {
    inbox: VecDeque<Entry>,
    /// How many units were ever sent.
    sent: u64,
    /// Every unit with a smaller number has been answered; kept up to date while somebody waits for it.
    answered: u64,
    /// How many wait for answers to be up to date.
    flushing: usize,
    /// When the recorder was stopped.
    stopped: Option<Monotonic>,
    /// The lane waits for nothing but the next unit.
    resting: bool,
    /// The lane has ended.
    ended: bool,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, mut entry: Entry) {
        let mut mail = self.lock();
        if mail.ended {
            drop(mail);
            entry.answer(Err(stopped()));
            return;
        }
        (entry.number, entry.late) = (mail.sent, mail.stopped.is_some());
        // A lane that is busy looks in by itself; only a deadline or a late unit may have to be seen before.
        let ring = std::mem::take(&mut mail.resting) || entry.deadline.is_some() || entry.late;
        mail.sent += 1;
        mail.inbox.push_back(entry);
        drop(mail);
        if ring {
            self.bell.notify_one();
        }
    }

    fn stop(&self, now: Monotonic) {
        self.lock().stopped.get_or_insert(now);
        self.bell.notify_one();
    }

    async fn flushed(&self, sent: u64) {
        let _flushing = Flushing::new(self);
        loop {
            let told = self.answered.notified();
            if self.lock().answered >= sent {
                return;
            }
            told.await;
        }
    }
}

/// Somebody who waits for a flush.
struct Flushing<'a>(&'a Mailbox);

impl<'a> Flushing<'a> {
    fn new(mailbox: &'a Mailbox) -> Self {
        mailbox.lock().flushing += 1;
        mailbox.bell.notify_one();
        Self(mailbox)
    }
}

impl Drop for Flushing<'_> {
    fn drop(&mut self) {
        self.0.lock().flushing -= 1;
    }
}

/// Calls `done`; what it does is not the lane's affair.
fn tell(done: Done, answer: Result<Answer, StoreError>) {
    if catch_unwind(AssertUnwindSafe(|| done(answer))).is_err() {
        tracing::error!("hearer of a commit panicked");
    }
}
