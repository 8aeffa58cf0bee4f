//! Group `workflows`: cancel, resume, delete, and the small changes of a row.

use mainstay_store::{Effect, EffectReply, QueueName, Refusal, Standing, Status, Unit, UnitReply, When, wire};

use crate::desk::{Desk, Q, ids, ms, success};

cases! { "workflows";
    a_cancel_ends_what_has_not_ended;
    a_cancel_leaves_ended_rows_alone;
    a_cancel_leaves_out_unknown_ids;
    a_cancel_answers_in_order_of_id_and_once;
    a_cancel_without_children_leaves_them;
    a_cancel_with_children_reaches_all_descendants;
    descendants_are_reached_through_an_ended_child;
    descendants_are_reached_through_an_unknown_parent;
    a_circle_of_parents_has_an_end;
    a_repeated_cancel_moves_nothing;
    a_delete_removes_a_row_in_any_state;
    a_delete_leaves_out_unknown_ids;
    a_delete_answers_in_order_of_id_and_once;
    a_delete_with_children_reaches_all_descendants;
    a_delete_without_children_leaves_them;
    a_deleted_id_begins_anew;
    a_delete_of_many_removes_all;
    a_resume_enqueues_what_has_no_value_or_error;
    a_resume_begins_attempts_anew;
    a_resume_goes_to_the_internal_queue;
    a_resume_goes_to_the_given_queue;
    a_resume_leaves_successes_and_errors;
    a_resume_of_an_unknown_id_is_missing;
    a_resume_of_a_pending_row_is_refused;
    a_forced_resume_takes_a_pending_row;
    a_resume_that_is_refused_has_resumed_none;
    a_resume_answers_in_order_of_id_and_once;
    a_resume_keeps_what_it_does_not_name;
    a_resume_of_an_enqueued_row_moves_it;
    a_resumed_row_goes_on_from_its_steps;
    a_given_back_row_is_enqueued_on_its_queue;
    a_given_back_start_goes_to_the_internal_queue;
    a_row_given_back_for_later_is_delayed;
    a_given_back_row_keeps_what_it_does_not_name;
    a_row_given_back_before_its_body_began_has_its_attempt_again;
    a_row_given_back_unbegun_for_later_keeps_every_other_field;
    a_start_given_back_before_its_body_began_has_none;
    earlier_attempts_stay_when_one_is_taken_off;
    a_delayed_row_takes_another_delay;
    only_a_delayed_row_takes_a_delay;
    attributes_are_replaced_and_cleared;
    attributes_of_an_unknown_id_are_missing;
    an_outcome_is_written_with_its_time;
    a_parked_outcome_loses_queue_and_start;
    a_cancelled_outcome_is_a_cancellation;
}

fn cancel(texts: &[&str], children: bool) -> Effect {
    Effect::Cancel { ids: ids(texts), children }
}

fn delete(texts: &[&str], children: bool) -> Effect {
    Effect::Delete { ids: ids(texts), children }
}

fn resume(texts: &[&str], queue: Option<&str>) -> Effect {
    Effect::Resume { ids: ids(texts), queue: queue.map(QueueName::from), force: false }
}

fn internal() -> Option<QueueName> {
    Some(wire::INTERNAL_QUEUE.into())
}

async fn a_cancel_ends_what_has_not_ended(d: &Desk) {
    for status in [Status::Delayed, Status::Enqueued, Status::Pending, Status::Parked] {
        let id = status.as_str();
        d.make(id, status).await;
        d.pass(100);
        assert_eq!(d.cancel(id).await, [id]);
        let row = d.row(id).await;
        assert_eq!((row.status, row.completed_at, row.updated_at), (Status::Cancelled, Some(d.now()), d.now()), "{id}");
        assert_eq!((row.queue, row.dedup, row.started_at), (None, None, None), "{id}");
        assert_eq!(d.standing(id).await, Standing::Ended(mainstay_store::Outcome::Cancelled));
    }
}

