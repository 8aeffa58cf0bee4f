//! Group `workflows`: submits, and what the row of each is.

use mainstay_store::{
    Caller, Created, Effect, EffectReply, Joining, OnExisting, OnHeld, Outcome, Place, Refusal, Standing, Status,
    Submit, Unit, When,
};

use crate::desk::{APP, Desk, E1, Q, V1, WORK, ids, ms, success};

cases! { "workflows";
    a_direct_start_is_pending_at_once;
    a_direct_start_has_a_fence_and_no_queue;
    a_direct_start_turns_its_timeout_into_a_deadline;
    a_direct_start_keeps_a_given_deadline;
    a_queued_submit_is_enqueued_without_an_attempt;
    a_queued_timeout_is_no_deadline_yet;
    a_queued_deadline_is_resolved_by_the_store;
    a_delay_makes_a_delayed_row;
    a_delay_until_a_stamp_is_kept;
    a_delay_that_has_passed_is_a_delay;
    every_given_field_is_kept;
    what_was_not_given_is_none;
    a_queue_need_not_be_registered;
    the_internal_queue_takes_rows;
    a_repeated_start_is_answered_as_at_first;
    a_repeated_submit_changes_nothing;
    a_repeat_after_the_claim_has_no_fence;
    a_repeat_after_the_end_has_no_fence;
    a_repeat_after_a_give_back_and_a_claim_has_no_fence;
    a_repeat_after_a_take_over_has_no_fence;
    a_repeat_does_not_ask_for_the_lease;
    another_token_finds_what_exists;
    an_existing_end_is_answered_with_its_outcome;
    an_existing_id_is_refused_where_a_new_one_is_wanted;
    its_own_row_is_created_where_a_new_one_is_wanted;
    an_existing_id_is_answered_whatever_else_is_asked;
    case_o26_an_id_of_another_function_is_a_conflict;
    a_start_of_an_unknown_executor_is_unleased;
    a_start_of_an_ended_executor_is_unleased;
    a_held_key_refuses_and_names_its_holder;
    a_held_key_can_be_joined;
    delayed_enqueued_and_pending_rows_hold_their_key;
    a_held_key_leaves_nothing_behind;
    a_repeat_of_the_holder_is_created;
    an_outcome_frees_the_key;
    a_cancel_frees_the_key;
    a_delete_frees_the_key;
    a_resume_frees_the_key;
    parking_frees_the_key;
    a_returned_row_keeps_its_key;
    a_key_is_held_over_applications_and_functions;
}

async fn a_direct_start_is_pending_at_once(d: &Desk) {
    d.pass(1_000);
    d.start("w").await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.attempts, row.executor), (Status::Pending, 1, Some(E1.into())));
    assert_eq!((row.created_at, row.updated_at, row.started_at), (d.now(), d.now(), Some(d.now())));
    assert_eq!((row.app, row.version, row.completed_at), (Some(APP.into()), Some(V1.into()), None));
}

async fn a_direct_start_has_a_fence_and_no_queue(d: &Desk) {
    let created = d.put(d.direct("w")).await;
    assert_eq!((created.created_at, created.deadline), (d.now(), None));
    assert_eq!(created.fence.expect("a fence").workflow().as_str(), "w");
    assert_eq!(d.row("w").await.queue, None);
}

async fn a_direct_start_turns_its_timeout_into_a_deadline(d: &Desk) {
    let created = d.put(d.direct("w").timeout(ms(5_000))).await;
    let due = Some(d.now() + ms(5_000));
    assert_eq!((created.deadline, d.row("w").await.deadline), (due, due));
    assert_eq!(d.row("w").await.timeout, Some(ms(5_000)));
}

async fn a_direct_start_keeps_a_given_deadline(d: &Desk) {
    let stamp = d.now() + ms(777);
    for (id, when) in [("in", When::In(ms(777))), ("at", When::At(stamp))] {
        let created = d.put(d.direct(id).timeout(ms(5_000)).deadline(when)).await;
        assert_eq!((created.deadline, d.row(id).await.deadline), (Some(stamp), Some(stamp)), "{id}");
    }
}

