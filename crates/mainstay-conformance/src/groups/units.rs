//! Group `units`: what a batch and a unit promise whatever is in them.

use mainstay_store::{Effect, EffectReply, Fork, Outcome, Place, Refusal, Standing, Status, Submit, Unit, UnitReply};

use crate::desk::{Desk, WORK, field, ids, step, success};

cases! { "units";
    an_empty_batch_is_answered;
    an_empty_unit_is_done;
    the_reply_carries_the_clock;
    answers_come_in_the_order_of_the_batch;
    a_refused_unit_leaves_the_others_done;
    an_invalid_unit_leaves_the_others_done;
    a_superseded_unit_leaves_the_others_done;
    an_unsupported_unit_leaves_the_others_done;
    a_refused_unit_has_made_no_workflow;
    a_refused_unit_has_cancelled_nothing;
    a_refused_unit_has_deleted_nothing;
    a_refused_unit_has_recorded_no_step;
    a_refused_unit_has_not_ended_its_workflow;
    a_refused_unit_has_changed_no_attributes;
    a_superseded_unit_has_made_no_workflow;
    the_first_effect_that_loses_is_named;
    an_effect_sees_those_before_it;
    a_submit_and_its_repeat_in_one_unit_make_one_workflow;
    two_starts_of_one_id_in_a_batch_make_one_workflow;
    units_of_one_fence_keep_their_order;
    what_follows_the_outcome_of_its_fence_is_superseded;
    what_follows_the_give_back_of_its_fence_is_superseded;
    units_of_several_fences_commit_together;
    a_large_batch_is_answered_whole;
    a_batch_may_start_and_enqueue_at_once;
    a_step_and_the_outcome_commit_together;
    a_step_and_its_child_commit_together;
    a_child_that_runs_at_once_comes_with_its_fence;
    a_body_may_set_its_own_attributes;
    a_body_may_move_other_workflows;
    its_own_workflow_is_left_out_as_a_descendant;
    a_repeated_unit_of_a_client_changes_nothing;
}

fn job_of(d: &Desk, id: &str, name: &str) -> Submit {
    Submit::new(id, name, d.token(), Place::queue("q"))
}

/// A submit that loses to the workflow `taken`.
async fn loser(d: &Desk) -> Submit {
    if d.find("taken").await.is_none() {
        d.enqueue("taken").await;
    }
    job_of(d, "taken", "another function")
}

fn cancel(id: &str) -> Effect {
    Effect::Cancel { ids: ids(&[id]), children: false }
}

async fn an_empty_batch_is_answered(d: &Desk) {
    let committed = d.store().commit(&[]).await.expect("answered");
    assert!(committed.units.is_empty());
}

async fn an_empty_unit_is_done(d: &Desk) {
    let fence = d.claimed("w").await;
    for unit in [Unit::new(), Unit::by(&fence)] {
        assert_eq!(d.unit(unit).await, UnitReply::done());
    }
}

async fn the_reply_carries_the_clock(d: &Desk) {
    d.pass(1_234);
    let committed = d.store().commit(&[Unit::new().effect(d.job("w"))]).await.expect("answered");
    assert_eq!((committed.now, d.row("w").await.created_at), (d.now(), d.now()));
}

async fn answers_come_in_the_order_of_the_batch(d: &Desk) {
    let lost = loser(d).await;
    let fence = d.start("own").await;
    d.record(&fence, 0, "0").await;
    let void = mainstay_store::Fence::issue("own".into(), "void");
    let units = [
        Unit::new().effect(lost),
        Unit::by(&fence).step(step(0, "again")),
        Unit::new().effect(d.job("a")),
        Unit::by(&void).step(step(1, "void")),
        Unit::new().step(step(0, "no fence")),
        Unit::by(&fence).step(step(1, "1")),
    ];
    let answers = d.units(&units).await;
    assert_eq!(answers.len(), units.len());
    assert!(matches!(answers[0], Ok(UnitReply::Refused { effect: 0, .. })), "{:?}", answers[0]);
    assert!(matches!(answers[1], Ok(UnitReply::Recorded { .. })), "{:?}", answers[1]);
    assert!(matches!(answers[2], Ok(UnitReply::Done { .. })), "{:?}", answers[2]);
    assert!(matches!(answers[3], Ok(UnitReply::Superseded { .. })), "{:?}", answers[3]);
    assert!(answers[4].is_err(), "{:?}", answers[4]);
    assert!(matches!(answers[5], Ok(UnitReply::Done { .. })), "{:?}", answers[5]);
}

