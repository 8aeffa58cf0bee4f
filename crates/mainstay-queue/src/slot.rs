//! The shared counts, and the slot that an execution owns.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainstay_store::{Fence, QueueName};
use tokio::sync::Notify;

use crate::tally::{Count, Tally, Wakes};

/// Who hears that a queue has room.
pub(crate) trait Waker: Send + Sync + 'static {
    /// A slot of this queue came free.
    fn freed(&self, queue: &QueueName);
    /// The process has a place for this queue.
    fn room(&self, queue: &QueueName);
}

/// The tally of a process under its lock.
pub(crate) struct Counts {
    tally: Mutex<Tally>,
    waker: Box<dyn Waker>,
    idle: Notify,
}

impl Counts {
    pub(crate) fn new(max_running: u32, waker: impl Waker) -> Arc<Self> {
        Arc::new(Self { tally: Mutex::new(Tally::new(max_running)), waker: Box::new(waker), idle: Notify::new() })
    }

    /// The tally, whatever happened to an earlier holder: counts are left too high by a panic, never too low.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who have room now; must not be called under the lock.
    pub(crate) fn wake(&self, wakes: &Wakes) {
        if let Some(queue) = &wakes.freed {
            self.waker.freed(queue);
        }
        for queue in &wakes.waiting {
            self.waker.room(queue);
        }
        if wakes.idle {
            self.idle.notify_waiters();
        }
    }

    /// Waits until nothing runs.
    pub(crate) async fn emptied(&self) {
        loop {
            let idle = self.idle.notified();
            if self.lock().running() == 0 {
                return;
            }
            idle.await;
        }
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = self.lock();
        f.debug_struct("Counts")
            .field("running", &tally.running())
            .field("active", &tally.active())
            .finish_non_exhaustive()
    }
}

/// The count of one running workflow: in its queue, its key and `max_running`, from the claim on.
///
/// Owned by the execution. Dropping it, by return, panic or abort, ends the count once and lets the queue refill.
pub struct Slot {
    counts: Arc<Counts>,
    count: Count,
}

impl Slot {
    /// The slot of an execution that was counted under the lock.
    pub(crate) const fn new(counts: Arc<Counts>, count: Count) -> Self {
        Self { counts, count }
    }

    /// Gives the place of `max_running` back while the execution waits in a durable call. Limits of its queue keep
    /// counting it. Twice is once.
    pub fn pause(&self) {
        let wakes = self.counts.lock().pause(self.count);
        self.counts.wake(&wakes);
    }

    /// Takes a place again before the execution goes on, over the bound if need be. Twice is once.
    pub fn resume(&self) {
        self.counts.lock().resume(self.count);
    }

    /// Tells the fence of a direct start, which the submit answered; a claimed row's is known. Answers as
    /// [`Slot::is_current`].
    pub fn bind(&self, fence: &Fence) -> bool {
        let mut tally = self.counts.lock();
        tally.bind(self.count, fence.clone());
        tally.is_current(self.count)
    }

    /// False once a later execution of the workflow has begun in this process, or the lease is gone: a direct start that
    /// was on its way must not start its body any more. A body that runs is evicted and need not ask.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.counts.lock().is_current(self.count)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.counts.tally.is_poisoned() {
            self.counts.lock().abandon(self.count);
            self.counts.tally.clear_poison();
            return;
        }
        let wakes = self.counts.lock().free(self.count);
        self.counts.wake(&wakes);
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("count", &self.count).finish_non_exhaustive()
    }
}