async fn a_queued_submit_is_enqueued_without_an_attempt(d: &Desk) {
    d.pass(1_000);
    assert_eq!(d.enqueue("w").await, Created::new(d.now()));
    let row = d.row("w").await;
    assert_eq!((row.status, row.attempts, row.queue), (Status::Enqueued, 0, Some(Q.into())));
    assert_eq!((row.created_at, row.updated_at, row.started_at), (d.now(), d.now(), None));
    assert_eq!((row.executor, row.version, row.delay_until), (None, None, None));
}

async fn a_queued_timeout_is_no_deadline_yet(d: &Desk) {
    let created = d.put(d.job("w").timeout(ms(5_000))).await;
    assert_eq!((created.deadline, d.row("w").await.deadline), (None, None));
}

async fn a_queued_deadline_is_resolved_by_the_store(d: &Desk) {
    d.pass(50);
    let stamp = d.now() + ms(1_000);
    for (id, when) in [("in", When::In(ms(1_000))), ("at", When::At(stamp))] {
        let created = d.put(d.job(id).deadline(when)).await;
        assert_eq!((created.deadline, d.row(id).await.deadline), (Some(stamp), Some(stamp)), "{id}");
    }
}

fn delayed(d: &Desk, id: &str, delay: When) -> Submit {
    Submit::new(id, WORK, d.token(), Place::Queue { name: Q.into(), key: None, delay: Some(delay) }).app(APP)
}

async fn a_delay_makes_a_delayed_row(d: &Desk) {
    d.put(d.later("w", 60_000)).await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.delay_until, row.queue), (Status::Delayed, Some(d.now() + ms(60_000)), Some(Q.into())));
    assert_eq!((row.attempts, row.started_at), (0, None));
}

async fn a_delay_until_a_stamp_is_kept(d: &Desk) {
    let stamp = d.now() + ms(123);
    d.put(delayed(d, "w", When::At(stamp))).await;
    assert_eq!((d.status("w").await, d.row("w").await.delay_until), (Status::Delayed, Some(stamp)));
}

async fn a_delay_that_has_passed_is_a_delay(d: &Desk) {
    let past = d.now() - ms(5_000);
    for (id, when) in [("at", When::At(past)), ("in", When::In(ms(0)))] {
        d.put(delayed(d, id, when)).await;
        let row = d.row(id).await;
        assert_eq!((row.status, row.delay_until), (Status::Delayed, Some(when.resolve(d.now()))), "{id}");
    }
    assert_eq!(d.take_ids(d.claim()).await, [""; 0]);
    d.tick().await;
    assert_eq!(d.take_ids(d.claim()).await, ["at", "in"]);
}

async fn every_given_field_is_kept(d: &Desk) {
    let roles = vec!["reader".to_owned(), "writer".to_owned()];
    let caller = Caller { user: Some("ann".into()), role: Some("writer".into()), roles };
    let place = Place::Queue { name: Q.into(), key: Some("k".into()), delay: None };
    let submit = Submit::new("w", WORK, d.token(), place)
        .app(APP)
        .class("Class")
        .config("config")
        .codec("json")
        .parent("parent")
        .version("v7")
        .timeout(ms(1_500))
        .attributes("{\"a\": [1, \"é\"]}")
        .schedule("nightly")
        .priority(7)
        .caller(caller.clone());
    d.put(submit).await;
    let row = d.row("w").await;
    assert_eq!((row.name.as_str(), row.class, row.config), (WORK, Some("Class".into()), Some("config".into())));
    assert_eq!((row.codec, row.parent, row.version), (Some("json".into()), Some("parent".into()), Some("v7".into())));
    assert_eq!((row.timeout, row.schedule, row.priority), (Some(ms(1_500)), Some("nightly".into()), 7));
    assert_eq!((row.key, row.caller), (Some("k".into()), caller));
    let text = row.attributes.expect("attributes");
    let read: serde_json::Value = serde_json::from_str(text.as_str()).expect("json");
    assert_eq!(read, serde_json::json!({"a": [1, "é"]}));
}

async fn what_was_not_given_is_none(d: &Desk) {
    d.put(Submit::new("w", WORK, d.token(), Place::queue(Q))).await;
    let row = d.row("w").await;
    let bare = mainstay_store::WorkflowRow::new("w", WORK, Status::Enqueued, d.now(), d.now()).queue(Q);
    assert_eq!(row, bare);
}