async fn a_refused_unit_leaves_the_others_done(d: &Desk) {
    let lost = loser(d).await;
    let units = [
        Unit::new().effect(d.job("a")),
        Unit::new().effect(d.job("lost")).effect(lost),
        Unit::new().effect(d.job("b")),
    ];
    let answers = d.units(&units).await;
    assert!(answers[0].as_ref().is_ok_and(UnitReply::is_done) && answers[2].as_ref().is_ok_and(UnitReply::is_done));
    let found = (d.find("a").await.is_some(), d.find("lost").await.is_some(), d.find("b").await.is_some());
    assert_eq!(found, (true, false, true));
}

async fn an_invalid_unit_leaves_the_others_done(d: &Desk) {
    let units = [
        Unit::new().effect(d.job("a")),
        Unit::new().effect(d.job("lost")).effect(d.job("")),
        Unit::new().effect(d.job("b")),
    ];
    let answers = d.units(&units).await;
    assert_eq!(field(answers[1].as_ref().expect_err("an empty id")), "submit.id");
    let found = (d.find("a").await.is_some(), d.find("lost").await.is_some(), d.find("b").await.is_some());
    assert_eq!(found, (true, false, true));
}

async fn a_superseded_unit_leaves_the_others_done(d: &Desk) {
    let fence = d.claimed("w").await;
    d.cancel("w").await;
    let units = [
        Unit::new().effect(d.job("a")),
        Unit::by(&fence).step(step(0, "late")).effect(d.job("lost")),
        Unit::new().effect(d.job("b")),
    ];
    let answers = d.units(&units).await;
    assert!(matches!(answers[1], Ok(UnitReply::Superseded { by: Standing::Ended(Outcome::Cancelled) })));
    let found = (d.find("a").await.is_some(), d.find("lost").await.is_some(), d.find("b").await.is_some());
    assert_eq!(found, (true, false, true));
}

async fn an_unsupported_unit_leaves_the_others_done(d: &Desk) {
    let Some(unknown) = super::capabilities::unsupported(d).into_iter().next() else { return };
    let fence = d.claimed("w").await;
    let units = [
        Unit::new().effect(d.job("a")),
        Unit::by(&fence).effect(d.job("lost")).effect(unknown),
        Unit::new().effect(d.job("b")),
    ];
    let answers = d.units(&units).await;
    assert!(matches!(answers[1], Ok(UnitReply::Refused { effect: 1, why: Refusal::Unsupported })), "{:?}", answers[1]);
    let found = (d.find("a").await.is_some(), d.find("lost").await.is_some(), d.find("b").await.is_some());
    assert_eq!(found, (true, false, true));
}

async fn a_refused_unit_has_made_no_workflow(d: &Desk) {
    let lost = loser(d).await;
    let unit = Unit::new().effect(d.job("a")).effect(d.direct("b")).effect(lost);
    assert_eq!(d.refused(unit).await.0, 2);
    assert_eq!((d.find("a").await, d.find("b").await), (None, None));
}

async fn a_refused_unit_has_cancelled_nothing(d: &Desk) {
    let lost = loser(d).await;
    d.enqueue("w").await;
    let before = d.row("w").await;
    d.pass(10);
    d.refused(Unit::new().effect(cancel("w")).effect(lost)).await;
    assert_eq!(d.row("w").await, before);
}

async fn a_refused_unit_has_deleted_nothing(d: &Desk) {
    let lost = loser(d).await;
    let fence = d.put(d.direct("w").input("[1]")).await.fence.expect("a fence");
    d.record(&fence, 0, "kept").await;
    let before = d.row("w").await;
    d.refused(Unit::new().effect(Effect::Delete { ids: ids(&["w"]), children: true }).effect(lost)).await;
    assert_eq!((d.row("w").await, d.values("w").await.len()), (before, 1));
    assert_eq!(d.store().workflow_input(&"w".into()).await.expect("read"), Some("[1]".into()));
    d.record(&fence, 1, "goes on").await;
}