async fn a_cancel_leaves_ended_rows_alone(d: &Desk) {
    for status in [Status::Success, Status::Error, Status::Cancelled] {
        let id = status.as_str();
        d.make(id, status).await;
        let before = (d.row(id).await, d.standing(id).await);
        d.pass(100);
        assert_eq!(d.cancel(id).await, [""; 0]);
        assert_eq!((d.row(id).await, d.standing(id).await), before);
    }
}

async fn a_cancel_leaves_out_unknown_ids(d: &Desk) {
    d.enqueue("w").await;
    assert_eq!(d.moved(cancel(&["nobody", "w", "no one"], false)).await, ["w"]);
    assert_eq!(d.moved(cancel(&["nobody"], true)).await, [""; 0]);
}

async fn a_cancel_answers_in_order_of_id_and_once(d: &Desk) {
    for id in ["b", "a", "C", "é"] {
        d.enqueue(id).await;
    }
    assert_eq!(d.moved(cancel(&["é", "b", "a", "b", "C"], false)).await, ["C", "a", "b", "é"]);
}

/// A tree `root` → `a` → `aa` → `aaa`, `root` → `b`, and `other` beside it.
async fn tree(d: &Desk) {
    for (id, parent) in [("root", "x"), ("a", "root"), ("aa", "a"), ("aaa", "aa"), ("b", "root"), ("other", "x")] {
        d.put(d.job(id).parent(parent)).await;
    }
}

async fn a_cancel_without_children_leaves_them(d: &Desk) {
    tree(d).await;
    assert_eq!(d.moved(cancel(&["root"], false)).await, ["root"]);
    assert_eq!(d.status("a").await, Status::Enqueued);
}

async fn a_cancel_with_children_reaches_all_descendants(d: &Desk) {
    tree(d).await;
    assert_eq!(d.moved(cancel(&["root"], true)).await, ["a", "aa", "aaa", "b", "root"]);
    assert_eq!(d.status("other").await, Status::Enqueued);
}

async fn descendants_are_reached_through_an_ended_child(d: &Desk) {
    tree(d).await;
    d.cancel("a").await;
    assert_eq!(d.moved(cancel(&["root"], true)).await, ["aa", "aaa", "b", "root"]);
}

async fn descendants_are_reached_through_an_unknown_parent(d: &Desk) {
    tree(d).await;
    d.delete("root").await;
    let moved = d.moved(cancel(&["root", "aa"], true)).await;
    assert_eq!(moved, ["a", "aa", "aaa", "b"], "a deleted workflow's children still name it");
}

async fn a_circle_of_parents_has_an_end(d: &Desk) {
    d.put(d.job("a").parent("c")).await;
    d.put(d.job("b").parent("a")).await;
    d.put(d.job("c").parent("b")).await;
    d.put(d.job("self").parent("self")).await;
    assert_eq!(d.moved(cancel(&["b", "self"], true)).await, ["a", "b", "c", "self"]);
    assert_eq!(d.moved(delete(&["b", "self"], true)).await, ["a", "b", "c", "self"]);
}

async fn a_repeated_cancel_moves_nothing(d: &Desk) {
    tree(d).await;
    d.moved(cancel(&["root"], true)).await;
    let before = d.row("aaa").await;
    d.pass(100);
    assert_eq!(d.moved(cancel(&["root"], true)).await, [""; 0]);
    assert_eq!(d.row("aaa").await, before);
}

async fn a_delete_removes_a_row_in_any_state(d: &Desk) {
    for status in Status::ALL {
        let id = status.as_str();
        d.make(id, status).await;
        assert_eq!(d.delete(id).await, [id]);
        assert_eq!((d.find(id).await, d.standing(id).await), (None, Standing::Gone));
        assert!(d.store().workflow_input(&id.into()).await.is_err(), "{id}");
    }
}

