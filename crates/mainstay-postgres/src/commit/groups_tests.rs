//! A small store that is written unit by unit, and kind by kind as the statements do it: every division of a batch has the
//! answers and the rows of some order of its units, in which those of a fence keep theirs.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_store::{Effect, Fence, Joining, OnHeld, Outcome, Place, StepOutput, StepRow, Submit, Unit, WorkflowId};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Group, groups, is_plain};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    made_by: String,
    /// Whether the execution of its only fence goes on.
    runs: bool,
    is_open: bool,
    key: Option<String>,
    steps: Vec<i32>,
}

type Rows = BTreeMap<String, Row>;

/// What a unit is answered, as far as its neighbours can change it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Superseded,
    Recorded,
    Held(String),
    Exists(String),
    Done(Vec<Vec<String>>),
}

fn own(unit: &Unit) -> Option<String> {
    unit.fence.as_ref().map(|fence| fence.workflow().as_str().to_owned())
}

fn judge(rows: &Rows, unit: &Unit) -> Option<Answer> {
    let row = rows.get(&own(unit)?);
    let Some(row) = row.filter(|row| row.runs) else { return Some(Answer::Superseded) };
    let again = unit.steps.iter().any(|step| row.steps.contains(&step.position.0));
    again.then_some(Answer::Recorded)
}

fn submit(rows: &mut Rows, new: &Submit) -> Option<Answer> {
    if rows.contains_key(new.id.as_str()) {
        return Some(Answer::Exists(new.id.as_str().to_owned()));
    }
    let key = new.dedup.as_ref().map(|dedup| dedup.key.as_str().to_owned());
    let held = |row: &&String| key.is_some() && rows[*row].key == key;
    if let Some(holder) = rows.keys().find(held) {
        return Some(Answer::Held(holder.clone()));
    }
    let row = Row { made_by: new.token.as_str().to_owned(), is_open: true, key, ..Row::default() };
    rows.insert(new.id.as_str().to_owned(), row);
    None
}

fn cancel(rows: &mut Rows, ids: &[WorkflowId]) -> Vec<String> {
    let mut moved = Vec::new();
    for id in ids {
        if let Some(row) = rows.get_mut(id.as_str()).filter(|row| row.is_open) {
            (row.is_open, row.runs, row.key) = (false, false, None);
            moved.push(id.as_str().to_owned());
        }
    }
    moved.sort();
    moved
}

fn effects(rows: &mut Rows, unit: &Unit) -> Result<Vec<Vec<String>>, Answer> {
    let mut done = Vec::new();
    for effect in &unit.effects {
        done.push(match effect {
            Effect::Submit(new) => submit(rows, new).map_or(Ok(Vec::new()), Err)?,
            Effect::Cancel { ids, .. } => cancel(rows, ids),
            _ => Vec::new(),
        });
    }
    Ok(done)
}

fn rest(rows: &mut Rows, unit: &Unit) {
    let Some(row) = own(unit).and_then(|own| rows.get_mut(&own)) else { return };
    row.steps.extend(unit.steps.iter().map(|step| step.position.0));
    if unit.outcome.is_some() {
        (row.runs, row.is_open, row.key) = (false, false, None);
    }
    if unit.effects.iter().any(super::gives_back) {
        row.runs = false;
    }
}

/// One unit after the other.
fn one(rows: &mut Rows, unit: &Unit) -> Answer {
    if let Some(answer) = judge(rows, unit) {
        return answer;
    }
    let mut tried = rows.clone();
    match effects(&mut tried, unit) {
        Ok(done) => {
            *rows = tried;
            rest(rows, unit);
            Answer::Done(done)
        }
        Err(answer) => answer,
    }
}

/// As the statements do it.
fn by_kind(rows: &mut Rows, units: &[&Unit]) -> Vec<Answer> {
    let mut answers: Vec<Option<Answer>> = units.iter().map(|unit| judge(rows, unit)).collect();
    let mut made = vec![Vec::new(); units.len()];
    for (at, unit) in units.iter().enumerate().filter(|(at, _)| answers[*at].is_none()).collect::<Vec<_>>() {
        for effect in &unit.effects {
            let Effect::Submit(new) = effect else { continue };
            let lost = submit(rows, new);
            if lost.is_none() {
                made[at].push(new.id.as_str().to_owned());
            }
            answers[at] = answers[at].take().or(lost);
        }
    }
    for (at, ids) in made.iter().enumerate().filter(|(at, _)| answers[*at].is_some()) {
        assert!(answers[at].is_some());
        ids.iter().for_each(|id| drop(rows.remove(id)));
    }
    let good: Vec<usize> = (0..units.len()).filter(|at| answers[*at].is_none()).collect();
    for at in &good {
        rest(rows, units[*at]);
    }
    for at in good {
        let moved = units[at].effects.iter().map(|effect| match effect {
            Effect::Cancel { ids, .. } => cancel(rows, ids),
            _ => Vec::new(),
        });
        answers[at] = Some(Answer::Done(moved.collect()));
    }
    answers.into_iter().map(|answer| answer.expect("judged")).collect()
}