async fn a_refused_unit_has_recorded_no_step(d: &Desk) {
    let lost = loser(d).await;
    let fence = d.start("w").await;
    let unit = Unit::by(&fence).step(step(0, "lost")).effect(lost);
    d.refused(unit).await;
    assert_eq!(d.steps("w").await, []);
    d.record(&fence, 0, "second try").await;
}

async fn a_refused_unit_has_not_ended_its_workflow(d: &Desk) {
    let lost = loser(d).await;
    let fence = d.start("w").await;
    d.refused(Unit::by(&fence).effect(lost).outcome(success("lost"))).await;
    assert_eq!(d.standing("w").await, Standing::Open(Status::Pending));
    d.settle(&fence, success("second try")).await;
}

async fn a_refused_unit_has_changed_no_attributes(d: &Desk) {
    d.put(d.job("w").attributes("{\"a\":1}")).await;
    let set = Effect::Attributes { id: "w".into(), json: Some("{\"a\":2}".into()) };
    let unknown = Effect::Attributes { id: "nobody".into(), json: None };
    assert_eq!(d.refused(Unit::new().effect(set).effect(unknown)).await, (1, Refusal::Missing("nobody".into())));
    assert_eq!(d.row("w").await.attributes, Some("{\"a\":1}".into()));
}

async fn a_superseded_unit_has_made_no_workflow(d: &Desk) {
    let fence = d.claimed("w").await;
    d.give_back(&fence).await;
    d.superseded(Unit::by(&fence).effect(d.job("child")).step(step(0, "late"))).await;
    assert_eq!((d.find("child").await, d.steps("w").await), (None, vec![]));
}

async fn the_first_effect_that_loses_is_named(d: &Desk) {
    let lost = loser(d).await;
    let second = job_of(d, "taken", "a third function");
    let unit = Unit::new().effect(d.job("a")).effect(cancel("a")).effect(lost).effect(second);
    let (effect, why) = d.refused(unit).await;
    let expected = Refusal::Conflict { id: "taken".into(), name: WORK.into(), class: None, config: None };
    assert_eq!((effect, why), (2, expected));
}

async fn an_effect_sees_those_before_it(d: &Desk) {
    let attributes = Effect::Attributes { id: "a".into(), json: Some("{}".into()) };
    let unit = Unit::new().effect(d.job("a")).effect(attributes).effect(cancel("a")).effect(cancel("a"));
    let effects = d.done(unit).await;
    assert!(matches!(effects[0], EffectReply::Created(_)), "{effects:?}");
    let rest = [EffectReply::Written, EffectReply::Moved(ids(&["a"])), EffectReply::Moved(vec![])];
    assert_eq!(effects[1..], rest);
    assert_eq!(d.status("a").await, Status::Cancelled);
}

async fn a_submit_and_its_repeat_in_one_unit_make_one_workflow(d: &Desk) {
    let submit = d.direct("w");
    let effects = d.done(Unit::new().effect(submit.clone()).effect(submit)).await;
    assert!(matches!(effects[0], EffectReply::Created(_)), "{effects:?}");
    assert_eq!(effects[0], effects[1]);
    assert_eq!(d.row("w").await.attempts, 1);
}

async fn two_starts_of_one_id_in_a_batch_make_one_workflow(d: &Desk) {
    let units = [Unit::new().effect(d.direct("w")), Unit::new().effect(d.direct("w"))];
    let answers: Vec<_> = d.units(&units).await.into_iter().map(|answer| answer.expect("judged")).collect();
    let created = |reply: &&UnitReply| matches!(reply, UnitReply::Done { effects } if matches!(effects[0], EffectReply::Created(_)));
    let existing = UnitReply::Done { effects: vec![EffectReply::Existing(Standing::Open(Status::Pending))] };
    assert_eq!(answers.iter().filter(created).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|reply| **reply == existing).count(), 1, "{answers:?}");
}

