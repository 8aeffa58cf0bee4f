//! What a unit may hold, which units may be repeated, and the form of answers.

use std::time::Duration;

use super::*;
use crate::model::{Outcome, Payload, Position, StepOutput, StepRow, When, WorkflowId};

fn bounds() -> Bounds {
    Bounds::default()
}

fn fence() -> Fence {
    Fence::issue("own".into(), "token")
}

fn submit() -> Submit {
    Submit::new("w", "work", "token", Place::queue("q"))
}

fn field(unit: &Unit) -> Option<String> {
    unit.check(&bounds()).err().map(|error| error.field)
}

fn long() -> String {
    "x".repeat(513)
}

#[test]
fn a_good_unit_of_every_effect_passes() {
    let fenced = [
        Effect::RecvTake { at: Position(0), message: "m".into() },
        Effect::SetEvent { at: Position(0), key: "k".into(), value: "1".into(), codec: None },
        Effect::StreamWrite { at: Position(0), key: "k".into(), value: "1".into(), codec: None },
        Effect::StreamClose { at: Position(0), key: "k".into() },
        Effect::GiveBack { delay: None, begun: true },
    ];
    for effect in fenced {
        assert_eq!(field(&Unit::by(&fence()).effect(effect.clone())), None, "{effect:?}");
        assert_eq!(field(&Unit::new().effect(effect.clone())).as_deref(), Some("fence"), "{effect:?}");
    }
    let free = [
        submit().into(),
        Mail::new("m", "w", "1").into(),
        Fork::new("w", "f", 0).into(),
        Effect::Cancel { ids: vec!["w".into()], children: true },
        Effect::Resume { ids: vec!["w".into()], queue: None, force: false },
        Effect::Delete { ids: vec!["w".into()], children: true },
        Effect::Rewind { id: "w".into(), below: Position(0) },
        Effect::SetDelay { id: "w".into(), delay: When::In(Duration::ZERO) },
        Effect::Attributes { id: "w".into(), json: Some("{}".into()) },
        Effect::Debounce { queue: "q".into(), dedup: "d".into(), push: Duration::ZERO, input: "1".into() },
        Effect::Schedule(Schedule { name: "s".into(), change: "{}".into() }),
    ];
    for effect in free {
        assert_eq!(field(&Unit::new().effect(effect.clone())), None, "{effect:?}");
    }
}

