//! Group `claim`: which rows a claim may take, what comes with them, the registry of versions, and the probe.

use mainstay_store::{
    Claim, Input, Place, Probe, Registered, Status, Steps, Stop, Submit, Version, VersionReply, WorkflowId, wire,
};

use crate::desk::{APP, Desk, E1, Q, V1, WORK, field, ms, rows, step, success, texts};

cases! { "claim";
    only_enqueued_rows_are_claimed;
    a_claim_without_functions_takes_nothing;
    only_registered_functions_are_claimed;
    class_and_instance_belong_to_the_function;
    rows_of_another_application_are_left;
    unowned_rows_are_anybody_s;
    rows_of_another_version_are_left;
    versioned_rows_run_on_an_older_version_too;
    unversioned_rows_are_anybody_s_without_versions;
    unversioned_rows_wait_for_the_latest_version;
    a_promotion_moves_unversioned_rows;
    versions_of_another_application_do_not_count;
    a_row_is_bound_by_its_first_claim;
    rows_of_another_queue_are_left;
    what_was_cancelled_is_not_claimed;
    what_was_resumed_elsewhere_is_not_claimed;
    an_input_comes_with_its_row;
    a_missing_input_is_told_from_an_empty_one;
    an_input_over_the_row_s_bytes_is_deferred;
    steps_over_the_row_s_bytes_are_partial;
    an_input_comes_before_the_steps;
    the_bytes_of_a_claim_are_shared_in_order;
    what_is_deferred_leaves_its_bytes_to_others;
    steps_are_looked_up_for_rows_of_no_attempt;
    a_row_without_steps_is_complete_at_no_bytes;
    a_new_version_is_created_and_the_latest;
    a_version_registered_again_keeps_its_age;
    a_version_of_another_application_is_owned;
    a_promoted_version_is_the_latest;
    an_unknown_version_is_missing;
    promotions_in_one_millisecond_have_an_order;
    versions_are_listed_latest_first;
    names_of_versions_are_bounded;
    a_probe_names_the_queues_with_work;
    a_probe_goes_by_eligibility;
    a_probe_leaves_limits_aside;
    a_probe_of_an_unknown_queue_finds_nothing;
    a_probe_tells_when_the_next_row_is_due;
    a_probe_changes_nothing;
}

async fn only_enqueued_rows_are_claimed(d: &Desk) {
    for status in Status::ALL {
        let id = status.as_str();
        d.make(id, status).await;
        let expected: &[&str] = if status == Status::Enqueued { &[id] } else { &[] };
        assert_eq!(d.take_ids(d.claim_on(&format!("q-{id}"))).await, expected);
    }
}

fn of(d: &Desk, id: &str, name: &str) -> Submit {
    Submit::new(id, name, d.token(), Place::queue(Q)).app(APP)
}

fn named(names: &[&str]) -> Vec<Registered> {
    names.iter().map(|name| Registered::new(*name)).collect()
}

async fn a_claim_without_functions_takes_nothing(d: &Desk) {
    d.enqueue("w").await;
    let claimed = d.take(d.claim().names(vec![])).await;
    assert_eq!((rows(&claimed), claimed.stop, d.status("w").await), (vec![], Stop::Drained, Status::Enqueued));
}

async fn only_registered_functions_are_claimed(d: &Desk) {
    for (id, name) in [("a", "one"), ("b", "two"), ("c", "one"), ("d", "three"), ("e", "One")] {
        d.put(of(d, id, name)).await;
    }
    assert_eq!(d.take_ids(d.claim().names(named(&["one", "three", "nobody's"]))).await, ["a", "c", "d"]);
    assert_eq!((d.status("b").await, d.row("b").await.attempts), (Status::Enqueued, 0));
}

async fn class_and_instance_belong_to_the_function(d: &Desk) {
    d.put(of(d, "bare", WORK)).await;
    d.put(of(d, "class", WORK).class("C")).await;
    d.put(of(d, "config", WORK).class("C").config("i")).await;
    d.put(of(d, "other", WORK).class("D").config("i")).await;
    let with = |class: Option<&str>, config: Option<&str>| Registered {
        class: class.map(Into::into),
        config: config.map(Into::into),
        ..Registered::new(WORK)
    };
    let cases = [
        (Some("C"), Some("j"), ""),
        (Some("C"), Some("i"), "config"),
        (None, Some("i"), ""),
        (Some("C"), None, "class"),
        (None, None, "bare"),
    ];
    for (class, config, expected) in cases {
        let taken = d.take_ids(d.claim().names(vec![with(class, config)])).await;
        assert_eq!(taken.join(""), expected, "{class:?} {config:?}");
    }
}

