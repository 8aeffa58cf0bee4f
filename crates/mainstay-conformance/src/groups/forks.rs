//! Group `workflows`: forks, and the removal of what ended long ago.

use mainstay_store::{Collect, EffectReply, Fork, Outcome, Refusal, Standing, Status, Unit, WorkflowRow, wire};

use crate::desk::{APP, Desk, Q, V1, field, ms, success};

cases! { "workflows";
    a_fork_copies_what_makes_a_workflow;
    a_fork_is_a_start_of_its_own;
    a_fork_marks_its_source;
    a_fork_goes_to_the_given_queue_and_key;
    a_fork_may_name_another_version;
    a_fork_copies_the_steps_below_its_position;
    a_fork_from_the_beginning_has_no_steps;
    a_fork_past_the_last_step_has_all;
    a_fork_of_any_state_is_enqueued;
    a_fork_of_an_unknown_source_is_missing;
    a_repeated_fork_changes_nothing;
    a_fork_to_a_taken_id_is_a_conflict;
    a_fork_outlives_its_source;
    a_fork_of_a_fork_names_its_own_source;
    a_fork_s_id_is_taken_for_a_submit;
    a_forked_row_runs_from_the_copied_steps;
    a_collection_removes_what_ended_long_enough_ago;
    a_collection_takes_the_oldest_end_first;
    a_collection_of_one_end_takes_ids_in_order;
    a_collection_leaves_what_has_not_ended;
    a_collection_removes_every_kind_of_end;
    a_collection_keeps_to_its_application;
    a_collection_takes_all_that_hangs_on_a_row;
    a_collection_says_whether_more_is_left;
    a_repeated_collection_removes_nothing;
    a_collection_of_no_rows_is_invalid;
}

/// A running workflow `w` with every field that a fork copies, and steps 0 to 4.
async fn source(d: &Desk) -> WorkflowRow {
    let caller = mainstay_store::Caller { user: Some("ann".into()), role: None, roles: vec!["r".into()] };
    let submit = d
        .direct("w")
        .input("[1]")
        .class("Class")
        .config("config")
        .codec("json")
        .attributes("{\"a\":1}")
        .priority(4)
        .parent("p")
        .schedule("nightly")
        .timeout(ms(60_000))
        .caller(caller);
    let fence = d.put(submit).await.fence.expect("a fence");
    for at in 0..5 {
        d.record(&fence, at, &format!("{at}")).await;
    }
    d.pass(1_000);
    d.row("w").await
}

async fn fork(d: &Desk, fork: Fork) -> WorkflowRow {
    let id = fork.id.clone();
    assert_eq!(d.done(Unit::new().effect(fork)).await, [EffectReply::Written]);
    d.row(id.as_str()).await
}

async fn a_fork_copies_what_makes_a_workflow(d: &Desk) {
    let from = source(d).await;
    let copy = fork(d, Fork::new("w", "copy", 3)).await;
    assert_eq!((copy.name, copy.class, copy.config), (from.name, from.class, from.config));
    assert_eq!((copy.app, copy.version, copy.codec), (Some(APP.into()), Some(V1.into()), from.codec));
    assert_eq!((copy.attributes, copy.caller), (from.attributes, from.caller));
    assert_eq!(d.store().workflow_input(&"copy".into()).await.expect("read"), Some("[1]".into()));
}

async fn a_fork_is_a_start_of_its_own(d: &Desk) {
    source(d).await;
    let copy = fork(d, Fork::new("w", "copy", 3)).await;
    assert_eq!((copy.status, copy.queue, copy.attempts), (Status::Enqueued, Some(wire::INTERNAL_QUEUE.into()), 0));
    assert_eq!((copy.created_at, copy.updated_at, copy.started_at), (d.now(), d.now(), None));
    assert_eq!((copy.priority, copy.parent, copy.schedule), (0, None, None));
    assert_eq!((copy.timeout, copy.deadline, copy.dedup, copy.key), (None, None, None, None));
    assert_eq!((copy.executor, copy.was_forked, copy.forked_from), (None, false, Some("w".into())));
}

async fn a_fork_marks_its_source(d: &Desk) {
    let mut from = source(d).await;
    fork(d, Fork::new("w", "copy", 3)).await;
    from.was_forked = true;
    assert_eq!((d.row("w").await, d.values("w").await.len()), (from, 5));
}

async fn a_fork_goes_to_the_given_queue_and_key(d: &Desk) {
    source(d).await;
    let copy = fork(d, Fork::new("w", "copy", 3).queue(Q).key("k")).await;
    assert_eq!((copy.queue, copy.key), (Some(Q.into()), Some("k".into())));
}