fn divided(rows: &mut Rows, units: &[Unit]) -> Vec<Answer> {
    let mut answers = vec![None; units.len()];
    for group in groups(units, |_| true) {
        match group {
            Group::Alone(at) => answers[at] = Some(one(rows, &units[at])),
            Group::Together(places) => {
                let here: Vec<&Unit> = places.iter().map(|at| &units[*at]).collect();
                for (at, answer) in places.iter().zip(by_kind(rows, &here)) {
                    assert!(answers[*at].replace(answer).is_none(), "a unit is written once");
                }
            }
        }
    }
    answers.into_iter().map(|answer| answer.expect("every unit is written")).collect()
}

/// Whether some order of the units, in which those of a fence keep theirs, has these answers and rows.
fn is_serial(before: &Rows, units: &[Unit], answers: &[Answer], after: &Rows) -> bool {
    let left: Vec<usize> = (0..units.len()).collect();
    search(before.clone(), units, answers, after, &left)
}

fn search(rows: Rows, units: &[Unit], answers: &[Answer], after: &Rows, left: &[usize]) -> bool {
    if left.is_empty() {
        return rows == *after;
    }
    left.iter().enumerate().any(|(place, at)| {
        let is_next = left[..place]
            .iter()
            .all(|earlier| own(&units[*earlier]).is_none() || own(&units[*earlier]) != own(&units[*at]));
        let mut then = rows.clone();
        if !is_next || one(&mut then, &units[*at]) != answers[*at] {
            return false;
        }
        let rest: Vec<usize> = left.iter().copied().filter(|other| other != at).collect();
        search(then, units, answers, after, &rest)
    })
}

fn job(n: u8, key: Option<u8>, token: u32) -> Submit {
    let new = Submit::new(format!("w{n}"), "f", format!("t{token}"), Place::queue("q"));
    match key {
        Some(key) => new.dedup(Joining { key: format!("k{key}").into(), on_held: OnHeld::Reject }),
        None => new,
    }
}

fn cancel_of(ids: &[u8], children: bool) -> Effect {
    Effect::Cancel { ids: ids.iter().map(|n| format!("w{n}").into()).collect(), children }
}

fn fence(n: u8) -> Fence {
    Fence::issue(format!("w{n}").into(), "now")
}

fn effect() -> impl Strategy<Value = Effect> {
    prop_oneof![
        3 => (0..6_u8, proptest::option::of(0..2_u8), any::<u32>()).prop_map(|(n, key, token)| job(n, key, token).into()),
        3 => vec(0..6_u8, 1..3).prop_map(|ids| cancel_of(&ids, false)),
        1 => Just(Effect::Attributes { id: "w0".into(), json: None }),
    ]
}

fn with(mut unit: Unit, effects: Vec<Effect>) -> Unit {
    unit.effects = effects;
    unit
}

fn unit() -> impl Strategy<Value = Unit> {
    let step = |at: i32| StepRow::new(at, "s", StepOutput::Nothing);
    let free = vec(effect(), 1..3).prop_map(|effects| with(Unit::new(), effects));
    let writes = (vec(0..3_i32, 0..2), vec(effect(), 0..3), any::<bool>());
    let fenced = (0..3_u8, writes).prop_map(move |(n, (steps, effects, ends))| {
        let mut unit = with(Unit::by(&fence(n)), effects);
        unit.steps = steps.into_iter().map(step).collect();
        unit.outcome = ends.then(|| Outcome::Success("1".into()));
        unit
    });
    let given = (0..3_u8).prop_map(|n| Unit::by(&fence(n)).effect(Effect::GiveBack { delay: None, begun: true }));
    prop_oneof![3 => free, 5 => fenced, 1 => given].prop_filter("is refused before", |unit| {
        let own = own(unit);
        !unit.effects.iter().flat_map(Effect::moves).any(|id| Some(id.as_str()) == own.as_deref())
    })
}