async fn a_delete_leaves_out_unknown_ids(d: &Desk) {
    d.enqueue("w").await;
    assert_eq!(d.moved(delete(&["nobody", "w"], false)).await, ["w"]);
    assert_eq!(d.moved(delete(&["nobody", "w"], true)).await, [""; 0]);
}

async fn a_delete_answers_in_order_of_id_and_once(d: &Desk) {
    for id in ["b", "a", "C"] {
        d.enqueue(id).await;
    }
    assert_eq!(d.moved(delete(&["b", "a", "C", "a"], false)).await, ["C", "a", "b"]);
}

async fn a_delete_with_children_reaches_all_descendants(d: &Desk) {
    tree(d).await;
    assert_eq!(d.moved(delete(&["root"], true)).await, ["a", "aa", "aaa", "b", "root"]);
    assert_eq!((d.find("aaa").await, d.status("other").await), (None, Status::Enqueued));
}

async fn a_delete_without_children_leaves_them(d: &Desk) {
    tree(d).await;
    assert_eq!(d.moved(delete(&["root"], false)).await, ["root"]);
    assert_eq!(d.row("a").await.parent, Some("root".into()));
}

async fn a_deleted_id_begins_anew(d: &Desk) {
    let fence = d.put(d.direct("w").input("[1]").attributes("{}")).await.fence.expect("a fence");
    d.record(&fence, 0, "old").await;
    d.delete("w").await;
    d.pass(100);
    d.enqueue("w").await;
    assert_eq!((d.steps("w").await, d.row("w").await.created_at), (vec![], d.now()));
    assert_eq!(d.store().workflow_input(&"w".into()).await.expect("read"), None);
    let second = d.take_one().await;
    assert_eq!((second.steps.here().len(), second.row.attributes), (0, None));
}

async fn a_delete_of_many_removes_all(d: &Desk) {
    let names: Vec<String> = (0..300).map(|n| format!("w{n:03}")).collect();
    let units: Vec<Unit> = names.iter().map(|id| Unit::new().effect(d.job(id))).collect();
    d.units(&units).await;
    let ids = names.iter().map(mainstay_store::WorkflowId::from).collect();
    assert_eq!(d.moved(Effect::Delete { ids, children: false }).await, names);
    assert_eq!(d.take_ids(d.claim()).await, [""; 0]);
}

async fn a_resume_enqueues_what_has_no_value_or_error(d: &Desk) {
    for status in [Status::Delayed, Status::Enqueued, Status::Cancelled, Status::Parked] {
        let id = status.as_str();
        d.make(id, status).await;
        d.pass(100);
        assert_eq!(d.resume(id).await, [id]);
        let row = d.row(id).await;
        assert_eq!(
            (row.status, row.updated_at, d.standing(id).await),
            (Status::Enqueued, d.now(), Standing::Open(Status::Enqueued))
        );
        assert_eq!((row.started_at, row.completed_at, row.dedup, row.attempts), (None, None, None, 0), "{id}");
    }
}

async fn a_resume_begins_attempts_anew(d: &Desk) {
    d.put(d.job("w").timeout(ms(1_000))).await;
    let fence = d.take_one().await.fence;
    d.give_back(&fence).await;
    assert_eq!((d.row("w").await.attempts, d.row("w").await.deadline.is_some()), (1, true));
    d.moved(resume(&["w"], Some(Q))).await;
    assert_eq!((d.row("w").await.attempts, d.row("w").await.deadline), (0, None));
    d.pass(50);
    let claimed = d.take_one().await.row;
    assert_eq!((claimed.attempts, claimed.deadline), (1, Some(d.now() + ms(1_000))));
}

async fn a_resume_goes_to_the_internal_queue(d: &Desk) {
    d.make("w", Status::Cancelled).await;
    d.resume("w").await;
    assert_eq!(d.row("w").await.queue, internal());
    assert_eq!(d.take_ids(d.claim_on(wire::INTERNAL_QUEUE)).await, ["w"]);
}