async fn rows_of_another_application_are_left(d: &Desk) {
    d.put(of(d, "w", WORK).app("else")).await;
    assert_eq!(d.take_ids(d.claim()).await, [""; 0]);
    assert_eq!(d.row("w").await.app, Some("else".into()));
}

async fn unowned_rows_are_anybody_s(d: &Desk) {
    for id in ["a", "b"] {
        d.put(Submit::new(id, WORK, d.token(), Place::queue(Q))).await;
    }
    let other = Claim::new(Q, E1, "else", V1, d.token()).names(named(&[WORK])).budget(1);
    assert_eq!(d.take_ids(other).await, ["a"]);
    assert_eq!(d.take_ids(d.claim()).await, ["b"]);
    assert_eq!((d.row("a").await.app, d.row("b").await.app), (Some("else".into()), Some(APP.into())));
}

async fn version(d: &Desk, name: &str) {
    d.pass(10);
    let reply = d.store().version_register(&APP.into(), &name.into()).await.expect("answered");
    assert_eq!(reply, VersionReply::Created);
}

fn as_version(d: &Desk, version: &str) -> Claim {
    Claim::new(Q, E1, APP, version, d.token()).names(named(&[WORK]))
}

async fn rows_of_another_version_are_left(d: &Desk) {
    d.put(d.job("old").version("v0")).await;
    d.put(d.job("own").version(V1)).await;
    assert_eq!(d.take_ids(d.claim()).await, ["own"]);
}

async fn versioned_rows_run_on_an_older_version_too(d: &Desk) {
    for name in ["v1", "v2"] {
        version(d, name).await;
        d.put(d.job(name).version(name)).await;
    }
    assert_eq!(d.take_ids(as_version(d, "v1")).await, ["v1"]);
    assert_eq!(d.take_ids(as_version(d, "v2")).await, ["v2"]);
}

async fn unversioned_rows_are_anybody_s_without_versions(d: &Desk) {
    d.enqueue("w").await;
    assert_eq!(d.take_ids(as_version(d, "anything")).await, ["w"]);
    assert_eq!(d.row("w").await.version, Some("anything".into()));
}

async fn unversioned_rows_wait_for_the_latest_version(d: &Desk) {
    version(d, "v1").await;
    version(d, "v2").await;
    d.enqueue("w").await;
    assert_eq!(d.take_ids(as_version(d, "v1")).await, [""; 0]);
    assert_eq!(d.take_ids(as_version(d, "v3")).await, [""; 0]);
    assert_eq!(d.take_ids(as_version(d, "v2")).await, ["w"]);
}

async fn a_promotion_moves_unversioned_rows(d: &Desk) {
    version(d, "v1").await;
    version(d, "v2").await;
    d.enqueue("free").await;
    d.put(d.job("bound").version("v2")).await;
    d.pass(10);
    d.store().version_promote(&APP.into(), &"v1".into()).await.expect("promoted");
    assert_eq!(d.take_ids(as_version(d, "v1")).await, ["free"]);
    assert_eq!(d.take_ids(as_version(d, "v2")).await, ["bound"]);
}

async fn versions_of_another_application_do_not_count(d: &Desk) {
    let reply = d.store().version_register(&"else".into(), &"v9".into()).await.expect("answered");
    assert_eq!(reply, VersionReply::Created);
    d.enqueue("a").await;
    assert_eq!(d.take_ids(as_version(d, "v1")).await, ["a"]);
    version(d, "v1").await;
    d.enqueue("b").await;
    assert_eq!(d.take_ids(as_version(d, "v9")).await, [""; 0]);
    assert_eq!(d.take_ids(as_version(d, "v1")).await, ["b"]);
}

async fn a_row_is_bound_by_its_first_claim(d: &Desk) {
    let fence = d.claimed("w").await;
    d.give_back(&fence).await;
    version(d, "v2").await;
    assert_eq!(d.take_ids(as_version(d, "v2")).await, [""; 0]);
    assert_eq!(d.take_ids(as_version(d, "v1")).await, ["w"]);
}

async fn rows_of_another_queue_are_left(d: &Desk) {
    d.put(d.job_on("Q", "upper")).await;
    d.put(d.job_on(wire::INTERNAL_QUEUE, "internal")).await;
    d.enqueue("own").await;
    assert_eq!(d.take_ids(d.claim()).await, ["own"]);
}