#[test]
fn a_bad_submit_names_its_field() {
    let key = Place::Queue { name: "q".into(), key: Some("k".into()), delay: None };
    let held = Joining { key: "d".into(), on_held: OnHeld::Reject };
    let cases: Vec<(&str, Submit)> = vec![
        ("submit.id", Submit::new("", "work", "t", Place::queue("q"))),
        ("submit.id", Submit::new(long(), "work", "t", Place::queue("q"))),
        ("submit.name", Submit::new("w", "a\0", "t", Place::queue("q"))),
        ("submit.token", Submit::new("w", "work", "t".repeat(41), Place::queue("q"))),
        ("submit.queue", Submit::new("w", "work", "t", Place::queue(""))),
        ("submit.executor", Submit::new("w", "work", "t", Place::Run("".into()))),
        ("submit.input", submit().input("a\0")),
        ("submit.class", submit().class("")),
        ("submit.config", submit().config("")),
        ("submit.codec", submit().codec("")),
        ("submit.parent", submit().parent(long())),
        ("submit.app", submit().app("")),
        ("submit.version", submit().version("")),
        ("submit.schedule", submit().schedule("")),
        ("submit.attributes", submit().attributes("[]")),
        ("submit.attributes", submit().attributes(r#"{"a":"\u0000"}"#)),
        ("submit.priority", submit().priority(-1)),
        ("submit.timeout", submit().timeout(Duration::from_micros(999))),
        ("submit.caller", submit().caller(crate::Caller { user: Some("\0".into()), ..Default::default() })),
        (
            "submit.key",
            Submit { place: Place::Queue { name: "q".into(), key: Some("".into()), delay: None }, ..submit() },
        ),
        ("submit.dedup", Submit { place: key, ..submit().dedup(held.clone()) }),
        ("submit.dedup", Submit { place: Place::Run("a~1".into()), ..submit().dedup(held) }),
    ];
    for (wanted, submit) in cases {
        assert_eq!(field(&Unit::new().effect(submit.clone())).as_deref(), Some(wanted), "{submit:?}");
    }
}

#[test]
fn a_payload_over_the_cap_is_named() {
    let small = Bounds::default().payload_bytes(4);
    let units = [
        ("submit.input", Unit::new().effect(submit().input("12345"))),
        ("steps.output", Unit::by(&fence()).step(StepRow::new(0, "s", StepOutput::Value("12345".into())))),
        ("outcome.success", Unit::by(&fence()).outcome(Outcome::Success("12345".into()))),
        ("outcome.error", Unit::by(&fence()).outcome(Outcome::Error("12345".into()))),
        ("outcome.parked", Unit::by(&fence()).outcome(Outcome::Parked("12345".into()))),
        ("mail.body", Unit::new().effect(Mail::new("m", "w", "12345"))),
    ];
    for (wanted, unit) in units {
        assert_eq!(unit.check(&small).expect_err(wanted).field, wanted);
        assert_eq!(unit.check(&bounds()), Ok(()));
    }
}

#[test]
fn steps_that_contradict_themselves_are_refused() {
    let step = |position: i32, output| StepRow::new(position, "s", output);
    let one = || Unit::by(&fence());
    let cases = [
        ("fence", Unit::new().step(step(0, StepOutput::Nothing))),
        ("fence", Unit::new().outcome(Outcome::Cancelled)),
        ("steps.position", one().step(step(-1, StepOutput::Nothing))),
        ("steps.position", one().step(step(3, StepOutput::Nothing)).step(step(3, StepOutput::Nothing))),
        ("steps.output", one().step(step(0, StepOutput::Answer(0)))),
        ("steps.name", one().step(StepRow::new(0, "", StepOutput::Nothing))),
        ("effects.ids", one().effect(Effect::Cancel { ids: vec!["own".into()], children: false })),
        ("effects.give_back", one().effect(Effect::GiveBack { delay: None, begun: true }).outcome(Outcome::Cancelled)),
        ("effects.give_back", one().effect(Effect::GiveBack { delay: None, begun: true }).effect(submit())),
        ("fork.id", Unit::new().effect(Fork::new("w", "w", 0))),
        ("fork.below", Unit::new().effect(Fork::new("w", "f", -1))),
    ];
    for (wanted, unit) in cases {
        assert_eq!(field(&unit).as_deref(), Some(wanted), "{unit:?}");
    }
}

#[test]
fn only_what_an_identity_guards_may_be_repeated() {
    let one = |effect: Effect| Unit::new().effect(effect);
    let resume = |force| Effect::Resume { ids: vec!["w".into()], queue: None, force };
    let safe = [
        one(submit().into()),
        one(Mail::new("m", "w", "1").into()),
        one(Fork::new("w", "f", 0).into()),
        one(resume(false)),
        one(Effect::Cancel { ids: vec!["w".into()], children: true }),
        one(Effect::SetDelay { id: "w".into(), delay: When::At(crate::Timestamp::from_millis(5)) }),
        Unit::by(&fence()).effect(Effect::GiveBack { delay: Some(Duration::from_secs(1)), begun: true }),
        Unit::by(&fence()).effect(resume(true)).step(StepRow::new(0, "s", StepOutput::Answer(0))),
        Unit::by(&fence()).outcome(Outcome::Cancelled),
    ];
    for unit in safe {
        assert!(unit.repeatable(), "{unit:?}");
    }
    let unsafe_alone = [
        one(resume(true)),
        one(Effect::SetDelay { id: "w".into(), delay: When::In(Duration::from_secs(1)) }),
        one(Effect::Rewind { id: "w".into(), below: Position(0) }),
        Unit::new().effect(submit()).effect(resume(true)),
    ];
    for unit in unsafe_alone {
        assert!(!unit.repeatable(), "{unit:?}");
    }
}

#[test]
fn an_answer_is_a_json_array_of_the_moved_ids() {
    let moved = EffectReply::Moved(vec![WorkflowId::from("a\"b"), "c".into()]);
    assert_eq!(moved.answer(), Payload::from(r#"["a\"b","c"]"#));
    assert_eq!(EffectReply::Written.answer(), Payload::from("null"));
}

#[test]
fn a_unit_survives_being_written_down() {
    let unit = Unit::by(&fence())
        .step(StepRow::new(0, "s", StepOutput::WakeIn(Duration::from_millis(1500))).child("c"))
        .effect(submit().input("1").timeout(Duration::from_secs(2)).deadline(When::In(Duration::from_secs(3))))
        .outcome(Outcome::Error("{}".into()));
    let text = serde_json::to_string(&unit).expect("written");
    assert_eq!(serde_json::from_str::<Unit>(&text).expect("read"), unit);
}
