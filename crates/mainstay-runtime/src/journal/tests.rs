//! The journal: its rules as cases, and random programs that crash and replay.

mod lines;
mod programs;

use mainstay_store::{Position, RecordedStep, StepName, StepResult, WorkflowId};

use super::{CallKind, Expect, Journal, Verdict};

fn row(position: i32, name: &str, child: Option<&str>) -> RecordedStep {
    let mut row = RecordedStep::new(position, name, StepResult::Value(format!("{position}").into()));
    row.child = child.map(WorkflowId::from);
    row
}

fn ask(journal: &mut Journal, position: i32, name: &str, kind: CallKind<'_>) -> Verdict {
    journal.call(Expect { position: Position(position), name: &StepName::from(name), kind })
}

#[test]
fn a_call_replays_its_own_row_alone() {
    let (one, two) = (WorkflowId::from("c-1"), WorkflowId::from("c-2"));
    let rows = [
        ("charge", None),
        ("charge", Some("c-1")),
        ("DBOS.sleep", None),
        ("DBOS.sleep", Some("c-1")),
        ("DBOS.getResult", Some("c-1")),
        ("DBOS.getResult", None),
        ("DBOS.send", None),
    ];
    // For each call the rows, by index, that are its own.
    let calls: [(&str, CallKind<'_>, &[usize]); 12] = [
        ("charge", CallKind::Step, &[0]),
        ("ship", CallKind::Step, &[]),
        ("DBOS.sleep", CallKind::Step, &[]),
        ("DBOS.getResult", CallKind::Step, &[]),
        ("charge", CallKind::Start, &[1]),
        ("ship", CallKind::Start, &[]),
        ("DBOS.getResult", CallKind::Start, &[]),
        ("DBOS.sleep", CallKind::Sleep, &[2]),
        ("DBOS.getResult", CallKind::Await(&one), &[4]),
        ("DBOS.getResult", CallKind::Await(&two), &[]),
        ("DBOS.send", CallKind::Effect, &[6]),
        ("DBOS.setEvent", CallKind::Effect, &[]),
    ];
    for (name, kind, own) in calls {
        for (at, (recorded, child)) in rows.iter().enumerate() {
            let stored = row(3, recorded, *child);
            let mut journal = Journal::new(vec![stored.clone()]);
            let by_call = ask(&mut journal, 3, name, kind);
            let expect = Expect { position: Position(3), name: &name.into(), kind };
            let by_write = Journal::new(Vec::new()).written(expect, vec![row(2, "other", None), stored.clone()]);
            assert_eq!(by_call, by_write, "one rule for both");
            match by_call {
                Verdict::Replay(row) => assert!(own.contains(&at) && row == stored, "{kind:?} {name} took {recorded}"),
                Verdict::Mismatch(it) => {
                    assert!(!own.contains(&at) && it.position == Position(3), "{kind:?} {name}: {it}")
                }
                Verdict::Run => panic!("{kind:?} {name} runs over {recorded}"),
            }
        }
        assert_eq!(ask(&mut Journal::new(Vec::new()), 3, name, kind), Verdict::Run);
    }
}

#[test]
fn a_mismatch_says_where_what_and_how_to_go_on() {
    let text = |recorded: RecordedStep, name: &str, kind| match ask(&mut Journal::new(vec![recorded]), 3, name, kind) {
        Verdict::Mismatch(mismatch) => mismatch.to_string(),
        other => panic!("{other:?}"),
    };
    let child = WorkflowId::from("c-2");
    let cases = [
        (
            text(row(3, "charge", None), "ship", CallKind::Step),
            r#"position 3 holds the step "charge", and the code asks for the step "ship""#,
        ),
        (
            text(row(3, "ship", Some("c-1")), "charge", CallKind::Step),
            r#"position 3 holds the start of workflow "ship" as c-1, and the code asks for the step "charge""#,
        ),
        (
            text(row(3, "DBOS.getResult", Some("c-1")), "DBOS.getResult", CallKind::Await(&child)),
            "position 3 holds the DBOS.getResult of c-1, and the code asks for the DBOS.getResult of c-2",
        ),
        (
            text(row(3, "DBOS.sleep", None), "DBOS.sleep", CallKind::Step),
            r#"position 3 holds the engine call DBOS.sleep, and the code asks for the step "DBOS.sleep""#,
        ),
        (
            text(row(3, "charge", None), "ship", CallKind::Start),
            r#"position 3 holds the step "charge", and the code asks for the start of workflow "ship""#,
        ),
    ];
    for (text, expected) in cases {
        let (found, advice) = text.split_once("; ").expect("two halves");
        assert_eq!(found, expected);
        assert!(advice.contains("resume the workflow"), "{advice}");
    }
}

#[test]
fn a_write_that_finds_other_positions_recorded_is_a_mismatch() {
    let expect = Expect { position: Position(3), name: &"charge".into(), kind: CallKind::Step };
    let Verdict::Mismatch(mismatch) = Journal::default().written(expect, vec![row(4, "charge", None)]) else {
        panic!("position 3 is not among the rows")
    };
    assert!(mismatch.to_string().starts_with("position 3 holds nothing"), "{mismatch}");
}

#[test]
fn replaying_ends_with_the_highest_recorded_position() {
    let mut journal = Journal::new(vec![row(5, "b", None), row(0, "a", None), row(7, "c", None)]);
    let mut replaying = vec![journal.is_replaying()];
    for (position, name) in [(0, "a"), (3, "new"), (5, "b"), (7, "c"), (8, "new")] {
        ask(&mut journal, position, name, CallKind::Step);
        replaying.push(journal.is_replaying());
    }
    assert_eq!(replaying, [true, true, true, true, false, false]);
    assert!(!Journal::new(Vec::new()).is_replaying());
}

#[test]
fn rows_that_nobody_asked_for_are_told_in_order() {
    let mut journal = Journal::new(vec![row(9, "c", None), row(2, "b", None), row(0, "a", None)]);
    ask(&mut journal, 0, "a", CallKind::Step);
    assert_eq!(journal.unasked(), [(Position(2), "b".into()), (Position(9), "c".into())]);
}