async fn what_was_cancelled_is_not_claimed(d: &Desk) {
    for id in ["a", "b", "c"] {
        d.enqueue(id).await;
    }
    d.cancel("b").await;
    d.delete("c").await;
    assert_eq!(d.take_ids(d.claim()).await, ["a"]);
    assert_eq!(d.status("b").await, Status::Cancelled);
}

async fn what_was_resumed_elsewhere_is_not_claimed(d: &Desk) {
    d.enqueue("w").await;
    d.resume("w").await;
    assert_eq!(d.take_ids(d.claim()).await, [""; 0]);
    assert_eq!(d.take_ids(d.claim_on(wire::INTERNAL_QUEUE)).await, ["w"]);
}

async fn an_input_comes_with_its_row(d: &Desk) {
    d.put(d.job("w").input("[\"é ☃\"]")).await;
    assert_eq!(d.take_one().await.input, Input::Inline("[\"é ☃\"]".into()));
}

async fn a_missing_input_is_told_from_an_empty_one(d: &Desk) {
    d.enqueue("a").await;
    d.put(d.job("b").input("")).await;
    let claimed = d.take(d.claim().claim_bytes(0)).await;
    let inputs: Vec<_> = claimed.rows.into_iter().map(|row| row.input).collect();
    assert_eq!(inputs, [Input::Missing, Input::Inline("".into())]);
}

async fn an_input_over_the_row_s_bytes_is_deferred(d: &Desk) {
    d.put(d.job("fits").input("x".repeat(100))).await;
    d.put(d.job("over").input("x".repeat(101))).await;
    let claimed = d.take(d.claim().row_bytes(100)).await;
    let inputs: Vec<_> = claimed.rows.into_iter().map(|row| row.input).collect();
    assert_eq!(inputs, [Input::Inline("x".repeat(100).into()), Input::Deferred { bytes: 101 }]);
    let read = d.store().workflow_input(&"over".into()).await.expect("read");
    assert_eq!(read, Some("x".repeat(101).into()));
}

/// A row `w` with this input and four steps of ten bytes, enqueued again.
async fn stepped(d: &Desk, id: &str, input: &str) {
    d.put(d.job(id).input(input)).await;
    let fence = d.take_one().await.fence;
    for at in 0..4 {
        d.record(&fence, at, &format!("{at:010}")).await;
    }
    d.give_back(&fence).await;
}

async fn steps_over_the_row_s_bytes_are_partial(d: &Desk) {
    stepped(d, "w", "").await;
    for (bytes, first) in [(0, 0), (9, 0), (10, 1), (39, 3)] {
        let claimed = d.take(d.claim().row_bytes(bytes)).await.rows.remove(0);
        let all = d.steps("w").await;
        assert_eq!(
            claimed.steps,
            Steps::Partial { first: all[..first].to_vec(), next: all[first].position },
            "{bytes}"
        );
        d.give_back(&claimed.fence).await;
    }
    let claimed = d.take(d.claim().row_bytes(40)).await.rows.remove(0);
    assert_eq!(claimed.steps, Steps::Complete(d.steps("w").await));
}

async fn an_input_comes_before_the_steps(d: &Desk) {
    stepped(d, "w", &"x".repeat(25)).await;
    for (bytes, inline, first) in [(24, false, 2), (25, true, 0), (34, true, 0), (35, true, 1), (64, true, 3)] {
        let claimed = d.take(d.claim().row_bytes(bytes)).await.rows.remove(0);
        let is_inline = matches!(claimed.input, Input::Inline(_));
        assert_eq!((is_inline, claimed.steps.here().len()), (inline, first), "{bytes} bytes");
        assert!(matches!(claimed.steps, Steps::Partial { .. }), "{bytes} bytes");
        d.give_back(&claimed.fence).await;
    }
}

async fn the_bytes_of_a_claim_are_shared_in_order(d: &Desk) {
    for (id, priority) in [("third", 3), ("first", 1), ("second", 2)] {
        d.put(d.job(id).priority(priority).input("x".repeat(40))).await;
    }
    let claimed = d.take(d.claim().claim_bytes(90)).await;
    let inline = |row: &mainstay_store::ClaimedRow| matches!(row.input, Input::Inline(_));
    assert_eq!(rows(&claimed), ["first", "second", "third"]);
    assert_eq!(claimed.rows.iter().map(inline).collect::<Vec<_>>(), [true, true, false]);
}