async fn a_fork_may_name_another_version(d: &Desk) {
    source(d).await;
    assert_eq!(fork(d, Fork::new("w", "copy", 3).version("v2")).await.version, Some("v2".into()));
}

async fn a_fork_copies_the_steps_below_its_position(d: &Desk) {
    source(d).await;
    fork(d, Fork::new("w", "copy", 3)).await;
    assert_eq!(d.steps("copy").await, d.steps("w").await[..3]);
}

async fn a_fork_from_the_beginning_has_no_steps(d: &Desk) {
    source(d).await;
    fork(d, Fork::new("w", "copy", 0)).await;
    assert_eq!(d.steps("copy").await, []);
}

async fn a_fork_past_the_last_step_has_all(d: &Desk) {
    source(d).await;
    fork(d, Fork::new("w", "copy", i32::MAX)).await;
    assert_eq!(d.steps("copy").await, d.steps("w").await);
}

async fn a_fork_of_any_state_is_enqueued(d: &Desk) {
    for status in Status::ALL {
        let id = status.as_str();
        d.make(id, status).await;
        let copy = fork(d, Fork::new(id, format!("copy of {id}"), 0)).await;
        assert_eq!((copy.status, copy.completed_at, d.status(id).await), (Status::Enqueued, None, status));
    }
}

async fn a_fork_of_an_unknown_source_is_missing(d: &Desk) {
    d.enqueue("taken").await;
    for id in ["copy", "taken"] {
        let refused = d.refused(Unit::new().effect(Fork::new("nobody", id, 0))).await;
        assert_eq!(refused, (0, Refusal::Missing("nobody".into())));
    }
    assert_eq!(d.find("copy").await, None);
}

async fn a_repeated_fork_changes_nothing(d: &Desk) {
    let source = d.start("w").await;
    d.record(&source, 0, "copied").await;
    fork(d, Fork::new("w", "copy", 3).queue(Q)).await;
    let fence = d.take_one().await.fence;
    d.record(&fence, 3, "own").await;
    let before = (d.row("copy").await, d.steps("copy").await);
    d.pass(100);
    fork(d, Fork::new("w", "copy", 1).queue("other")).await;
    assert_eq!((d.row("copy").await, d.steps("copy").await), before);
    d.settle(&fence, success("end")).await;
}

async fn a_fork_to_a_taken_id_is_a_conflict(d: &Desk) {
    source(d).await;
    d.enqueue("taken").await;
    d.enqueue("second").await;
    fork(d, Fork::new("second", "of second", 0)).await;
    for id in ["taken", "of second"] {
        let before = d.row(id).await;
        let (effect, why) = d.refused(Unit::new().effect(Fork::new("w", id, 0))).await;
        let conflict = Refusal::Conflict { id: id.into(), name: before.name.clone(), class: None, config: None };
        assert_eq!((effect, why, d.row(id).await), (0, conflict, before));
    }
}

async fn a_fork_outlives_its_source(d: &Desk) {
    source(d).await;
    fork(d, Fork::new("w", "copy", 3)).await;
    d.delete("w").await;
    assert_eq!((d.row("copy").await.forked_from, d.values("copy").await.len()), (Some("w".into()), 3));
    assert_eq!(d.store().workflow_input(&"copy".into()).await.expect("read"), Some("[1]".into()));
}

async fn a_fork_of_a_fork_names_its_own_source(d: &Desk) {
    source(d).await;
    fork(d, Fork::new("w", "copy", 3)).await;
    let second = fork(d, Fork::new("copy", "second", 2)).await;
    assert_eq!((second.forked_from, d.row("copy").await.was_forked), (Some("copy".into()), true));
    assert_eq!(d.steps("second").await, d.steps("w").await[..2]);
}

async fn a_fork_s_id_is_taken_for_a_submit(d: &Desk) {
    d.enqueue("w").await;
    fork(d, Fork::new("w", "copy", 0)).await;
    let existing = EffectReply::Existing(Standing::Open(Status::Enqueued));
    assert_eq!(d.done(Unit::new().effect(d.job("copy"))).await, [existing]);
}

async fn a_forked_row_runs_from_the_copied_steps(d: &Desk) {
    d.enqueue("w").await;
    let fence = d.take_one().await.fence;
    d.record(&fence, 0, "kept").await;
    d.record(&fence, 1, "not copied").await;
    fork(d, Fork::new("w", "copy", 1).queue(Q)).await;
    let claimed = d.take_one().await;
    assert_eq!((claimed.row.attempts, claimed.steps.here().len()), (1, 1));
    d.record(&claimed.fence, 1, "own").await;
    assert_eq!(d.values("copy").await, [(0, "kept".to_owned()), (1, "own".to_owned())]);
}