async fn a_queue_need_not_be_registered(d: &Desk) {
    d.put(d.job_on("nowhere", "w")).await;
    assert_eq!(d.row("w").await.queue, Some("nowhere".into()));
}

async fn the_internal_queue_takes_rows(d: &Desk) {
    let internal = mainstay_store::wire::INTERNAL_QUEUE;
    d.put(d.job_on(internal, "w")).await;
    assert_eq!(d.take_ids(d.claim_on(internal)).await, ["w"]);
}

async fn a_repeated_start_is_answered_as_at_first(d: &Desk) {
    let submit = d.direct("w").timeout(ms(9_000));
    let first = d.put(submit.clone()).await;
    d.pass(500);
    assert_eq!(d.put(submit).await, first);
    d.settle(&first.fence.expect("a fence"), success("end")).await;
}

async fn a_repeated_submit_changes_nothing(d: &Desk) {
    let submit = d.job("w").input("[1]");
    let first = d.put(submit.clone()).await;
    let before = d.row("w").await;
    d.pass(500);
    let changed = submit.input("[2]").priority(9).timeout(ms(5)).attributes("{}");
    assert_eq!(d.put(changed).await, first);
    assert_eq!(d.row("w").await, before);
    assert_eq!(d.store().workflow_input(&"w".into()).await.expect("read"), Some("[1]".into()));
}

async fn a_repeat_after_the_claim_has_no_fence(d: &Desk) {
    let submit = d.job("w");
    d.put(submit.clone()).await;
    let fence = d.take_one().await.fence;
    assert_eq!(d.put(submit).await.fence, None);
    d.settle(&fence, success("end")).await;
}

async fn a_repeat_after_the_end_has_no_fence(d: &Desk) {
    let submit = d.direct("w");
    let first = d.put(submit.clone()).await;
    d.settle(&first.fence.expect("a fence"), success("end")).await;
    let again = d.put(submit).await;
    assert_eq!((again.created_at, again.fence), (first.created_at, None));
}

async fn a_repeat_after_a_give_back_and_a_claim_has_no_fence(d: &Desk) {
    let submit = d.direct("w");
    let first = d.put(submit.clone()).await.fence.expect("a fence");
    d.give_back(&first).await;
    assert_eq!(d.put(submit.clone()).await.fence, None);
    assert_eq!(d.take_ids(d.claim_on(mainstay_store::wire::INTERNAL_QUEUE)).await, ["w"]);
    assert_eq!(d.put(submit).await.fence, None);
}

async fn a_repeat_after_a_take_over_has_no_fence(d: &Desk) {
    let submit = d.direct("w");
    d.put(submit.clone()).await;
    d.take_over(E1).await;
    assert_eq!(d.put(submit).await.fence, None);
    assert_eq!(d.status("w").await, Status::Enqueued);
}

async fn a_repeat_does_not_ask_for_the_lease(d: &Desk) {
    let submits = [d.direct("a"), d.direct("b")];
    let first = [d.put(submits[0].clone()).await, d.put(submits[1].clone()).await];
    // The first call of the take-over ends the lease and leaves the other row in its execution.
    let back = usize::from(d.take_over_one(E1).await == "b");
    assert_eq!(d.put(submits[back].clone()).await.fence, None);
    assert_eq!(d.put(submits[1 - back].clone()).await, first[1 - back]);
}

async fn existing(d: &Desk, submit: Submit) -> Standing {
    let mut effects = d.done(Unit::new().effect(submit)).await;
    match effects.pop() {
        Some(EffectReply::Existing(standing)) => standing,
        other => panic!("it does not exist: {other:?}"),
    }
}

async fn another_token_finds_what_exists(d: &Desk) {
    d.put(d.job("w").input("[1]")).await;
    let before = d.row("w").await;
    d.pass(500);
    assert_eq!(existing(d, d.job("w").input("[2]").priority(3)).await, Standing::Open(Status::Enqueued));
    assert_eq!(existing(d, d.direct("w")).await, Standing::Open(Status::Enqueued));
    assert_eq!(d.row("w").await, before);
    assert_eq!(d.store().workflow_input(&"w".into()).await.expect("read"), Some("[1]".into()));
}

