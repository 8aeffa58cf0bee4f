//! Group `units`: what no backend may take, named by its field, and nothing of it written.

use mainstay_store::{Effect, Fork, Joining, OnHeld, Outcome, Place, StepOutput, StepRow, Submit, Unit, When};

use crate::desk::{Desk, E1, Q, WORK, ids, ms, step, success};

cases! { "units";
    steps_need_a_fence;
    an_outcome_needs_a_fence;
    a_give_back_needs_a_fence;
    a_position_is_given_once;
    a_position_is_not_negative;
    an_answer_names_an_effect;
    a_give_back_stands_alone;
    its_own_workflow_is_not_named_by_an_effect;
    names_of_a_submit_are_bounded;
    a_class_and_its_instance_have_at_most_255_bytes;
    a_token_has_at_most_40_bytes;
    a_token_of_40_bytes_is_taken;
    payloads_have_no_nul_character;
    an_oversized_payload_is_refused;
    attributes_are_a_json_object;
    attributes_hold_no_escaped_nul;
    attributes_hold_no_number_finer_than_a_json_column_does;
    a_priority_is_not_negative;
    a_timeout_is_at_least_a_millisecond;
    a_key_needs_a_queue;
    a_key_does_not_stand_beside_a_partition;
    a_fork_is_not_its_own_source;
    a_fork_begins_at_a_position;
    ids_of_effects_are_bounded;
    an_invalid_unit_has_written_nothing;
    a_field_is_checked_before_the_fence;
}

async fn steps_need_a_fence(d: &Desk) {
    assert_eq!(d.invalid(Unit::new().effect(d.job("w")).step(step(0, "1"))).await, "fence");
    assert_eq!(d.find("w").await, None);
}

async fn an_outcome_needs_a_fence(d: &Desk) {
    assert_eq!(d.invalid(Unit::new().effect(d.job("w")).outcome(success("end"))).await, "fence");
    assert_eq!(d.find("w").await, None);
}

async fn a_give_back_needs_a_fence(d: &Desk) {
    assert_eq!(d.invalid(Unit::new().effect(Effect::GiveBack { delay: None, begun: true })).await, "fence");
}

async fn a_position_is_given_once(d: &Desk) {
    let fence = d.start("w").await;
    let unit = Unit::by(&fence).step(step(0, "1")).step(step(1, "2")).step(step(0, "3"));
    assert_eq!(d.invalid(unit).await, "steps.position");
    assert_eq!(d.steps("w").await, []);
}

async fn a_position_is_not_negative(d: &Desk) {
    let fence = d.start("w").await;
    assert_eq!(d.invalid(Unit::by(&fence).step(step(-1, "1"))).await, "steps.position");
}

async fn an_answer_names_an_effect(d: &Desk) {
    let fence = d.start("w").await;
    let unit = Unit::by(&fence).effect(d.job("child")).step(StepRow::new(0, "s", StepOutput::Answer(1)));
    assert_eq!(d.invalid(unit).await, "steps.output");
    assert_eq!(d.find("child").await, None);
}

async fn a_give_back_stands_alone(d: &Desk) {
    let fence = d.claimed("w").await;
    let alone = || Unit::by(&fence).effect(Effect::GiveBack { delay: None, begun: true });
    for unit in [alone().step(step(0, "1")), alone().outcome(success("end")), alone().effect(d.job("child"))] {
        assert_eq!(d.invalid(unit).await, "effects.give_back");
    }
    d.settle(&fence, success("end")).await;
}

async fn its_own_workflow_is_not_named_by_an_effect(d: &Desk) {
    d.enqueue("other").await;
    let fence = d.start("w").await;
    let both = || ids(&["other", "w"]);
    let effects = [
        Effect::Cancel { ids: both(), children: false },
        Effect::Resume { ids: both(), queue: None, force: true },
        Effect::Delete { ids: both(), children: true },
        Effect::SetDelay { id: "w".into(), delay: ms(5).into() },
    ];
    for effect in effects {
        assert_eq!(d.invalid(Unit::by(&fence).effect(effect)).await, "effects.ids");
    }
    assert!(!d.status("other").await.is_ended());
    d.settle(&fence, success("end")).await;
}