async fn what_is_deferred_leaves_its_bytes_to_others(d: &Desk) {
    for (id, bytes) in [("a", 60), ("b", 50), ("c", 40), ("d", 1)] {
        d.put(d.job(id).input("x".repeat(bytes))).await;
    }
    let claimed = d.take(d.claim().claim_bytes(100)).await;
    let inputs: Vec<_> = claimed.rows.into_iter().map(|row| matches!(row.input, Input::Inline(_))).collect();
    assert_eq!(inputs, [true, false, true, false]);
}

async fn steps_are_looked_up_for_rows_of_no_attempt(d: &Desk) {
    let fence = d.start("source").await;
    d.record(&fence, 0, "copied").await;
    d.done(mainstay_store::Unit::new().effect(mainstay_store::Fork::new("source", "copy", 5).queue(Q))).await;
    assert_eq!(d.row("copy").await.attempts, 0);
    assert_eq!(d.take_one().await.steps, Steps::Complete(d.steps("source").await));
}

async fn a_row_without_steps_is_complete_at_no_bytes(d: &Desk) {
    d.enqueue("w").await;
    let claimed = d.take(d.claim().row_bytes(0).claim_bytes(0)).await.rows.remove(0);
    assert_eq!(claimed.steps, Steps::Complete(vec![]));
    d.done(mainstay_store::Unit::by(&claimed.fence).step(step(0, "1"))).await;
}

async fn listed(d: &Desk, app: &str) -> Vec<Version> {
    d.store().version_list(&app.into()).await.expect("listed")
}

async fn latest(d: &Desk) -> String {
    listed(d, APP).await.remove(0).name.as_str().to_owned()
}

async fn a_new_version_is_created_and_the_latest(d: &Desk) {
    version(d, "v1").await;
    assert_eq!(listed(d, APP).await, [Version::new("v1", d.now()).app(APP)]);
    version(d, "v0").await;
    assert_eq!(latest(d).await, "v0");
}

async fn a_version_registered_again_keeps_its_age(d: &Desk) {
    version(d, "v1").await;
    version(d, "v2").await;
    let before = listed(d, APP).await;
    d.pass(10);
    let reply = d.store().version_register(&APP.into(), &"v1".into()).await.expect("answered");
    assert_eq!((reply, listed(d, APP).await), (VersionReply::Known, before));
}

async fn a_version_of_another_application_is_owned(d: &Desk) {
    version(d, "v1").await;
    let before = listed(d, APP).await;
    let (app, name) = ("else".into(), "v1".into());
    let registered = d.store().version_register(&app, &name).await.expect("answered");
    let promoted = d.store().version_promote(&app, &name).await.expect("answered");
    assert_eq!((registered, promoted), (VersionReply::Owned(APP.into()), VersionReply::Owned(APP.into())));
    assert_eq!((listed(d, APP).await, listed(d, "else").await), (before, vec![]));
}

async fn a_promoted_version_is_the_latest(d: &Desk) {
    version(d, "v1").await;
    version(d, "v2").await;
    d.pass(10);
    for _ in 0..2 {
        let reply = d.store().version_promote(&APP.into(), &"v1".into()).await.expect("answered");
        assert_eq!((reply, latest(d).await), (VersionReply::Known, "v1".to_owned()));
    }
}

async fn an_unknown_version_is_missing(d: &Desk) {
    let reply = d.store().version_promote(&APP.into(), &"v1".into()).await.expect("answered");
    assert_eq!((reply, listed(d, APP).await), (VersionReply::Missing, vec![]));
}

async fn promotions_in_one_millisecond_have_an_order(d: &Desk) {
    for name in ["b", "a", "c"] {
        d.store().version_register(&APP.into(), &name.into()).await.expect("registered");
        assert_eq!(latest(d).await, name);
    }
    for name in ["a", "b", "c", "a"] {
        d.store().version_promote(&APP.into(), &name.into()).await.expect("promoted");
        assert_eq!(latest(d).await, name);
    }
}

async fn versions_are_listed_latest_first(d: &Desk) {
    for name in ["v1", "v2", "v3"] {
        version(d, name).await;
    }
    d.store().version_register(&"else".into(), &"x1".into()).await.expect("registered");
    d.pass(10);
    d.store().version_promote(&APP.into(), &"v2".into()).await.expect("promoted");
    let names: Vec<String> = listed(d, APP).await.iter().map(|version| version.name.as_str().to_owned()).collect();
    assert_eq!(names, ["v2", "v3", "v1"]);
}