async fn an_existing_end_is_answered_with_its_outcome(d: &Desk) {
    for status in [Status::Success, Status::Error, Status::Cancelled, Status::Parked] {
        let id = status.as_str();
        d.make(id, status).await;
        assert_eq!(existing(d, d.job(id)).await, d.standing(id).await);
        assert_eq!(d.status(id).await, status);
    }
}

async fn an_existing_id_is_refused_where_a_new_one_is_wanted(d: &Desk) {
    d.enqueue("w").await;
    for submit in [d.job("w"), d.direct("w")] {
        let unit = Unit::new().effect(submit.on_existing(OnExisting::Refuse));
        assert_eq!(d.refused(unit).await, (0, Refusal::Exists("w".into())));
    }
}

async fn its_own_row_is_created_where_a_new_one_is_wanted(d: &Desk) {
    let submit = d.job("w").on_existing(OnExisting::Refuse);
    let first = d.put(submit.clone()).await;
    assert_eq!(d.put(submit).await, first);
}

async fn an_existing_id_is_answered_whatever_else_is_asked(d: &Desk) {
    d.enqueue("w").await;
    d.put(keyed(d.job("holder"), "k", OnHeld::Reject)).await;
    let mut unleased = d.direct("w");
    unleased.place = Place::Run("nobody~1".into());
    assert_eq!(existing(d, unleased).await, Standing::Open(Status::Enqueued));
    assert_eq!(existing(d, keyed(d.job("w"), "k", OnHeld::Reject)).await, Standing::Open(Status::Enqueued));
}

async fn case_o26_an_id_of_another_function_is_a_conflict(d: &Desk) {
    let submit = d.job("w").class("Class").config("config");
    d.put(submit.clone()).await;
    let before = d.row("w").await;
    let other_name = Submit::new("w", "other", submit.token.clone(), Place::queue(Q)).class("Class").config("config");
    let mut no_class = submit.clone();
    no_class.class = None;
    let others = [other_name, submit.clone().class("Other"), submit.clone().config("other"), no_class];
    let conflict = |row: &mainstay_store::WorkflowRow| Refusal::Conflict {
        id: "w".into(),
        name: row.name.clone(),
        class: row.class.clone(),
        config: row.config.clone(),
    };
    for other in others {
        for policy in [OnExisting::Return, OnExisting::Refuse] {
            let unit = Unit::new().effect(other.clone().on_existing(policy));
            assert_eq!(d.refused(unit).await, (0, conflict(&before)), "{other:?}");
        }
    }
    // The first one goes on, also after its executor died.
    let names = vec![mainstay_store::Registered {
        class: before.class.clone(),
        config: before.config.clone(),
        ..mainstay_store::Registered::new(WORK)
    }];
    assert_eq!(d.take_ids(d.claim().names(names.clone())).await, ["w"]);
    d.take_over(E1).await;
    assert_eq!(d.take_ids(d.claim_by(crate::desk::E2).names(names)).await, ["w"]);
}

async fn a_start_of_an_unknown_executor_is_unleased(d: &Desk) {
    let mut submit = d.direct("w");
    submit.place = Place::Run("nobody~1".into());
    let unit = Unit::new().effect(d.job("other")).effect(submit);
    assert_eq!(d.refused(unit).await, (1, Refusal::Unleased("nobody~1".into())));
    assert_eq!((d.find("w").await, d.find("other").await), (None, None));
}

async fn a_start_of_an_ended_executor_is_unleased(d: &Desk) {
    for id in ["a", "b"] {
        d.start(id).await;
    }
    let unleased = async || {
        let refused = d.refused(Unit::new().effect(d.direct("w"))).await;
        assert_eq!(refused, (0, Refusal::Unleased(E1.into())));
    };
    d.take_over_one(E1).await;
    unleased().await;
    d.take_over(E1).await;
    unleased().await;
}

fn keyed(submit: Submit, key: &str, on_held: OnHeld) -> Submit {
    submit.dedup(Joining { key: key.into(), on_held })
}

/// A row `w` on the queue that carries the key `k`.
async fn holds(d: &Desk) {
    d.put(keyed(d.job("w"), "k", OnHeld::Reject)).await;
}

/// Another row can be made with the key.
async fn is_free(d: &Desk) {
    d.put(keyed(d.job("next"), "k", OnHeld::Reject)).await;
    assert_eq!(d.row("next").await.dedup, Some("k".into()));
    assert!(d.find("w").await.is_none_or(|row| row.dedup.is_none()));
}