async fn names_of_a_submit_are_bounded(d: &Desk) {
    let long = "x".repeat(513);
    let queue = |name: &str, key: Option<&str>| Place::Queue {
        name: name.into(),
        key: key.map(mainstay_store::PartitionKey::from),
        delay: None,
    };
    for bad in ["", "a\0b", &long] {
        let keyed = Joining { key: bad.into(), on_held: OnHeld::Join };
        let with = |name: &str, place: Place| Submit::new("w", name, d.token(), place);
        let cases = [
            ("submit.id", d.job(bad)),
            ("submit.name", with(bad, Place::queue(Q))),
            ("submit.queue", with(WORK, queue(bad, None))),
            ("submit.key", with(WORK, queue(Q, Some(bad)))),
            ("submit.executor", with(WORK, Place::Run(bad.into()))),
            ("submit.token", Submit::new("w", WORK, bad, Place::queue(Q))),
            ("submit.class", d.job("w").class(bad)),
            ("submit.config", d.job("w").config(bad)),
            ("submit.codec", d.job("w").codec(bad)),
            ("submit.parent", d.job("w").parent(bad)),
            ("submit.app", d.job("w").app(bad)),
            ("submit.version", d.job("w").version(bad)),
            ("submit.schedule", d.job("w").schedule(bad)),
            ("submit.dedup", d.job("w").dedup(keyed)),
        ];
        for (field, submit) in cases {
            assert_eq!(d.invalid(Unit::new().effect(submit)).await, field);
        }
    }
    assert_eq!(d.find("w").await, None);
}

async fn a_class_and_its_instance_have_at_most_255_bytes(d: &Desk) {
    let (most, over) = ("c".repeat(255), "c".repeat(256));
    for (field, submit) in [("submit.class", d.job("v").class(&over)), ("submit.config", d.job("v").config(&over))] {
        assert_eq!(d.invalid(Unit::new().effect(submit)).await, field);
    }
    assert_eq!(d.find("v").await, None);
    d.put(d.job("w").class(&most).config(&most)).await;
    let row = d.row("w").await;
    assert_eq!((row.class, row.config), (Some(most.as_str().into()), Some(most.as_str().into())));
}

async fn a_token_has_at_most_40_bytes(d: &Desk) {
    let submit = Submit::new("w", WORK, "t".repeat(41), Place::queue(Q));
    assert_eq!(d.invalid(Unit::new().effect(submit)).await, "submit.token");
}

async fn a_token_of_40_bytes_is_taken(d: &Desk) {
    let (first, other) = ("t".repeat(40), format!("{}u", "t".repeat(39)));
    let submit = |token: &str| Submit::new("w", WORK, token, Place::Run(E1.into()));
    let made = d.put(submit(&first)).await;
    assert_eq!(d.put(submit(&first)).await, made);
    let effects = d.done(Unit::new().effect(submit(&other))).await;
    assert!(matches!(effects[..], [mainstay_store::EffectReply::Existing(_)]), "{effects:?}");
}

async fn payloads_have_no_nul_character(d: &Desk) {
    let fence = d.start("w").await;
    let by = || Unit::by(&fence);
    let cases = [
        ("submit.input", Unit::new().effect(d.job("v").input("a\0"))),
        ("submit.attributes", Unit::new().effect(d.job("v").attributes("{}\0"))),
        ("steps.output", by().step(step(0, "a\0"))),
        ("steps.output", by().step(StepRow::new(0, "s", StepOutput::Failure("a\0".into())))),
        ("outcome.success", by().outcome(Outcome::Success("a\0".into()))),
        ("outcome.error", by().outcome(Outcome::Error("a\0".into()))),
        ("outcome.parked", by().outcome(Outcome::Parked("a\0".into()))),
    ];
    for (field, unit) in cases {
        assert_eq!(d.invalid(unit).await, field);
    }
    assert_eq!((d.find("v").await, d.steps("w").await), (None, vec![]));
}

async fn an_oversized_payload_is_refused(d: &Desk) {
    let over = "x".repeat((16 << 20) + 1);
    let units = [Unit::new().effect(d.job("big").input(over.as_str())), Unit::new().effect(d.job("small").input("x"))];
    let answers = d.units(&units).await;
    assert_eq!(crate::desk::field(answers[0].as_ref().expect_err("over the cap")), "submit.input");
    assert!(answers[1].as_ref().is_ok_and(mainstay_store::UnitReply::is_done));
    assert_eq!(d.find("big").await, None);
}

async fn attributes_are_a_json_object(d: &Desk) {
    d.enqueue("w").await;
    for bad in ["", "[1]", "null", "\"text\"", "{", "{} {}"] {
        assert_eq!(d.invalid(Unit::new().effect(d.job("v").attributes(bad))).await, "submit.attributes", "{bad}");
        let effect = Effect::Attributes { id: "w".into(), json: Some(bad.into()) };
        assert_eq!(d.invalid(Unit::new().effect(effect)).await, "attributes.json", "{bad}");
    }
}