async fn a_resume_goes_to_the_given_queue(d: &Desk) {
    d.make("w", Status::Parked).await;
    assert_eq!(d.moved(resume(&["w"], Some(Q))).await, ["w"]);
    assert_eq!(d.take_ids(d.claim()).await, ["w"]);
}

async fn a_resume_leaves_successes_and_errors(d: &Desk) {
    for status in [Status::Success, Status::Error] {
        let id = status.as_str();
        d.make(id, status).await;
        let before = (d.row(id).await, d.standing(id).await);
        d.pass(100);
        let forced = Effect::Resume { ids: ids(&[id]), queue: None, force: true };
        assert_eq!((d.resume(id).await, d.moved(forced).await), (vec![], vec![]));
        assert_eq!((d.row(id).await, d.standing(id).await), before);
    }
}

async fn a_resume_of_an_unknown_id_is_missing(d: &Desk) {
    for force in [false, true] {
        let unit = Unit::new().effect(Effect::Resume { ids: ids(&["nobody"]), queue: None, force });
        assert_eq!(d.refused(unit).await, (0, Refusal::Missing("nobody".into())));
    }
}

async fn a_resume_of_a_pending_row_is_refused(d: &Desk) {
    let fence = d.claimed("w").await;
    assert_eq!(d.refused(Unit::new().effect(resume(&["w"], None))).await, (0, Refusal::Running("w".into())));
    d.settle(&fence, success("end")).await;
}

async fn a_forced_resume_takes_a_pending_row(d: &Desk) {
    d.claimed("w").await;
    let forced = Effect::Resume { ids: ids(&["w"]), queue: Some(Q.into()), force: true };
    assert_eq!(d.moved(forced).await, ["w"]);
    let row = d.row("w").await;
    assert_eq!((row.status, row.attempts, row.started_at), (Status::Enqueued, 0, None));
    assert_eq!(d.take_ids(d.claim()).await, ["w"]);
}

async fn a_resume_that_is_refused_has_resumed_none(d: &Desk) {
    d.make("a", Status::Cancelled).await;
    d.make("p", Status::Pending).await;
    let before = d.row("a").await;
    for other in ["p", "nobody"] {
        d.refused(Unit::new().effect(resume(&["a", other], None))).await;
        assert_eq!(d.row("a").await, before);
    }
}

async fn a_resume_answers_in_order_of_id_and_once(d: &Desk) {
    for id in ["b", "a", "C"] {
        d.make(id, Status::Cancelled).await;
    }
    assert_eq!(d.moved(resume(&["b", "C", "a", "b"], None)).await, ["C", "a", "b"]);
}

async fn a_resume_keeps_what_it_does_not_name(d: &Desk) {
    let mut submit = d.job("w").input("[1]").priority(4).version("v1").parent("p").attributes("{}").timeout(ms(9));
    submit.place = mainstay_store::Place::Queue { name: Q.into(), key: Some("k".into()), delay: None };
    d.put(submit).await;
    let fence = d.take_one().await.fence;
    d.record(&fence, 0, "kept").await;
    let mut before = d.row("w").await;
    d.cancel("w").await;
    d.pass(100);
    d.moved(resume(&["w"], Some(Q))).await;
    before.status = Status::Enqueued;
    before.updated_at = d.now();
    (before.attempts, before.deadline, before.started_at) = (0, None, None);
    assert_eq!(d.row("w").await, before);
    assert_eq!(
        (d.values("w").await.len(), d.store().workflow_input(&"w".into()).await.expect("read")),
        (1, Some("[1]".into()))
    );
}

async fn a_resume_of_an_enqueued_row_moves_it(d: &Desk) {
    d.enqueue("w").await;
    assert_eq!(d.resume("w").await, ["w"]);
    assert_eq!(d.resume("w").await, ["w"]);
    assert_eq!((d.take_ids(d.claim()).await, d.row("w").await.queue), (vec![], internal()));
}

