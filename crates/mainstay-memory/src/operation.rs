//! One operation at work: the state, the clock as it was read, the hints to publish, and how a refused unit is undone.

use std::sync::Arc;

use mainstay_store::{Outcome, QueueName, Status, Timestamp, Token, Wakeup, WorkflowId, WorkflowRow};

use crate::history::{Flip, FlipKind};
use crate::state::{Owner, Record, State};

/// An operation. Rows change through [`Operation::insert`], [`Operation::change`] and [`Operation::remove`] alone, which keep
/// the indexes, the hints, the history and the way back.
pub(crate) struct Operation<'a> {
    pub(crate) state: &'a mut State,
    /// The clock of the operation, read once.
    pub(crate) now: Timestamp,
    hints: Vec<Wakeup>,
    undo: Option<Undo>,
}

/// What a unit has done so far, and where the rest stood before it.
struct Undo {
    done: Vec<Done>,
    hints: usize,
    flips: usize,
    executions: u64,
    latest: Timestamp,
}

enum Done {
    Inserted(WorkflowId),
    Changed(Box<Head>),
    Removed(Box<Record>),
}

/// What an effect can change of a row; steps are written after the last effect.
struct Head {
    row: WorkflowRow,
    outcome: Option<Outcome>,
    owner: Option<Owner>,
}

impl<'a> Operation<'a> {
    pub(crate) const fn new(state: &'a mut State, now: Timestamp) -> Self {
        Self { state, now, hints: Vec::new(), undo: None }
    }

    pub(crate) fn into_hints(self) -> Vec<Wakeup> {
        self.hints
    }

    pub(crate) fn hint(&mut self, hint: Wakeup) {
        self.hints.push(hint);
    }

    /// Notes a stamp that is stored.
    pub(crate) fn stamped(&mut self, at: Timestamp) {
        self.state.latest = self.state.latest.max(at);
    }

    /// A new execution's mark on its row.
    pub(crate) fn own(&mut self, token: &Token, direct: bool) -> Owner {
        self.state.executions += 1;
        let raw = Arc::from(format!("{token}#{}", self.state.executions));
        Owner { token: token.clone(), raw, direct }
    }

    /// Adds a row.
    pub(crate) fn insert(&mut self, record: Record) {
        let row = &record.row;
        self.state.latest = self.state.latest.max(row.updated_at);
        match row.status {
            Status::Pending => self.flip(FlipKind::Started, row),
            Status::Enqueued => self.hint_queue(row.queue.as_ref()),
            _ => {}
        }
        let id = record.row.id.clone();
        self.state.index.add(&record);
        let before = self.state.rows.insert(id.clone(), record);
        assert!(before.is_none(), "a new row has a new id");
        self.note(|| Done::Inserted(id));
    }

    /// Changes a row that exists, but for its steps.
    pub(crate) fn change(&mut self, id: &WorkflowId, change: impl FnOnce(&mut Record, Timestamp)) {
        let mut record = self.state.rows.remove(id).expect("a row that is changed exists");
        self.state.index.remove(&record);
        let before = Head { row: record.row.clone(), outcome: record.outcome.clone(), owner: record.owner.clone() };
        change(&mut record, self.now);
        self.state.latest = self.state.latest.max(record.row.updated_at);
        self.state.index.add(&record);
        self.changed(&before.row, &record.row);
        self.state.rows.insert(id.clone(), record);
        self.note(|| Done::Changed(Box::new(before)));
    }

    /// Removes a row that exists, with all that hangs on it.
    pub(crate) fn remove(&mut self, id: &WorkflowId) {
        let record = self.state.rows.remove(id).expect("a row that is removed exists");
        self.state.index.remove(&record);
        if record.row.status == Status::Pending {
            self.flip(FlipKind::Ended, &record.row);
            self.hint_room(record.row.queue.as_ref());
        }
        self.note(|| Done::Removed(Box::new(record)));
    }

    /// Hints and history that follow from what a row was and is.
    fn changed(&mut self, before: &WorkflowRow, after: &WorkflowRow) {
        let (was, is) = (before.status, after.status);
        if is == Status::Enqueued && (was, &before.queue) != (is, &after.queue) {
            self.hint_queue(after.queue.as_ref());
        }
        if is.is_ended() && was != is {
            self.hint(Wakeup::Workflow(after.id.clone()));
        }
        if was == Status::Pending && is != Status::Pending {
            self.hint_room(before.queue.as_ref());
            self.flip(if is.is_ended() { FlipKind::Ended } else { FlipKind::Returned }, before);
        }
        if was != Status::Pending && is == Status::Pending {
            self.flip(FlipKind::Claimed, after);
        }
    }

    fn hint_queue(&mut self, queue: Option<&QueueName>) {
        if let Some(queue) = queue {
            self.hint(Wakeup::Queue(queue.clone()));
        }
    }

    fn hint_room(&mut self, queue: Option<&QueueName>) {
        self.hint_queue(queue.filter(|queue| self.state.counts_running(queue)).cloned().as_ref());
    }

    fn flip(&mut self, kind: FlipKind, row: &WorkflowRow) {
        let at = self.now;
        if let Some(flips) = &mut self.state.flips {
            flips.push(Flip::of(kind, row, at));
        }
    }

    fn note(&mut self, done: impl FnOnce() -> Done) {
        if let Some(undo) = &mut self.undo {
            undo.done.push(done());
        }
    }

    /// From here on everything can be taken back.
    pub(crate) fn begin(&mut self) {
        self.undo = Some(Undo {
            done: Vec::new(),
            hints: self.hints.len(),
            flips: self.state.flips.as_ref().map_or(0, Vec::len),
            executions: self.state.executions,
            latest: self.state.latest,
        });
    }

    /// What was done since the beginning stays.
    pub(crate) fn keep(&mut self) {
        self.undo = None;
    }

    /// Takes back all that was done since the beginning, last first.
    pub(crate) fn take_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        for done in undo.done.into_iter().rev() {
            match done {
                Done::Inserted(id) => {
                    let record = self.state.rows.remove(&id).expect("an inserted row is there until it is taken back");
                    self.state.index.remove(&record);
                }
                Done::Changed(head) => self.restore(*head),
                Done::Removed(record) => {
                    self.state.index.add(&record);
                    self.state.rows.insert(record.row.id.clone(), *record);
                }
            }
        }
        self.hints.truncate(undo.hints);
        if let Some(flips) = &mut self.state.flips {
            flips.truncate(undo.flips);
        }
        self.state.executions = undo.executions;
        self.state.latest = undo.latest;
    }

    fn restore(&mut self, head: Head) {
        let record = self.state.rows.get_mut(&head.row.id).expect("a changed row is there until it is taken back");
        self.state.index.remove(record);
        record.row = head.row;
        record.outcome = head.outcome;
        record.owner = head.owner;
        self.state.index.add(record);
    }
}
