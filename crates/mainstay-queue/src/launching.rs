//! From claimed rows to bodies: in claim order, without waiting for anything between two rows.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use mainstay_store::{Claimed, ClaimedRow, Fence, QueueName, Token};

use crate::lanes::{Kept, LaneCell};
use crate::launcher::Work;
use crate::shared::{Errand, Return, Shared};
use crate::slot::Slot;
use crate::tally::Body;

/// How long a row stays away whose launch panicked, so that those behind it get their turn.
const SET_ASIDE: Duration = Duration::from_secs(1);

impl Shared {
    /// Starts the rows of a claim. What cannot be started here is given back; what runs already, or was claimed under a
    /// lease that is gone, is left alone.
    pub(crate) fn dispatch(&self, cell: &LaneCell, claimed: Claimed) {
        let (sent, mut kept) = {
            let mut state = cell.lock();
            (state.sent.clone(), state.kept.take())
        };
        self.count(&cell.queue, &claimed);
        let Some(sent) = sent else { return };
        for row in claimed.rows {
            self.start(row, &cell.queue, &sent.request.token, sent.epoch, &mut kept);
        }
    }

    fn count(&self, queue: &QueueName, claimed: &Claimed) {
        let rows = claimed.rows.len();
        let mut counters = self.counters.lock();
        counters.claimed += rows as u64;
        counters.empty_claims += u64::from(rows == 0);
        counters.contended += u64::from(claimed.stop == mainstay_store::Stop::Contended);
        drop(counters);
        if rows > 0 || !claimed.parked.is_empty() {
            tracing::debug!(%queue, rows, parked = claimed.parked.len(), stop = ?claimed.stop, "claimed");
        }
    }

    fn start(&self, claimed: ClaimedRow, queue: &QueueName, token: &Token, epoch: u64, kept: &mut Option<Kept>) {
        let id = claimed.row.id.clone();
        let fence = claimed.fence.clone();
        let identity = self.identity(|identity| identity.clone());
        if identity.epoch != epoch || !identity.leased {
            return;
        }
        if identity.stopping {
            return self.return_unbegun(fence);
        }
        let (runs_already, old_lives) = {
            let tally = self.counts.lock();
            (tally.runs_as(&fence), tally.runs(&id))
        };
        if runs_already {
            return;
        }
        if old_lives && !self.evict(&id) {
            return self.set_aside(fence);
        }
        let body = Body {
            id: id.clone(),
            queue: Some(queue.clone()),
            key: claimed.row.key.clone(),
            fence: Some(fence.clone()),
            token: Some(token.clone()),
            executor: identity.executor,
        };
        let Some(slot) = self.seat(body, epoch, kept) else { return self.return_unbegun(fence) };
        self.counters.lock().launched += 1;
        let work = Work::new(claimed, slot);
        if catch_unwind(AssertUnwindSafe(|| self.launcher.launch(work))).is_err() {
            tracing::error!(%queue, workflow = %id, "launch panicked");
            let mut counters = self.counters.lock();
            counters.launched -= 1;
            counters.launch_panics += 1;
            drop(counters);
            self.set_aside(fence);
        } else if !self.is_under(epoch) {
            // The loss may have dropped the bodies that it saw before this one was there.
            self.evict(&id);
        }
    }

    /// A slot on a place that was kept for the claim, else on a free one.
    fn seat(&self, body: Body, epoch: u64, kept: &mut Option<Kept>) -> Option<Slot> {
        let mut tally = self.counts.lock();
        // Under the lock: a loss that comes later finds the slot.
        if !self.is_under(epoch) {
            return None;
        }
        let has_place = kept.as_mut().is_some_and(|kept| kept.spend(&mut tally)) || tally.places() > 0;
        has_place.then(|| Slot::new(self.counts.clone(), tally.take(body)))
    }

    /// Leaves a row to the upkeep that has no place here: it costs no attempt.
    fn return_unbegun(&self, fence: Fence) {
        self.errands.post(Errand::GiveBack(Return { fence, delay: None, begun: false }));
    }

    /// Leaves a row to the upkeep whose launch panicked: its attempts bound how often that happens.
    fn set_aside(&self, fence: Fence) {
        self.errands.post(Errand::GiveBack(Return { fence, delay: Some(SET_ASIDE), begun: true }));
    }
}