async fn a_resumed_row_goes_on_from_its_steps(d: &Desk) {
    let fence = d.claimed("w").await;
    d.record(&fence, 0, "kept").await;
    d.cancel("w").await;
    d.moved(resume(&["w"], Some(Q))).await;
    let claimed = d.take_one().await;
    assert_eq!(claimed.steps.here(), d.steps("w").await);
    assert_eq!(d.values("w").await, [(0, "kept".to_owned())]);
    d.settle(&claimed.fence, success("end")).await;
}

async fn a_given_back_row_is_enqueued_on_its_queue(d: &Desk) {
    let fence = d.claimed("w").await;
    d.pass(100);
    d.give_back(&fence).await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.queue, row.started_at), (Status::Enqueued, Some(Q.into()), None));
    assert_eq!((row.updated_at, row.attempts), (d.now(), 1));
}

async fn a_given_back_start_goes_to_the_internal_queue(d: &Desk) {
    let fence = d.start("w").await;
    d.give_back(&fence).await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.queue, row.started_at), (Status::Enqueued, internal(), None));
}

async fn a_row_given_back_for_later_is_delayed(d: &Desk) {
    let fence = d.claimed("w").await;
    d.pass(100);
    d.done(Unit::by(&fence).effect(Effect::GiveBack { delay: Some(ms(500)), begun: true })).await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.delay_until, row.started_at), (Status::Delayed, Some(d.now() + ms(500)), None));
    d.pass(500);
    d.tick().await;
    assert_eq!(d.take_ids(d.claim()).await, ["w"]);
}

async fn a_given_back_row_keeps_what_it_does_not_name(d: &Desk) {
    d.put(d.job("w").input("[1]").priority(4).timeout(ms(5_000)).attributes("{}")).await;
    let claimed = d.take_one().await;
    d.pass(100);
    d.give_back(&claimed.fence).await;
    let mut expected = claimed.row;
    expected.status = Status::Enqueued;
    expected.started_at = None;
    expected.updated_at = d.now();
    assert_eq!(d.row("w").await, expected);
}

fn unbegun(delay: Option<u64>) -> Effect {
    Effect::GiveBack { delay: delay.map(ms), begun: false }
}

async fn a_row_given_back_before_its_body_began_has_its_attempt_again(d: &Desk) {
    let fence = d.claimed("w").await;
    d.pass(100);
    d.done(Unit::by(&fence).effect(unbegun(None))).await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.queue, row.started_at), (Status::Enqueued, Some(Q.into()), None));
    assert_eq!((row.updated_at, row.attempts), (d.now(), 0));
    let by = d.superseded(Unit::by(&fence).effect(unbegun(None))).await;
    assert_eq!((by, d.row("w").await.attempts), (Standing::Open(Status::Enqueued), 0));
    assert_eq!(d.take_one().await.row.attempts, 1);
}

async fn a_row_given_back_unbegun_for_later_keeps_every_other_field(d: &Desk) {
    d.put(d.job("w").input("[1]").priority(4).timeout(ms(5_000)).attributes("{}")).await;
    let claimed = d.take_one().await;
    d.pass(100);
    d.done(Unit::by(&claimed.fence).effect(unbegun(Some(70)))).await;
    let mut expected = claimed.row;
    expected.status = Status::Delayed;
    expected.delay_until = Some(d.now() + ms(70));
    expected.started_at = None;
    expected.updated_at = d.now();
    expected.attempts = 0;
    assert_eq!(d.row("w").await, expected);
}

async fn a_start_given_back_before_its_body_began_has_none(d: &Desk) {
    let fence = d.start("w").await;
    d.done(Unit::by(&fence).effect(unbegun(None))).await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.queue, row.attempts), (Status::Enqueued, internal(), 0));
}