async fn units_of_one_fence_keep_their_order(d: &Desk) {
    let fence = d.start("w").await;
    let mut units: Vec<Unit> = (0..20).map(|at| Unit::by(&fence).step(step(at, &at.to_string()))).collect();
    units.insert(10, Unit::by(&fence).step(step(5, "again")));
    units.push(Unit::by(&fence).outcome(success("end")));
    let answers = d.units(&units).await;
    for (at, answer) in answers.iter().enumerate() {
        let expected = at != 10;
        assert_eq!(answer.as_ref().is_ok_and(UnitReply::is_done), expected, "{at}: {answer:?}");
    }
    assert_eq!((d.values("w").await.len(), d.standing("w").await), (20, Standing::Ended(success("end"))));
}

async fn what_follows_the_outcome_of_its_fence_is_superseded(d: &Desk) {
    let fence = d.start("w").await;
    let units = [
        Unit::by(&fence).step(step(0, "before")),
        Unit::by(&fence).outcome(success("end")),
        Unit::by(&fence).step(step(1, "after")).effect(d.job("child")),
        Unit::by(&fence).outcome(success("other end")),
    ];
    let answers: Vec<_> = d.units(&units).await.into_iter().map(|answer| answer.expect("judged")).collect();
    let over = UnitReply::Superseded { by: Standing::Ended(success("end")) };
    assert_eq!(answers, [UnitReply::done(), UnitReply::done(), over.clone(), over]);
    assert_eq!((d.values("w").await.len(), d.find("child").await), (1, None));
}

async fn what_follows_the_give_back_of_its_fence_is_superseded(d: &Desk) {
    let fence = d.claimed("w").await;
    let units = [
        Unit::by(&fence).effect(Effect::GiveBack { delay: None, begun: true }),
        Unit::by(&fence).step(step(0, "after")),
    ];
    let answers: Vec<_> = d.units(&units).await.into_iter().map(|answer| answer.expect("judged")).collect();
    assert_eq!(answers[0], UnitReply::Done { effects: vec![EffectReply::Written] });
    assert_eq!(answers[1], UnitReply::Superseded { by: Standing::Open(Status::Enqueued) });
    assert_eq!(d.steps("w").await, []);
}

async fn units_of_several_fences_commit_together(d: &Desk) {
    let mut fences = Vec::new();
    for id in ["c", "a", "b"] {
        fences.push(d.start(id).await);
    }
    let mut units = Vec::new();
    for at in 0..3 {
        units.extend(fences.iter().map(|fence| Unit::by(fence).step(step(at, fence.workflow().as_str()))));
    }
    units.extend(fences.iter().map(|fence| Unit::by(fence).outcome(success(fence.workflow().as_str()))));
    assert!(d.units(&units).await.iter().all(|answer| answer.as_ref().is_ok_and(UnitReply::is_done)));
    for id in ["a", "b", "c"] {
        let expected: Vec<_> = (0..3).map(|at| (at, id.to_owned())).collect();
        assert_eq!((d.values(id).await, d.standing(id).await), (expected, Standing::Ended(success(id))));
    }
}

async fn a_large_batch_is_answered_whole(d: &Desk) {
    let units: Vec<Unit> = (0..600).map(|n| Unit::new().effect(d.job(&format!("w{n:03}")))).collect();
    let answers = d.units(&units).await;
    assert_eq!(answers.iter().filter(|answer| answer.as_ref().is_ok_and(UnitReply::is_done)).count(), 600);
    assert_eq!(d.take_ids(d.claim().budget(1_000)).await.len(), 600);
}

async fn a_batch_may_start_and_enqueue_at_once(d: &Desk) {
    let effects = d.done(Unit::new().effect(d.direct("now")).effect(d.job("soon")).effect(d.later("later", 50))).await;
    let fences: Vec<bool> = effects
        .iter()
        .map(|effect| match effect {
            EffectReply::Created(created) => created.fence.is_some(),
            other => panic!("not created: {other:?}"),
        })
        .collect();
    assert_eq!(fences, [true, false, false]);
    let statuses = (d.status("now").await, d.status("soon").await, d.status("later").await);
    assert_eq!(statuses, (Status::Pending, Status::Enqueued, Status::Delayed));
}