async fn names_of_versions_are_bounded(d: &Desk) {
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        for (app, name) in [(APP, bad), (bad, "v1")] {
            let (app, name) = (app.into(), name.into());
            let registered = d.store().version_register(&app, &name).await.expect_err("a bad name");
            let promoted = d.store().version_promote(&app, &name).await.expect_err("a bad name");
            assert_eq!((registered.op(), promoted.op()), ("version_register", "version_promote"));
            assert_eq!(field(&registered), field(&promoted));
        }
    }
    assert_eq!(listed(d, APP).await, []);
}

fn probe(queues: &[&str]) -> Probe {
    Probe::new(APP, V1).queues(queues.iter().map(|queue| (*queue).into()).collect()).names(named(&[WORK]))
}

async fn due(d: &Desk, probe: Probe) -> Vec<String> {
    let probed = d.store().queue_probe(probe).await.expect("probed");
    probed.due.iter().map(|queue| queue.as_str().to_owned()).collect()
}

async fn a_probe_names_the_queues_with_work(d: &Desk) {
    for queue in ["b", "a", "idle"] {
        d.register(queue, mainstay_store::Limits::default()).await;
    }
    d.put(d.job_on("a", "w1")).await;
    d.put(d.job_on("b", "w2")).await;
    d.put(d.job_on(wire::INTERNAL_QUEUE, "w3")).await;
    assert_eq!(due(d, probe(&["b", "idle", wire::INTERNAL_QUEUE, "a"])).await, ["b", wire::INTERNAL_QUEUE, "a"]);
    assert_eq!(due(d, probe(&["idle"])).await, [""; 0]);
    assert_eq!(due(d, probe(&[])).await, [""; 0]);
}

async fn a_probe_goes_by_eligibility(d: &Desk) {
    d.put(of(d, "a", "other")).await;
    d.put(of(d, "b", WORK).app("else")).await;
    d.put(of(d, "c", WORK).version("v2")).await;
    d.put(d.later("d", 1_000)).await;
    d.put(of(d, "e", WORK)).await;
    d.cancel("e").await;
    assert_eq!(due(d, probe(&[Q])).await, [""; 0]);
    d.enqueue("f").await;
    assert_eq!(due(d, probe(&[Q])).await, [Q]);
    d.take_one().await;
    assert_eq!(due(d, probe(&[Q])).await, [""; 0]);
}

async fn a_probe_leaves_limits_aside(d: &Desk) {
    d.register(Q, mainstay_store::Limits { concurrency: Some(1), ..Default::default() }).await;
    d.enqueue("a").await;
    d.enqueue("b").await;
    assert_eq!(d.take_ids(d.claim()).await, ["a"]);
    assert_eq!(due(d, probe(&[Q])).await, [Q]);
}

async fn a_probe_of_an_unknown_queue_finds_nothing(d: &Desk) {
    assert_eq!(due(d, probe(&["nowhere"])).await, [""; 0]);
    d.put(d.job_on("nowhere", "w")).await;
    assert_eq!(due(d, probe(&["nowhere", Q])).await, [""; 0], "nothing can be claimed of it");
}

async fn a_probe_tells_when_the_next_row_is_due(d: &Desk) {
    let next = async || d.store().queue_probe(probe(&[Q])).await.expect("probed").next_due;
    assert_eq!(next().await, None);
    d.put(d.later("late", 5_000)).await;
    d.put(d.later("soon", 3_000)).await;
    d.put(d.later("theirs", 1_000).app("else")).await;
    assert_eq!(next().await, Some(ms(3_000)));
    d.pass(2_000);
    assert_eq!(next().await, Some(ms(1_000)));
    d.pass(9_000);
    assert_eq!(next().await, Some(ms(0)));
}

async fn a_probe_changes_nothing(d: &Desk) {
    d.enqueue("w").await;
    d.put(d.later("late", 10)).await;
    d.pass(50);
    let before = (d.row("w").await, d.row("late").await);
    let first = d.store().queue_probe(probe(&[Q])).await.expect("probed");
    let again = d.store().queue_probe(probe(&[Q])).await.expect("probed");
    assert_eq!((first.now, &first), (d.now(), &again));
    assert_eq!((d.row("w").await, d.row("late").await), before);
    let taken = d.take(d.claim()).await;
    assert_eq!(texts(&taken.rows.iter().map(|row| row.row.id.clone()).collect::<Vec<WorkflowId>>()), ["w"]);
    d.settle(&taken.rows[0].fence, success("end")).await;
}
