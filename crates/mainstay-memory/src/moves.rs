//! The moves of a row, each as one change: the table of `docs/writing-a-backend.md` in code.

use std::time::Duration;

use mainstay_store::{Claim, Move, Outcome, QueueName, Timestamp, Wakeup, WorkflowId, WorkflowRow, wire};

use crate::operation::Operation;
use crate::state::Record;

/// Between two start stamps of one row.
const TICK: Duration = Duration::from_millis(1);

/// The one place that writes a status. A move that the table of states does not know is a bug of the caller.
fn move_row(row: &mut WorkflowRow, by: Move, now: Timestamp) {
    let Some(next) = row.status.after(by) else {
        panic!("{} is {}, which {by:?} does not move", row.id, row.status);
    };
    row.status = next;
    // No two executions of a row share a start stamp, however often it is claimed in a millisecond.
    row.updated_at = if by == Move::Claim { now.max(row.updated_at + TICK) } else { now.max(row.updated_at) };
}

/// Ends a row. A success or an error keeps its queue and its start, so that it can be seen where it ran.
fn end(record: &mut Record, outcome: Outcome, now: Timestamp) {
    let row = &mut record.row;
    move_row(row, outcome.by(), now);
    row.completed_at = Some(now);
    row.dedup = None;
    if matches!(outcome, Outcome::Cancelled | Outcome::Parked(_)) {
        row.queue = None;
        row.started_at = None;
    }
    record.outcome = Some(outcome);
    record.owner = None;
}

/// The queue of what has none.
pub(crate) fn internal() -> QueueName {
    QueueName::from(wire::INTERNAL_QUEUE)
}

impl Operation<'_> {
    /// An enqueued row becomes an executor's.
    pub(crate) fn claim_row(&mut self, id: &WorkflowId, claim: &Claim, rate_limited: bool) {
        let owner = self.own(&claim.token, false);
        self.change(id, |record, now| {
            let row = &mut record.row;
            move_row(row, Move::Claim, now);
            row.attempts = row.attempts.saturating_add(1);
            row.executor = Some(claim.executor.clone());
            row.version = Some(claim.version.clone());
            row.app.get_or_insert_with(|| claim.app.clone());
            row.started_at = Some(row.updated_at);
            row.rate_limited = rate_limited;
            if let (None, Some(timeout)) = (row.deadline, row.timeout) {
                row.deadline = Some(now + timeout);
            }
            record.owner = Some(owner);
        });
    }

    /// An enqueued row that has had its attempts is set aside.
    pub(crate) fn park_row(&mut self, id: &WorkflowId) {
        self.change(id, |record, now| {
            let outcome = Outcome::out_of_attempts(record.row.attempts);
            end(record, outcome, now);
        });
    }

    /// An execution ends.
    pub(crate) fn end_row(&mut self, id: &WorkflowId, outcome: Outcome) {
        self.change(id, |record, now| end(record, outcome, now));
    }

    /// A row is cancelled, by hand or by its deadline.
    pub(crate) fn cancel_row(&mut self, id: &WorkflowId) {
        self.end_row(id, Outcome::Cancelled);
    }

    /// An executor's row goes back to its queue, or to `fallback`; at once claimable, or after a delay.
    pub(crate) fn return_row(&mut self, id: &WorkflowId, fallback: &QueueName, delay: Option<Duration>) {
        self.change(id, |record, now| {
            let row = &mut record.row;
            match delay {
                Some(delay) => {
                    move_row(row, Move::Postpone, now);
                    row.delay_until = Some(now + delay);
                }
                None => move_row(row, Move::Return, now),
            }
            row.queue.get_or_insert_with(|| fallback.clone());
            row.started_at = None;
            record.owner = None;
        });
    }

    /// A row begins again from its checkpoints.
    pub(crate) fn resume_row(&mut self, id: &WorkflowId, queue: &QueueName) {
        let held = self.state.rows.get(id).is_some_and(|record| record.owner.is_some());
        self.change(id, |record, now| {
            let row = &mut record.row;
            move_row(row, Move::Resume, now);
            row.queue = Some(queue.clone());
            row.attempts = 0;
            row.deadline = None;
            row.dedup = None;
            row.started_at = None;
            row.completed_at = None;
            record.outcome = None;
            record.owner = None;
        });
        if held {
            self.hint(Wakeup::Workflow(id.clone()));
        }
    }

    /// A delayed row that is due becomes claimable.
    pub(crate) fn release_row(&mut self, id: &WorkflowId) {
        self.change(id, |record, now| move_row(&mut record.row, Move::Release, now));
    }
}

#[cfg(test)]
mod tests {
    use mainstay_store::Status;

    use super::*;

    #[test]
    fn a_move_outside_the_table_of_states_is_a_panic() {
        for status in Status::ALL {
            for by in Move::ALL {
                let at = Timestamp(5);
                let moved = std::panic::catch_unwind(|| {
                    let mut row = WorkflowRow::new("w", "f", status, at, at);
                    move_row(&mut row, by, Timestamp(3));
                    (row.status, row.updated_at)
                });
                let later = if by == Move::Claim { Timestamp(6) } else { at };
                assert_eq!(moved.ok(), status.after(by).map(|next| (next, later)), "{status} by {by:?}");
            }
        }
    }
}
