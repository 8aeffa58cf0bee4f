//! Group `units`: checkpoints as a unit writes them.

use mainstay_store::{Effect, RecordedStep, Standing, StepOutput, StepResult, StepRow, Unit};

use crate::desk::{Desk, E1, ids, ms, step, success};

cases! { "units";
    steps_are_stamped_by_the_store;
    a_step_keeps_its_name_child_and_codec;
    a_value_a_failure_and_nothing_are_kept_apart;
    a_sleep_stores_the_time_of_its_waking;
    a_future_waking_does_not_move_the_clock;
    an_answer_stores_the_ids_that_a_cancel_moved;
    an_answer_stores_the_ids_that_a_delete_moved;
    an_answer_of_what_moves_nothing_is_null;
    a_recorded_position_is_answered_with_what_is_stored;
    a_recorded_position_holds_whatever_its_repeat_says;
    one_recorded_position_keeps_the_whole_unit_back;
    recorded_rows_come_in_order_of_position;
    a_recorded_position_keeps_the_effects_back;
    a_recorded_position_keeps_the_outcome_back;
    steps_of_an_earlier_execution_are_recorded;
    a_void_fence_is_told_before_a_recorded_position;
    a_repeated_step_is_written_once;
    positions_may_have_gaps;
}

async fn steps_are_stamped_by_the_store(d: &Desk) {
    let fence = d.start("w").await;
    d.pass(500);
    d.done(Unit::by(&fence).step(step(0, "1").took(ms(120)))).await;
    let stored = d.steps("w").await.remove(0);
    assert_eq!((stored.completed_at, stored.started_at), (Some(d.now()), Some(d.now() - ms(120))));
}

async fn a_step_keeps_its_name_child_and_codec(d: &Desk) {
    let fence = d.start("w").await;
    let row = StepRow::new(3, "charge", StepOutput::Value("1".into())).child("other").codec("json");
    d.done(Unit::by(&fence).step(row)).await;
    let expected = RecordedStep::new(3, "charge", StepResult::Value("1".into()))
        .child("other")
        .codec("json")
        .started_at(d.now())
        .completed_at(d.now());
    assert_eq!(d.steps("w").await, [expected]);
}

async fn a_value_a_failure_and_nothing_are_kept_apart(d: &Desk) {
    let fence = d.start("w").await;
    let outputs = [
        StepOutput::Value("null".into()),
        StepOutput::Failure("null".into()),
        StepOutput::Nothing,
        StepOutput::Value("".into()),
    ];
    let mut unit = Unit::by(&fence);
    for (at, output) in (0_i32..).zip(outputs) {
        unit = unit.step(StepRow::new(at, "s", output));
    }
    d.done(unit).await;
    let results: Vec<StepResult> = d.steps("w").await.into_iter().map(|step| step.result).collect();
    let (value, failure) = (StepResult::Value("null".into()), StepResult::Failure("null".into()));
    assert_eq!(results, [value, failure, StepResult::Nothing, StepResult::Value("".into())]);
}

async fn a_sleep_stores_the_time_of_its_waking(d: &Desk) {
    let fence = d.start("w").await;
    d.pass(40);
    d.done(Unit::by(&fence).step(StepRow::new(0, "sleep", StepOutput::WakeIn(ms(60_000))))).await;
    let stored = d.steps("w").await.remove(0);
    let wakes = d.now() + ms(60_000);
    assert_eq!(stored.result, StepResult::Value(wakes.as_millis().to_string().into()));
    assert_eq!((stored.started_at, stored.completed_at), (Some(d.now()), Some(wakes)));
}

async fn a_future_waking_does_not_move_the_clock(d: &Desk) {
    let fence = d.start("w").await;
    d.done(Unit::by(&fence).step(StepRow::new(0, "sleep", StepOutput::WakeIn(ms(60_000))))).await;
    d.put(d.later("delayed", 90_000)).await;
    d.put(d.job("limited").deadline(ms(90_000))).await;
    assert_eq!(d.enqueue("next").await.created_at, d.now());
}