async fn a_step_and_the_outcome_commit_together(d: &Desk) {
    let fence = d.start("w").await;
    d.done(Unit::by(&fence).step(step(0, "last")).outcome(success("end"))).await;
    assert_eq!(d.values("w").await, [(0, "last".to_owned())]);
    assert_eq!(d.standing("w").await, Standing::Ended(success("end")));
}

async fn a_step_and_its_child_commit_together(d: &Desk) {
    let fence = d.start("w").await;
    let row = mainstay_store::StepRow::new(0, "start", mainstay_store::StepOutput::Nothing).child("child");
    let unit = Unit::by(&fence).effect(d.job("child").parent("w")).step(row);
    let effects = d.done(unit.clone()).await;
    assert!(matches!(effects[..], [EffectReply::Created(_)]), "{effects:?}");
    assert_eq!(
        (d.row("child").await.parent, d.steps("w").await[0].child.clone()),
        (Some("w".into()), Some("child".into()))
    );
    assert_eq!(d.recorded(unit).await, d.steps("w").await);
}

async fn a_child_that_runs_at_once_comes_with_its_fence(d: &Desk) {
    let fence = d.start("w").await;
    let effects = d.done(Unit::by(&fence).effect(d.direct("child").parent("w"))).await;
    let [EffectReply::Created(created)] = &effects[..] else { panic!("not created: {effects:?}") };
    let child = created.fence.clone().expect("a fence");
    assert_eq!(child.workflow().as_str(), "child");
    d.settle(&child, success("child")).await;
    d.settle(&fence, success("parent")).await;
}

async fn a_body_may_set_its_own_attributes(d: &Desk) {
    let fence = d.start("w").await;
    let set = Effect::Attributes { id: "w".into(), json: Some("{\"a\":1}".into()) };
    assert_eq!(d.done(Unit::by(&fence).effect(set)).await, [EffectReply::Written]);
    assert_eq!(d.row("w").await.attributes, Some("{\"a\":1}".into()));
    d.settle(&fence, success("end")).await;
}

async fn a_body_may_move_other_workflows(d: &Desk) {
    let fence = d.start("w").await;
    for id in ["cancelled", "resumed", "deleted", "source"] {
        d.enqueue(id).await;
    }
    let resume = Effect::Resume { ids: ids(&["resumed"]), queue: None, force: false };
    let delete = Effect::Delete { ids: ids(&["deleted"]), children: false };
    let unit = Unit::by(&fence).effect(cancel("cancelled")).effect(resume).effect(delete);
    let effects = d.done(unit.effect(Fork::new("source", "copy", 0))).await;
    let moved = |id: &str| EffectReply::Moved(ids(&[id]));
    assert_eq!(effects, [moved("cancelled"), moved("resumed"), moved("deleted"), EffectReply::Written]);
    d.record(&fence, 0, "goes on").await;
}

async fn its_own_workflow_is_left_out_as_a_descendant(d: &Desk) {
    d.enqueue("root").await;
    let fence = d.put(d.direct("own").parent("root")).await.fence.expect("a fence");
    d.put(d.job("below").parent("own")).await;
    let effect = Effect::Cancel { ids: ids(&["root"]), children: true };
    assert_eq!(d.done(Unit::by(&fence).effect(effect)).await, [EffectReply::Moved(ids(&["below", "root"]))]);
    let effect = Effect::Delete { ids: ids(&["root"]), children: true };
    assert_eq!(d.done(Unit::by(&fence).effect(effect)).await, [EffectReply::Moved(ids(&["below", "root"]))]);
    d.settle(&fence, success("end")).await;
}

async fn a_repeated_unit_of_a_client_changes_nothing(d: &Desk) {
    d.enqueue("source").await;
    let attributes = Effect::Attributes { id: "w".into(), json: Some("{}".into()) };
    let unit = Unit::new().effect(d.job("w")).effect(Fork::new("source", "copy", 0)).effect(attributes);
    let first = d.done(unit.clone()).await;
    let before = (d.row("w").await, d.row("copy").await, d.row("source").await);
    assert_eq!(d.done(unit).await, first);
    assert_eq!((d.row("w").await, d.row("copy").await, d.row("source").await), before);
}
