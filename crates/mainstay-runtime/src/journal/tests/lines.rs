//! Straight programs over the record of another one: the first difference is reported, whatever it is.

use mainstay_store::{Position, RecordedStep, StepName, StepResult, WorkflowId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::{CallKind, Expect, Journal, Verdict};

/// A durable call of a random program. Few names, so that programs agree often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Step(u8),
    Sleep,
    Start(u8),
    Await(u8),
    Effect(u8),
}

impl Op {
    /// A start is named like a step, so that the kind decides.
    pub(super) fn name(&self) -> StepName {
        match self {
            Self::Step(of) | Self::Start(of) => format!("s{of}").into(),
            Self::Sleep => "DBOS.sleep".into(),
            Self::Await(_) => "DBOS.getResult".into(),
            Self::Effect(of) => ["DBOS.send", "DBOS.setEvent"][usize::from(of % 2)].into(),
        }
    }

    fn awaited(&self) -> WorkflowId {
        let of = if let Self::Await(of) = self { *of } else { 0 };
        format!("c{of}").into()
    }

    /// Asks `question` with this call at `position`.
    pub(super) fn ask<T>(&self, position: Position, question: impl FnOnce(Expect<'_>) -> T) -> T {
        let (name, awaited) = (self.name(), self.awaited());
        let kind = match self {
            Self::Step(_) => CallKind::Step,
            Self::Sleep => CallKind::Sleep,
            Self::Start(_) => CallKind::Start,
            Self::Await(_) => CallKind::Await(&awaited),
            Self::Effect(_) => CallKind::Effect,
        };
        question(Expect { position, name: &name, kind })
    }

    /// The row that it leaves.
    pub(super) fn row(&self, position: Position) -> RecordedStep {
        let value = format!("{}{}", position, self.name());
        let row = RecordedStep::new(position, self.name(), StepResult::Value(value.into()));
        match self {
            Self::Start(_) => row.child(format!("started-{position}")),
            Self::Await(_) => row.child(self.awaited()),
            Self::Step(_) | Self::Sleep | Self::Effect(_) => row,
        }
    }
}

/// Any call.
pub(super) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..3_u8).prop_map(Op::Step),
        1 => Just(Op::Sleep),
        2 => (0..3_u8).prop_map(Op::Start),
        2 => (0..3_u8).prop_map(Op::Await),
        1 => (0..2_u8).prop_map(Op::Effect),
    ]
}

/// How often the normal number of cases is run.
pub(super) fn cases(normal: u32) -> Config {
    let full = u32::from(std::env::var_os("MAINSTAY_FULL").is_some_and(|full| full == "1")) * 9 + 1;
    Config { cases: normal * full, failure_persistence: None, ..Config::default() }
}

/// One edit of a program.
#[derive(Clone, Debug)]
enum Edit {
    Insert(Op),
    Remove,
    Replace(Op),
    Swap,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![op().prop_map(Edit::Insert), Just(Edit::Remove), op().prop_map(Edit::Replace), Just(Edit::Swap)]
}

fn edited(ops: &[Op], edits: &[(usize, Edit)]) -> Vec<Op> {
    let mut ops = ops.to_vec();
    for (at, edit) in edits {
        let at = at % (ops.len() + 1);
        match edit {
            Edit::Insert(op) => ops.insert(at, op.clone()),
            Edit::Remove if at < ops.len() => drop(ops.remove(at)),
            Edit::Replace(op) if at < ops.len() => ops[at] = op.clone(),
            Edit::Swap if at + 1 < ops.len() => ops.swap(at, at + 1),
            Edit::Remove | Edit::Replace(_) | Edit::Swap => {}
        }
    }
    ops
}

#[derive(Default)]
struct Tally {
    mismatches: u32,
    shorter: u32,
    longer: u32,
}

fn check(old: &[Op], new: &[Op], tally: &mut Tally) {
    let position = |at: usize| Position(i32::try_from(at).expect("short"));
    let rows: Vec<_> = old.iter().enumerate().map(|(at, op)| op.row(position(at))).collect();
    let mut journal = Journal::new(rows.clone());
    let differs = old.iter().zip(new).position(|(old, new)| old != new);
    for (at, op) in new.iter().enumerate() {
        let verdict = op.ask(position(at), |expect| journal.call(expect));
        match (&verdict, at < old.len()) {
            (Verdict::Mismatch(mismatch), true) => {
                assert_eq!((Some(at), mismatch.position), (differs, position(at)), "{mismatch}");
                tally.mismatches += 1;
                return;
            }
            (Verdict::Replay(row), true) => assert_eq!(row, &rows[at]),
            (Verdict::Run, false) => {}
            _ => panic!("{op:?} at {at} of {} recorded: {verdict:?}", old.len()),
        }
    }
    assert_eq!(differs, None, "a difference went by");
    let left: Vec<_> = rows.iter().skip(new.len()).map(|row| (row.position, row.name.clone())).collect();
    tally.shorter += u32::from(!left.is_empty());
    tally.longer += u32::from(new.len() > old.len());
    assert_eq!(journal.unasked(), left);
}

#[test]
fn the_first_changed_position_of_an_edited_program_is_reported() {
    let programs = (proptest::collection::vec(op(), 0..20), proptest::collection::vec((0..20_usize, edit()), 0..3));
    let tally = std::cell::RefCell::new(Tally::default());
    let outcome = TestRunner::new(cases(20_000)).run(&programs, |(old, edits)| {
        check(&old, &edited(&old, &edits), &mut tally.borrow_mut());
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let Tally { mismatches, shorter, longer } = tally.into_inner();
    assert!(mismatches > 5_000 && shorter > 200 && longer > 200, "{mismatches} {shorter} {longer}");
}