async fn an_answer_stores_the_ids_that_a_cancel_moved(d: &Desk) {
    let fence = d.start("w").await;
    d.enqueue("b").await;
    d.enqueue("a\"").await;
    let effect = Effect::Cancel { ids: ids(&["b", "nobody", "a\""]), children: false };
    d.done(Unit::by(&fence).effect(effect).step(StepRow::new(0, "cancel", StepOutput::Answer(0)))).await;
    assert_eq!(d.values("w").await, [(0, r#"["a\"","b"]"#.to_owned())]);
}

async fn an_answer_stores_the_ids_that_a_delete_moved(d: &Desk) {
    let fence = d.start("w").await;
    d.enqueue("a").await;
    let cancel = Effect::Cancel { ids: ids(&["nobody"]), children: false };
    let delete = Effect::Delete { ids: ids(&["a"]), children: false };
    let unit = Unit::by(&fence).effect(cancel).effect(delete);
    let unit = unit.step(StepRow::new(0, "s", StepOutput::Answer(1))).step(StepRow::new(1, "s", StepOutput::Answer(0)));
    d.done(unit).await;
    assert_eq!(d.values("w").await, [(0, "[\"a\"]".to_owned()), (1, "[]".to_owned())]);
}

async fn an_answer_of_what_moves_nothing_is_null(d: &Desk) {
    let fence = d.start("w").await;
    let unit = Unit::by(&fence).effect(d.job("child"));
    d.done(unit.step(StepRow::new(0, "s", StepOutput::Answer(0)))).await;
    assert_eq!(d.values("w").await, [(0, "null".to_owned())]);
}

async fn a_recorded_position_is_answered_with_what_is_stored(d: &Desk) {
    let fence = d.start("w").await;
    let unit = Unit::by(&fence).step(step(0, "first").took(ms(7))).step(step(1, "second").child("c").codec("json"));
    d.done(unit.clone()).await;
    let stored = d.steps("w").await;
    d.pass(1_000);
    assert_eq!(d.recorded(unit).await, stored);
}

async fn a_recorded_position_holds_whatever_its_repeat_says(d: &Desk) {
    let fence = d.start("w").await;
    d.record(&fence, 0, "first").await;
    let stored = d.steps("w").await;
    let repeats = [StepOutput::Value("other".into()), StepOutput::Failure("other".into()), StepOutput::Nothing];
    for output in repeats {
        assert_eq!(d.recorded(Unit::by(&fence).step(StepRow::new(0, "other", output))).await, stored);
    }
    assert_eq!(d.steps("w").await, stored);
}

async fn one_recorded_position_keeps_the_whole_unit_back(d: &Desk) {
    let fence = d.start("w").await;
    d.record(&fence, 1, "first").await;
    let unit = Unit::by(&fence).step(step(0, "new")).step(step(1, "again")).step(step(2, "new"));
    let rows = d.recorded(unit).await;
    assert_eq!(rows, d.steps("w").await);
    assert_eq!(d.values("w").await, [(1, "first".to_owned())]);
}

async fn recorded_rows_come_in_order_of_position(d: &Desk) {
    let fence = d.start("w").await;
    for at in [4, 0, 2] {
        d.record(&fence, at, "first").await;
    }
    let unit = Unit::by(&fence).step(step(4, "")).step(step(3, "")).step(step(0, ""));
    let positions: Vec<i32> = d.recorded(unit).await.iter().map(|row| row.position.0).collect();
    assert_eq!(positions, [0, 4]);
}

async fn a_recorded_position_keeps_the_effects_back(d: &Desk) {
    let fence = d.start("w").await;
    d.enqueue("other").await;
    d.record(&fence, 0, "first").await;
    let cancel = Effect::Cancel { ids: ids(&["other"]), children: false };
    d.recorded(Unit::by(&fence).effect(d.job("child")).effect(cancel).step(step(0, "again"))).await;
    assert_eq!(d.find("child").await, None);
    assert!(!d.status("other").await.is_ended());
}

async fn a_recorded_position_keeps_the_outcome_back(d: &Desk) {
    let fence = d.start("w").await;
    d.record(&fence, 0, "first").await;
    d.recorded(Unit::by(&fence).step(step(0, "again")).outcome(success("early"))).await;
    d.record(&fence, 1, "goes on").await;
    d.settle(&fence, success("end")).await;
}

async fn steps_of_an_earlier_execution_are_recorded(d: &Desk) {
    let first = d.claimed("w").await;
    d.record(&first, 0, "first").await;
    d.give_back(&first).await;
    let second = d.take_one().await;
    assert_eq!(second.steps.here(), d.steps("w").await);
    let rows = d.recorded(Unit::by(&second.fence).step(step(0, "second"))).await;
    assert_eq!(rows, second.steps.here());
    d.record(&second.fence, 1, "second").await;
}

async fn a_void_fence_is_told_before_a_recorded_position(d: &Desk) {
    let fence = d.start("w").await;
    let unit = Unit::by(&fence).step(step(0, "first")).outcome(success("end"));
    d.done(unit.clone()).await;
    assert_eq!(d.superseded(unit).await, Standing::Ended(success("end")));
}

async fn a_repeated_step_is_written_once(d: &Desk) {
    let fence = d.start("w").await;
    let unit = Unit::by(&fence).step(step(0, "1")).effect(d.direct("child").parent("w"));
    d.done(unit.clone()).await;
    let before = (d.row("child").await, d.steps("w").await);
    for _ in 0..3 {
        d.pass(10);
        d.recorded(unit.clone()).await;
    }
    assert_eq!((d.row("child").await, d.steps("w").await), before);
    let took = d.row("w").await.executor;
    assert_eq!(took, Some(E1.into()));
}

async fn positions_may_have_gaps(d: &Desk) {
    let fence = d.start("w").await;
    for at in [7, i32::MAX, 0] {
        d.record(&fence, at, "v").await;
    }
    let positions: Vec<i32> = d.values("w").await.into_iter().map(|(at, _)| at).collect();
    assert_eq!(positions, [0, 7, i32::MAX]);
}