async fn earlier_attempts_stay_when_one_is_taken_off(d: &Desk) {
    let first = d.claimed("w").await;
    d.give_back(&first).await;
    let second = d.take_one().await;
    assert_eq!(second.row.attempts, 2);
    d.done(Unit::by(&second.fence).effect(unbegun(None))).await;
    assert_eq!(d.row("w").await.attempts, 1);
    let third = d.take_one().await;
    assert_eq!((third.row.attempts, third.fence == second.fence), (2, false));
}

async fn a_delayed_row_takes_another_delay(d: &Desk) {
    d.put(d.later("w", 60_000)).await;
    for delay in [When::In(ms(10)), When::At(d.now() + ms(20)), When::At(d.now() - ms(5))] {
        let effects = d.done(Unit::new().effect(Effect::SetDelay { id: "w".into(), delay })).await;
        assert_eq!(effects, [EffectReply::Written]);
        let row = d.row("w").await;
        assert_eq!((row.status, row.delay_until), (Status::Delayed, Some(delay.resolve(d.now()))));
    }
    assert_eq!(d.tick().await.released, [Q]);
}

async fn only_a_delayed_row_takes_a_delay(d: &Desk) {
    for status in Status::ALL {
        d.make(status.as_str(), status).await;
    }
    let others = Status::ALL.iter().filter(|status| **status != Status::Delayed).map(|status| status.as_str());
    for id in others.chain(["nobody"]) {
        let unit = Unit::new().effect(Effect::SetDelay { id: id.into(), delay: ms(5).into() });
        assert_eq!(d.refused(unit).await, (0, Refusal::Missing(id.into())));
    }
}

async fn attributes_are_replaced_and_cleared(d: &Desk) {
    for status in Status::ALL {
        let id = status.as_str();
        d.make(id, status).await;
        for json in [Some("{\"a\":1}"), Some("{\"b\":2}"), None] {
            let json = json.map(mainstay_store::Payload::from);
            let unit = Unit::new().effect(Effect::Attributes { id: id.into(), json: json.clone() });
            assert_eq!(d.unit(unit).await, UnitReply::Done { effects: vec![EffectReply::Written] });
            assert_eq!((d.row(id).await.attributes, d.status(id).await), (json, status));
        }
    }
}

async fn attributes_of_an_unknown_id_are_missing(d: &Desk) {
    let unit = Unit::new().effect(Effect::Attributes { id: "nobody".into(), json: None });
    assert_eq!(d.refused(unit).await, (0, Refusal::Missing("nobody".into())));
}

async fn an_outcome_is_written_with_its_time(d: &Desk) {
    for outcome in [success("end"), mainstay_store::Outcome::Error("\"end\"".into())] {
        let id = outcome.status().as_str();
        d.enqueue(id).await;
        let mut expected = d.take_one().await;
        d.pass(100);
        d.settle(&expected.fence, outcome.clone()).await;
        expected.row.status = outcome.status();
        expected.row.completed_at = Some(d.now());
        expected.row.updated_at = d.now();
        assert_eq!((d.row(id).await, d.standing(id).await), (expected.row, Standing::Ended(outcome)));
    }
}

async fn a_parked_outcome_loses_queue_and_start(d: &Desk) {
    let fence = d.claimed("w").await;
    d.pass(100);
    d.settle(&fence, mainstay_store::Outcome::Parked("\"why\"".into())).await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.queue, row.started_at), (Status::Parked, None, None));
    assert_eq!((row.completed_at, row.attempts), (Some(d.now()), 1));
}

async fn a_cancelled_outcome_is_a_cancellation(d: &Desk) {
    let fence = d.claimed("w").await;
    d.pass(100);
    d.settle(&fence, mainstay_store::Outcome::Cancelled).await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.queue, row.started_at), (Status::Cancelled, None, None));
    assert_eq!((row.completed_at, d.resume("w").await), (Some(d.now()), vec!["w".to_owned()]));
}