async fn attributes_hold_no_escaped_nul(d: &Desk) {
    for bad in ["{\"a\":\"\\u0000\"}", "{\"\\u0000\":1}", "{\"a\":[{\"b\":\"x\\u0000\"}]}"] {
        assert_eq!(d.invalid(Unit::new().effect(d.job("w").attributes(bad))).await, "submit.attributes", "{bad}");
    }
    d.put(d.job("w").attributes("{\"a\":\"\\\\u0000\"}")).await;
}

async fn attributes_hold_no_number_finer_than_a_json_column_does(d: &Desk) {
    let digits = "1".repeat(16_384);
    for bad in ["1e-20000", "-0.5E-16383", "0e-16384", "1e-99999999999999999999", &format!("0.{digits}")] {
        let bad = format!("{{\"a\":[1,{{\"b\":{bad}}}]}}");
        assert_eq!(d.invalid(Unit::new().effect(d.job("w").attributes(bad.as_str()))).await, "submit.attributes");
    }
    for (at, good) in ["1e-16383", "0.5e-16382", "1e308", "1.50E+2", "\"1e-20000\""].into_iter().enumerate() {
        d.put(d.job(&format!("v{at}")).attributes(format!("{{\"a\":{good}}}").as_str())).await;
    }
}

async fn a_priority_is_not_negative(d: &Desk) {
    assert_eq!(d.invalid(Unit::new().effect(d.job("w").priority(-1))).await, "submit.priority");
}

async fn a_timeout_is_at_least_a_millisecond(d: &Desk) {
    for timeout in [ms(0), std::time::Duration::from_micros(999)] {
        assert_eq!(d.invalid(Unit::new().effect(d.job("w").timeout(timeout))).await, "submit.timeout");
    }
}

async fn a_key_needs_a_queue(d: &Desk) {
    let submit = d.direct("w").dedup(Joining { key: "k".into(), on_held: OnHeld::Join });
    assert_eq!(d.invalid(Unit::new().effect(submit)).await, "submit.dedup");
}

async fn a_key_does_not_stand_beside_a_partition(d: &Desk) {
    let place = Place::Queue { name: Q.into(), key: Some("p".into()), delay: None };
    let submit = Submit::new("w", WORK, d.token(), place).dedup(Joining { key: "k".into(), on_held: OnHeld::Join });
    assert_eq!(d.invalid(Unit::new().effect(submit)).await, "submit.dedup");
}

async fn a_fork_is_not_its_own_source(d: &Desk) {
    d.enqueue("w").await;
    assert_eq!(d.invalid(Unit::new().effect(Fork::new("w", "w", 0))).await, "fork.id");
    assert!(!d.row("w").await.was_forked);
}

async fn a_fork_begins_at_a_position(d: &Desk) {
    d.enqueue("w").await;
    assert_eq!(d.invalid(Unit::new().effect(Fork::new("w", "copy", -1))).await, "fork.below");
}

async fn ids_of_effects_are_bounded(d: &Desk) {
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        let cases = [
            ("effects.ids", Effect::Cancel { ids: ids(&[bad]), children: false }),
            ("effects.ids", Effect::Resume { ids: ids(&[bad]), queue: None, force: false }),
            ("resume.queue", Effect::Resume { ids: ids(&["w"]), queue: Some(bad.into()), force: false }),
            ("effects.ids", Effect::Delete { ids: ids(&["w", bad]), children: false }),
            ("effects.ids", Effect::SetDelay { id: bad.into(), delay: When::In(ms(5)) }),
            ("attributes.id", Effect::Attributes { id: bad.into(), json: None }),
            ("fork.source", Fork::new(bad, "copy", 0).into()),
            ("fork.id", Fork::new("w", bad, 0).into()),
            ("fork.queue", Fork::new("w", "copy", 0).queue(bad).into()),
            ("fork.key", Fork::new("w", "copy", 0).key(bad).into()),
            ("fork.version", Fork::new("w", "copy", 0).version(bad).into()),
        ];
        for (field, effect) in cases {
            assert_eq!(d.invalid(Unit::new().effect(effect)).await, field);
        }
    }
}

async fn an_invalid_unit_has_written_nothing(d: &Desk) {
    let fence = d.start("w").await;
    let before = d.row("w").await;
    let unit = Unit::by(&fence).effect(d.job("child")).step(step(0, "1")).outcome(Outcome::Success("\0".into()));
    d.invalid(unit).await;
    assert_eq!((d.find("child").await, d.steps("w").await, d.row("w").await), (None, vec![], before));
}

async fn a_field_is_checked_before_the_fence(d: &Desk) {
    let fence = d.claimed("w").await;
    d.cancel("w").await;
    assert_eq!(d.invalid(Unit::by(&fence).step(step(-1, "1"))).await, "steps.position");
}