/// Running rows `w0` to `w2`, two of which hold a key, and an enqueued one with a key less often.
fn rows() -> impl Strategy<Value = Rows> {
    (any::<[bool; 4]>()).prop_map(|[first, second, third, runs]| {
        let row =
            |key: Option<&str>, runs: bool| Row { runs, is_open: true, key: key.map(str::to_owned), ..Row::default() };
        let mut rows = Rows::new();
        rows.insert("w0".into(), row(first.then_some("k0"), true));
        rows.insert("w1".into(), row(second.then_some("k1"), runs));
        rows.insert("w2".into(), row(None, true));
        if third && !first {
            rows.insert("w3".into(), row(Some("k0"), false));
        }
        rows
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_divided_batch_is_some_order_of_its_units(before in rows(), units in vec(unit(), 1..6)) {
        let mut after = before.clone();
        let answers = divided(&mut after, &units);
        prop_assert!(is_serial(&before, &units, &answers, &after), "{answers:?}\n{after:?}");
    }
}

fn together(units: &[Unit]) -> Vec<Group> {
    groups(units, |_| true)
}

#[test]
fn what_meets_nothing_shares_a_transaction() {
    let units = [
        Unit::by(&fence(0)).step(StepRow::new(0, "s", StepOutput::Nothing)),
        Unit::new().effect(job(5, Some(0), 1)),
        Unit::by(&fence(0)).step(StepRow::new(1, "s", StepOutput::Nothing)).outcome(Outcome::Success("1".into())),
        Unit::by(&fence(1)).effect(Effect::GiveBack { delay: Some(Duration::ZERO), begun: true }),
        Unit::new().effect(cancel_of(&[2, 3], false)),
    ];
    assert_eq!(together(&units), [Group::Together(vec![0, 1, 2, 3, 4])]);
}

#[test]
fn what_follows_an_end_comes_in_a_second_transaction_and_others_stay_in_the_first() {
    let end = |n| Unit::by(&fence(n)).outcome(Outcome::Success("1".into()));
    let units = [end(0), end(0), end(1), Unit::new().effect(cancel_of(&[1], false)), end(2)];
    assert_eq!(together(&units), [Group::Together(vec![0, 2, 4]), Group::Together(vec![1, 3])]);
}

#[test]
fn a_submit_after_a_cancel_of_its_fence_finds_the_key_free() {
    let units = [
        Unit::by(&fence(0)).effect(cancel_of(&[3], false)),
        Unit::by(&fence(0)).effect(job(5, Some(0), 1)),
        Unit::by(&fence(1)).effect(job(4, None, 2)),
    ];
    assert_eq!(together(&units), [Group::Together(vec![0, 2]), Group::Together(vec![1])]);
    let open = |key: Option<&str>, runs| Row { runs, is_open: true, key: key.map(str::to_owned), ..Row::default() };
    let named = |(id, row): (&str, Row)| (id.to_owned(), row);
    let before: Rows =
        [("w0", open(None, true)), ("w1", open(None, true)), ("w3", open(Some("k0"), false))].map(named).into();
    let mut after = before.clone();
    let answers = divided(&mut after, &units);
    assert!(is_serial(&before, &units, &answers, &after), "{answers:?}");
    assert!(after["w5"].key.is_some());
}

#[test]
fn an_effect_that_reaches_what_it_does_not_name_stands_alone_and_in_its_place() {
    let units = [
        Unit::new().effect(job(4, None, 1)),
        Unit::new().effect(cancel_of(&[0], true)),
        Unit::new().effect(job(5, None, 2)),
    ];
    let alone = [Group::Together(vec![0]), Group::Alone(1), Group::Together(vec![2])];
    assert_eq!(together(&units), alone);
    assert_eq!(groups(&units, |at| at != 1), [Group::Together(vec![0, 2])], "what is not to be written is left out");
}

#[test]
fn a_transaction_has_bounds() {
    let units: Vec<Unit> = (0..2_500).map(|n| Unit::new().effect(job(0, None, n))).collect();
    let units: Vec<Unit> = units
        .into_iter()
        .enumerate()
        .map(|(at, unit)| match unit.effects.into_iter().next() {
            Some(Effect::Submit(mut new)) => {
                new.id = format!("w{at}").into();
                Unit::new().effect(*new)
            }
            _ => Unit::new(),
        })
        .collect();
    let sizes: Vec<usize> = together(&units)
        .iter()
        .map(|group| match group {
            Group::Together(places) => places.len(),
            Group::Alone(_) => 0,
        })
        .collect();
    assert_eq!(sizes, [1_000, 1_000, 500]);
    let large = |n: u8| Unit::new().effect(job(n, None, n.into()).input("x".repeat(15 << 20)));
    let groups = together(&[large(0), large(1), large(2)]);
    assert_eq!(groups, [Group::Together(vec![0, 1]), Group::Together(vec![2])]);
}

#[test]
fn a_unit_that_touches_a_row_twice_is_not_written_by_kind() {
    let plain =
        Unit::by(&fence(0)).effect(job(1, Some(0), 1)).effect(job(2, Some(1), 2)).effect(cancel_of(&[3], false));
    assert!(is_plain(&plain));
    let others = [
        Unit::new().effect(job(1, None, 1)).effect(job(1, None, 1)),
        Unit::new().effect(job(1, Some(0), 1)).effect(job(2, Some(0), 1)),
        Unit::new().effect(job(1, None, 1)).effect(cancel_of(&[1], false)),
        Unit::new().effect(cancel_of(&[1], false)).effect(job(2, Some(0), 1)),
        Unit::new().effect(cancel_of(&[1, 1], false)),
        Unit::by(&fence(1)).effect(job(1, None, 1)),
        Unit::new().effect(cancel_of(&[1], true)),
    ];
    for unit in others {
        assert!(!is_plain(&unit), "{unit:?}");
    }
}