async fn a_held_key_refuses_and_names_its_holder(d: &Desk) {
    holds(d).await;
    let unit = Unit::new().effect(keyed(d.job("next"), "k", OnHeld::Reject));
    assert_eq!(d.refused(unit).await, (0, Refusal::Held { holder: "w".into() }));
}

async fn a_held_key_can_be_joined(d: &Desk) {
    holds(d).await;
    let unit = Unit::new().effect(keyed(d.job("next"), "k", OnHeld::Join));
    assert_eq!(d.refused(unit).await, (0, Refusal::Joined { holder: "w".into() }));
    d.put(keyed(d.job("free"), "other", OnHeld::Join)).await;
}

async fn delayed_enqueued_and_pending_rows_hold_their_key(d: &Desk) {
    d.put(keyed(d.later("w", 1_000), "k", OnHeld::Reject)).await;
    for status in [Status::Delayed, Status::Enqueued, Status::Pending] {
        assert_eq!(d.status("w").await, status);
        let unit = Unit::new().effect(keyed(d.job("next"), "k", OnHeld::Reject));
        assert_eq!(d.refused(unit).await, (0, Refusal::Held { holder: "w".into() }), "{status}");
        d.pass(1_000);
        d.tick().await;
        if status == Status::Enqueued {
            d.take_one().await;
        }
    }
}

async fn a_held_key_leaves_nothing_behind(d: &Desk) {
    holds(d).await;
    for on_held in [OnHeld::Reject, OnHeld::Join] {
        d.refused(Unit::new().effect(d.job("other")).effect(keyed(d.job("next"), "k", on_held))).await;
    }
    assert_eq!((d.find("next").await, d.find("other").await), (None, None));
}

async fn a_repeat_of_the_holder_is_created(d: &Desk) {
    let submit = keyed(d.job("w"), "k", OnHeld::Reject);
    let first = d.put(submit.clone()).await;
    assert_eq!(d.put(submit).await, first);
}

async fn an_outcome_frees_the_key(d: &Desk) {
    for (at, outcome) in [success("end"), Outcome::Error("\"end\"".into())].into_iter().enumerate() {
        let id = format!("w{at}");
        d.put(keyed(d.job(&id), "k", OnHeld::Reject)).await;
        let fence = d.take_one().await.fence;
        d.settle(&fence, outcome).await;
        assert_eq!(d.row(&id).await.dedup, None);
    }
    is_free(d).await;
}

async fn a_cancel_frees_the_key(d: &Desk) {
    holds(d).await;
    d.cancel("w").await;
    is_free(d).await;
}

async fn a_delete_frees_the_key(d: &Desk) {
    holds(d).await;
    d.delete("w").await;
    is_free(d).await;
}

async fn a_resume_frees_the_key(d: &Desk) {
    holds(d).await;
    d.moved(Effect::Resume { ids: ids(&["w"]), queue: Some(Q.into()), force: false }).await;
    is_free(d).await;
}

async fn parking_frees_the_key(d: &Desk) {
    holds(d).await;
    let fence = d.take_one().await.fence;
    d.settle(&fence, Outcome::Parked("\"cannot\"".into())).await;
    is_free(d).await;
}

async fn a_returned_row_keeps_its_key(d: &Desk) {
    holds(d).await;
    let fence = d.take_one().await.fence;
    d.give_back(&fence).await;
    d.take_one().await;
    d.take_over(E1).await;
    assert_eq!((d.status("w").await, d.row("w").await.dedup), (Status::Enqueued, Some("k".into())));
    let unit = Unit::new().effect(keyed(d.job("next"), "k", OnHeld::Reject));
    assert_eq!(d.refused(unit).await, (0, Refusal::Held { holder: "w".into() }));
}

async fn a_key_is_held_over_applications_and_functions(d: &Desk) {
    holds(d).await;
    let other = Submit::new("next", "other", d.token(), Place::queue(Q)).app("else");
    let unit = Unit::new().effect(keyed(other, "k", OnHeld::Join));
    assert_eq!(d.refused(unit).await, (0, Refusal::Joined { holder: "w".into() }));
}
