//! What an execution has recorded, and the verdict on every durable call: run it, replay it, or stop with a mismatch.
//!
//! Pure: no clock, no waits, ordered maps. A verdict depends on the recorded rows and on the call alone, never on the order in
//! which calls ask, so that branches that run side by side replay in any order.

mod mismatch;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mainstay_store::{Position, RecordedStep, StepName, StepResult, WorkflowId, wire};

pub(crate) use mismatch::Mismatch;

/// What kind of durable call asks; with the name it tells whether a row is the call's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind<'a> {
    /// A step of the user. Its name is not a reserved one: the call is refused when it is made.
    Step,
    /// A sleep.
    Sleep,
    /// A start of a workflow; the name is that workflow's.
    Start,
    /// A wait for this workflow.
    Await(&'a WorkflowId),
    /// Any other call of the engine, told apart by its reserved name.
    Effect,
}

/// A durable call as it is about to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expect<'a> {
    /// Its place, taken when the call was made.
    pub(crate) position: Position,
    /// The name that its row has.
    pub(crate) name: &'a StepName,
    /// What it is.
    pub(crate) kind: CallKind<'a>,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Nothing is recorded: do it.
    Run,
    /// This is recorded: hand it back.
    Replay(RecordedStep),
    /// Something else is recorded: the code is not the one that wrote this workflow.
    Mismatch(Mismatch),
}

/// The recorded rows of one execution, given out once each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// Rows that no call has asked for.
    recorded: BTreeMap<Position, RecordedStep>,
    /// Highest recorded position.
    last: Option<Position>,
    /// Highest position that a call has asked for.
    reached: Option<Position>,
}

impl Journal {
    /// Over the rows that a claim or a start has answered with.
    pub(crate) fn new(rows: Vec<RecordedStep>) -> Self {
        let mut journal = Self::default();
        journal.extend(rows);
        journal
    }

    /// Adds rows that were read later; no call has asked yet.
    pub(crate) fn extend(&mut self, rows: Vec<RecordedStep>) {
        self.recorded.extend(rows.into_iter().map(|row| (row.position, row)));
        self.last = self.recorded.last_key_value().map(|(position, _)| *position);
    }

    /// Whether a position is recorded above all that calls have asked for so far.
    pub(crate) fn is_replaying(&self) -> bool {
        self.last > self.reached
    }

    /// The verdict on a call that runs for the first time in this execution; asked once a position.
    pub(crate) fn call(&mut self, expect: Expect<'_>) -> Verdict {
        self.reached = self.reached.max(Some(expect.position));
        match self.recorded.remove(&expect.position) {
            Some(row) => judge(row, &expect),
            None => Verdict::Run,
        }
    }

    /// The verdict on a call whose unit was answered `Recorded { rows }`. The fence was valid, so these are this execution's own
    /// earlier writes, and a call finds its own row among them.
    pub(crate) fn written(&mut self, expect: Expect<'_>, rows: Vec<RecordedStep>) -> Verdict {
        self.reached = self.reached.max(Some(expect.position));
        match rows.into_iter().find(|row| row.position == expect.position) {
            Some(row) => judge(row, &expect),
            None => Verdict::Mismatch(Mismatch::absent(&expect)),
        }
    }

    /// Recorded rows that no call has asked for, in order: the code has become shorter. For a warning at the end.
    pub(crate) fn unasked(&self) -> Vec<(Position, StepName)> {
        self.recorded.values().map(|row| (row.position, row.name.clone())).collect()
    }
}

fn judge(row: RecordedStep, expect: &Expect<'_>) -> Verdict {
    let own = match expect.kind {
        // A user's step that is named like an engine call cannot be told from one.
        CallKind::Step => row.child.is_none() && !is_reserved(&row.name),
        // A start that failed made no child.
        CallKind::Start => {
            !is_reserved(&row.name) && (row.child.is_some() || matches!(row.result, StepResult::Failure(_)))
        }
        CallKind::Await(id) => row.child.as_ref() == Some(id),
        CallKind::Sleep => row.child.is_none(),
        CallKind::Effect => true,
    };
    if own && row.name == *expect.name { Verdict::Replay(row) } else { Verdict::Mismatch(Mismatch::new(row, expect)) }
}

fn is_reserved(name: &StepName) -> bool {
    name.as_str().starts_with(wire::RESERVED_PREFIX)
}