async fn collect(d: &Desk, age: u64, limit: u32) -> (u32, bool) {
    let request = Collect::new(APP, ms(age)).limit(limit);
    let collected = d.store().collect(request).await.expect("collected");
    assert!(collected.now >= d.now(), "its clock is behind");
    (collected.removed, collected.more)
}

/// Ended workflows `w0`, `w1`, … a second apart, the last of them just now.
async fn ended(d: &Desk, count: u32) {
    for n in 0..count {
        d.pass(1_000);
        let fence = d.start(&format!("w{n}")).await;
        d.settle(&fence, success("end")).await;
    }
}

async fn a_collection_removes_what_ended_long_enough_ago(d: &Desk) {
    ended(d, 1).await;
    d.pass(9_999);
    assert_eq!((collect(d, 10_000, 10).await, d.status("w0").await), ((0, false), Status::Success));
    d.pass(1);
    assert_eq!((collect(d, 10_000, 10).await, d.find("w0").await), ((1, false), None));
}

async fn a_collection_takes_the_oldest_end_first(d: &Desk) {
    let old = d.start("began first").await;
    ended(d, 3).await;
    d.pass(1_000);
    d.settle(&old, success("ended last")).await;
    for gone in ["w0", "w1", "w2", "began first"] {
        assert!(d.find(gone).await.is_some());
        assert_eq!(collect(d, 0, 1).await.0, 1);
        assert_eq!(d.find(gone).await, None);
    }
}

async fn a_collection_of_one_end_takes_ids_in_order(d: &Desk) {
    for id in ["c", "a", "B"] {
        d.enqueue(id).await;
    }
    let all = ["c", "a", "B"].map(mainstay_store::WorkflowId::from).to_vec();
    d.moved(mainstay_store::Effect::Cancel { ids: all, children: false }).await;
    for gone in ["B", "a", "c"] {
        assert!(d.find(gone).await.is_some());
        collect(d, 0, 1).await;
        assert_eq!(d.find(gone).await, None);
    }
}

async fn a_collection_leaves_what_has_not_ended(d: &Desk) {
    for status in [Status::Delayed, Status::Enqueued, Status::Pending] {
        d.make(status.as_str(), status).await;
    }
    d.pass(86_400_000);
    assert_eq!(collect(d, 0, 10).await, (0, false));
    assert_eq!(d.status("PENDING").await, Status::Pending);
}

async fn a_collection_removes_every_kind_of_end(d: &Desk) {
    for status in Status::ALL.into_iter().filter(|status| status.is_ended()) {
        d.make(status.as_str(), status).await;
    }
    assert_eq!(collect(d, 0, 10).await, (4, false));
}

async fn a_collection_keeps_to_its_application(d: &Desk) {
    for (id, app) in [("own", Some(APP)), ("unowned", None), ("other", Some("else"))] {
        let mut submit = d.job(id);
        submit.app = app.map(mainstay_store::AppName::from);
        d.put(submit).await;
        d.cancel(id).await;
    }
    assert_eq!(collect(d, 0, 10).await, (2, false));
    assert_eq!(d.standing("other").await, Standing::Ended(Outcome::Cancelled));
}

async fn a_collection_takes_all_that_hangs_on_a_row(d: &Desk) {
    let fence = d.put(d.direct("w").input("[1]")).await.fence.expect("a fence");
    d.record(&fence, 0, "old").await;
    d.settle(&fence, success("end")).await;
    assert_eq!(collect(d, 0, 10).await.0, 1);
    assert_eq!(d.standing("w").await, Standing::Gone);
    d.enqueue("w").await;
    assert_eq!((d.steps("w").await, d.store().workflow_input(&"w".into()).await.expect("read")), (vec![], None));
}

async fn a_collection_says_whether_more_is_left(d: &Desk) {
    ended(d, 5).await;
    assert_eq!((collect(d, 0, 2).await, collect(d, 0, 2).await), ((2, true), (2, true)));
    assert_eq!(collect(d, 0, 2).await, (1, false));
}

async fn a_repeated_collection_removes_nothing(d: &Desk) {
    ended(d, 3).await;
    assert_eq!((collect(d, 0, 10).await, collect(d, 0, 10).await), ((3, false), (0, false)));
}

async fn a_collection_of_no_rows_is_invalid(d: &Desk) {
    ended(d, 1).await;
    let error = d.store().collect(Collect::new(APP, ms(0)).limit(0)).await.expect_err("a limit of 0");
    assert!(field(&error).ends_with("limit"), "{error}");
    assert_eq!((error.op(), d.status("w0").await), ("collect", Status::Success));
}
