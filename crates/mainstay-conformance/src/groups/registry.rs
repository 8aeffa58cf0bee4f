//! Group `limits`: the registry of queues.

use std::collections::BTreeSet;
use std::time::Duration;

use mainstay_store::{
    Capability, Change, ErrorKind, Limits, OnConflict, Queue, QueueChange, QueueReply, Rate, RegisterQueue, StoreError,
    UpdateQueue, VersionReply, wire,
};

use crate::desk::{APP, Desk, Q, field, ms};

cases! { "limits";
    a_new_queue_is_created;
    a_queue_has_the_defaults_of_a_registration;
    a_registration_replaces_limits_and_interval;
    a_registration_keeps_age_and_owner;
    a_registration_may_keep_what_is_there;
    a_registration_may_ask_for_the_latest_version;
    a_registration_without_versions_is_that_of_the_latest;
    a_queue_of_another_application_is_owned;
    a_repeated_registration_ends_alike;
    a_registration_that_changes_nothing_makes_no_claim_stale;
    incoherent_limits_are_invalid;
    an_interval_is_at_least_a_millisecond;
    the_internal_queue_is_reserved;
    names_of_queues_are_bounded;
    limits_of_a_partition_need_the_capability;
    a_change_sets_clears_and_keeps;
    a_change_is_checked_against_what_is_stored;
    an_invalid_change_writes_nothing;
    an_empty_change_writes_nothing;
    a_change_of_an_unknown_queue_is_missing;
    a_change_of_another_s_queue_is_owned;
    a_change_to_a_partition_needs_the_capability;
    a_repeated_change_ends_alike;
    a_deleted_queue_is_gone_and_its_rows_stay;
    a_delete_of_an_unknown_queue_finds_none;
    another_s_queue_is_not_deleted;
    a_deleted_queue_may_be_another_s;
    queues_are_listed_by_name;
    only_one_s_own_queues_are_listed;
    a_changed_queue_has_another_revision;
    a_queue_made_anew_has_another_revision;
    queue_names_differ_in_case;
    a_tick_gives_the_queues_when_they_changed;
    every_change_of_the_queues_moves_the_stamp;
    a_refused_change_leaves_the_stamp;
}

fn limited(concurrency: u32) -> Limits {
    Limits { concurrency: Some(concurrency), ..Limits::default() }
}

fn rate(starts: u32, millis: u64) -> Option<Rate> {
    Some(Rate { starts, period: ms(millis) })
}

async fn register(d: &Desk, request: RegisterQueue) -> QueueReply {
    d.store().queue_register(request).await.expect("answered")
}

async fn update(d: &Desk, request: UpdateQueue) -> QueueReply {
    d.store().queue_update(request).await.expect("answered")
}

async fn list(d: &Desk, app: &str) -> Vec<Queue> {
    d.store().queue_list(&app.into()).await.expect("listed")
}

async fn stored(d: &Desk, name: &str) -> Queue {
    let queues = list(d, APP).await;
    queues.into_iter().find(|queue| queue.name == *name).expect("the queue is listed")
}

fn names(queues: &[Queue]) -> Vec<&str> {
    queues.iter().map(|queue| queue.name.as_str()).collect()
}

async fn a_new_queue_is_created(d: &Desk) {
    d.pass(50);
    let limits =
        Limits { concurrency: Some(5), worker_concurrency: Some(2), rate: rate(3, 1_500), ..Limits::default() };
    let request = RegisterQueue::new("new", APP).limits(limits).polling(ms(250));
    let QueueReply::Created(queue) = register(d, request).await else { panic!("not created") };
    assert_eq!((queue.name.as_str(), &queue.app, queue.stored), ("new", &Some(APP.into()), limits));
    assert_eq!((queue.polling, queue.created_at, queue.partition_flag), (ms(250), d.now(), false));
    assert_eq!(stored(d, "new").await, queue);
}

async fn a_queue_has_the_defaults_of_a_registration(d: &Desk) {
    let QueueReply::Created(queue) = register(d, RegisterQueue::new("new", APP)).await else { panic!("not created") };
    assert_eq!((queue.stored, queue.limits()), (Limits::default(), Limits::default()));
    assert_eq!(queue.polling, ms(wire::POLL_MILLIS));
}

async fn a_registration_replaces_limits_and_interval(d: &Desk) {
    register(d, RegisterQueue::new(Q, APP).limits(limited(5)).polling(ms(70))).await;
    let limits = Limits { rate: rate(1, 10), ..Limits::default() };
    let QueueReply::Updated(queue) = register(d, RegisterQueue::new(Q, APP).limits(limits)).await else {
        panic!("not updated")
    };
    assert_eq!((queue.stored, queue.polling), (limits, ms(wire::POLL_MILLIS)));
    assert_eq!(stored(d, Q).await, queue);
}

async fn a_registration_keeps_age_and_owner(d: &Desk) {
    let before = stored(d, Q).await;
    d.pass(1_000);
    d.register(Q, limited(5)).await;
    let after = stored(d, Q).await;
    assert_eq!((after.created_at, after.app), (before.created_at, before.app));
}

async fn a_registration_may_keep_what_is_there(d: &Desk) {
    let before = d.register(Q, limited(5)).await;
    let request = RegisterQueue::new(Q, APP).limits(limited(9)).on_conflict(OnConflict::Keep);
    assert_eq!(register(d, request).await, QueueReply::Kept(before.clone()));
    assert_eq!(stored(d, Q).await, before);
    let request = RegisterQueue::new("new", APP).limits(limited(9)).on_conflict(OnConflict::Keep);
    assert!(matches!(register(d, request).await, QueueReply::Created(_)));
}

async fn a_registration_may_ask_for_the_latest_version(d: &Desk) {
    for version in ["v1", "v2"] {
        d.pass(10);
        let reply = d.store().version_register(&APP.into(), &version.into()).await.expect("answered");
        assert_eq!(reply, VersionReply::Created);
    }
    let of = |version: &str| {
        RegisterQueue::new(Q, APP).limits(limited(3)).on_conflict(OnConflict::UpdateIfLatest(version.into()))
    };
    for other in ["v1", "v3"] {
        let QueueReply::Kept(queue) = register(d, of(other)).await else { panic!("{other} is not the latest") };
        assert_eq!(queue.stored, Limits::default());
    }
    assert!(matches!(register(d, of("v2")).await, QueueReply::Updated(_)));
    assert_eq!(stored(d, Q).await.stored, limited(3));
}

async fn a_registration_without_versions_is_that_of_the_latest(d: &Desk) {
    d.store().version_register(&"else".into(), &"x9".into()).await.expect("registered");
    let request = RegisterQueue::new(Q, APP).limits(limited(3)).on_conflict(OnConflict::UpdateIfLatest("v1".into()));
    assert!(matches!(register(d, request).await, QueueReply::Updated(_)));
}

async fn a_queue_of_another_application_is_owned(d: &Desk) {
    let before = stored(d, Q).await;
    for policy in [OnConflict::Keep, OnConflict::Update, OnConflict::UpdateIfLatest("v1".into())] {
        let request = RegisterQueue::new(Q, "else").limits(limited(1)).on_conflict(policy);
        assert_eq!(register(d, request).await, QueueReply::Owned(APP.into()));
    }
    assert_eq!((stored(d, Q).await, list(d, "else").await), (before, vec![]));
}

async fn a_repeated_registration_ends_alike(d: &Desk) {
    let request = RegisterQueue::new("new", APP).limits(limited(2));
    register(d, request.clone()).await;
    let first = stored(d, "new").await;
    d.pass(1_000);
    register(d, request).await;
    let mut again = stored(d, "new").await;
    again.revision = first.revision;
    assert_eq!(again, first);
}

async fn a_registration_that_changes_nothing_makes_no_claim_stale(d: &Desk) {
    let planned = d.register(Q, limited(2)).await.revision;
    d.enqueue("w").await;
    let reply = register(d, RegisterQueue::new(Q, APP).limits(limited(2))).await;
    assert!(matches!(reply, QueueReply::Kept(_)), "{reply:?}");
    assert_eq!(d.take_ids(d.claim().revision(planned)).await, ["w"]);
}

async fn incoherent_limits_are_invalid(d: &Desk) {
    let none = Limits::default();
    let cases = [
        ("concurrency", limited(0)),
        ("worker_concurrency", Limits { worker_concurrency: Some(0), ..none }),
        ("worker_concurrency", Limits { worker_concurrency: Some(3), ..limited(2) }),
        ("rate.starts", Limits { rate: rate(0, 1_000), ..none }),
        ("rate.period", Limits { rate: rate(1, 0), ..none }),
        ("concurrency", limited(1 << 31)),
        ("rate.starts", Limits { rate: rate(1 << 31, 1), ..none }),
        ("rate.period", Limits { rate: Some(Rate { starts: 1, period: Duration::MAX }), ..none }),
        ("rate.period", Limits { rate: Some(Rate { starts: 1, period: Duration::from_micros(999) }), ..none }),
    ];
    let before = stored(d, Q).await;
    for (name, limits) in cases {
        let error = d.store().queue_register(RegisterQueue::new(Q, APP).limits(limits)).await.expect_err(name);
        assert_eq!((field(&error).as_str(), error.op()), (name, "queue_register"));
    }
    assert_eq!(stored(d, Q).await, before);
    d.register(Q, Limits { worker_concurrency: Some(2), ..limited(2) }).await;
}

async fn an_interval_is_at_least_a_millisecond(d: &Desk) {
    let error = d.store().queue_register(RegisterQueue::new("new", APP).polling(ms(0))).await.expect_err("no interval");
    assert_eq!(field(&error), "polling");
    let change = QueueChange { polling: Some(Duration::from_micros(10)), ..QueueChange::default() };
    let error = d.store().queue_update(UpdateQueue::new(Q, APP, change)).await.expect_err("no interval");
    assert_eq!(field(&error), "polling");
}

async fn the_internal_queue_is_reserved(d: &Desk) {
    let name = wire::INTERNAL_QUEUE;
    let error = d.store().queue_register(RegisterQueue::new(name, APP)).await.expect_err("reserved");
    assert_eq!(field(&error), "name");
    assert!(!d.store().queue_delete(&APP.into(), &name.into()).await.expect("answered"));
    assert!(!names(&list(d, APP).await).contains(&name));
}

async fn names_of_queues_are_bounded(d: &Desk) {
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        let requests = [RegisterQueue::new(bad, APP), RegisterQueue::new("new", bad)];
        for request in requests {
            field(&d.store().queue_register(request).await.expect_err("a bad name"));
        }
        let change = QueueChange { concurrency: Change::Set(1), ..QueueChange::default() };
        for (name, app) in [(bad, APP), (Q, bad)] {
            field(&d.store().queue_update(UpdateQueue::new(name, app, change)).await.expect_err("a bad name"));
        }
    }
    assert_eq!(names(&list(d, APP).await), [Q]);
}

fn supported<T>(d: &Desk, answer: &Result<T, StoreError>) {
    let unsupported = answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unsupported);
    assert_eq!(unsupported, !d.has(Capability::Partitions));
}

async fn limits_of_a_partition_need_the_capability(d: &Desk) {
    let none = Limits::default();
    let limits = [
        Limits { partition_concurrency: Some(1), ..none },
        Limits { partition_worker_concurrency: Some(1), ..none },
        Limits { partition_rate: rate(1, 10), ..none },
    ];
    for limits in limits {
        let answer = d.store().queue_register(RegisterQueue::new("new", APP).limits(limits)).await;
        supported(d, &answer);
    }
    assert_eq!(names(&list(d, APP).await).contains(&"new"), d.has(Capability::Partitions));
}

async fn a_change_sets_clears_and_keeps(d: &Desk) {
    let limits =
        Limits { concurrency: Some(5), worker_concurrency: Some(2), rate: rate(3, 1_000), ..Limits::default() };
    d.register(Q, limits).await;
    let change = QueueChange {
        concurrency: Change::Set(7),
        rate: Change::Clear,
        polling: Some(ms(33)),
        ..QueueChange::default()
    };
    let QueueReply::Updated(queue) = update(d, UpdateQueue::new(Q, APP, change)).await else { panic!("not updated") };
    assert_eq!(queue.stored, Limits { concurrency: Some(7), worker_concurrency: Some(2), ..Limits::default() });
    assert_eq!((queue.polling, stored(d, Q).await), (ms(33), queue));
}

async fn a_change_is_checked_against_what_is_stored(d: &Desk) {
    d.register(Q, Limits { worker_concurrency: Some(3), ..limited(5) }).await;
    let lower = QueueChange { concurrency: Change::Set(2), ..QueueChange::default() };
    let error = d.store().queue_update(UpdateQueue::new(Q, APP, lower)).await.expect_err("below the worker's");
    assert_eq!((field(&error).as_str(), error.op()), ("worker_concurrency", "queue_update"));
    let both = QueueChange { worker_concurrency: Change::Clear, ..lower };
    assert!(matches!(update(d, UpdateQueue::new(Q, APP, both)).await, QueueReply::Updated(_)));
}

async fn an_invalid_change_writes_nothing(d: &Desk) {
    let before = d.register(Q, limited(5)).await;
    let change = QueueChange { concurrency: Change::Set(0), polling: Some(ms(9)), ..QueueChange::default() };
    let error = d.store().queue_update(UpdateQueue::new(Q, APP, change)).await.expect_err("zero");
    assert_eq!((field(&error).as_str(), stored(d, Q).await), ("concurrency", before));
}

async fn an_empty_change_writes_nothing(d: &Desk) {
    let before = d.register(Q, limited(5)).await;
    let reply = update(d, UpdateQueue::new(Q, APP, QueueChange::default())).await;
    assert_eq!((reply, stored(d, Q).await), (QueueReply::Kept(before.clone()), before));
}

async fn a_change_of_an_unknown_queue_is_missing(d: &Desk) {
    let set = QueueChange { concurrency: Change::Set(1), ..QueueChange::default() };
    for change in [set, QueueChange::default()] {
        assert_eq!(update(d, UpdateQueue::new("nowhere", APP, change)).await, QueueReply::Missing);
    }
    assert_eq!(names(&list(d, APP).await), [Q]);
}

async fn a_change_of_another_s_queue_is_owned(d: &Desk) {
    let before = stored(d, Q).await;
    let change = QueueChange { concurrency: Change::Set(1), ..QueueChange::default() };
    assert_eq!(update(d, UpdateQueue::new(Q, "else", change)).await, QueueReply::Owned(APP.into()));
    assert_eq!(stored(d, Q).await, before);
}

async fn a_change_to_a_partition_needs_the_capability(d: &Desk) {
    let before = stored(d, Q).await;
    let change = QueueChange { partition_concurrency: Change::Set(1), ..QueueChange::default() };
    let answer = d.store().queue_update(UpdateQueue::new(Q, APP, change)).await;
    supported(d, &answer);
    assert_eq!(stored(d, Q).await == before, !d.has(Capability::Partitions));
}

async fn a_repeated_change_ends_alike(d: &Desk) {
    let change =
        QueueChange { concurrency: Change::Set(4), worker_concurrency: Change::Clear, ..QueueChange::default() };
    update(d, UpdateQueue::new(Q, APP, change)).await;
    let first = stored(d, Q).await;
    update(d, UpdateQueue::new(Q, APP, change)).await;
    assert_eq!(stored(d, Q).await.stored, first.stored);
}

async fn delete(d: &Desk, app: &str, name: &str) -> bool {
    d.store().queue_delete(&app.into(), &name.into()).await.expect("answered")
}

async fn a_deleted_queue_is_gone_and_its_rows_stay(d: &Desk) {
    d.enqueue("w").await;
    let before = d.row("w").await;
    assert_eq!((delete(d, APP, Q).await, delete(d, APP, Q).await), (true, false));
    assert_eq!((list(d, APP).await, d.row("w").await), (vec![], before));
}

async fn a_delete_of_an_unknown_queue_finds_none(d: &Desk) {
    assert!(!delete(d, APP, "nowhere").await);
}

async fn another_s_queue_is_not_deleted(d: &Desk) {
    let before = stored(d, Q).await;
    assert!(!delete(d, "else", Q).await);
    assert_eq!(stored(d, Q).await, before);
}

async fn a_deleted_queue_may_be_another_s(d: &Desk) {
    delete(d, APP, Q).await;
    let reply = register(d, RegisterQueue::new(Q, "else")).await;
    assert!(matches!(reply, QueueReply::Created(_)), "{reply:?}");
    assert_eq!((names(&list(d, "else").await), list(d, APP).await), (vec![Q], vec![]));
}

async fn queues_are_listed_by_name(d: &Desk) {
    for name in ["b", "A", "é", "a"] {
        d.register(name, Limits::default()).await;
    }
    assert_eq!(names(&list(d, APP).await), ["A", "a", "b", Q, "é"]);
}

async fn only_one_s_own_queues_are_listed(d: &Desk) {
    register(d, RegisterQueue::new("theirs", "else")).await;
    assert_eq!((names(&list(d, APP).await), names(&list(d, "else").await)), (vec![Q], vec!["theirs"]));
    assert_eq!(list(d, "nobody").await, []);
}

async fn a_changed_queue_has_another_revision(d: &Desk) {
    let mut seen = BTreeSet::from([stored(d, Q).await.revision]);
    for concurrency in [1, 2, 1] {
        assert!(seen.insert(d.register(Q, limited(concurrency)).await.revision), "registered");
    }
    let change = QueueChange { polling: Some(ms(5)), ..QueueChange::default() };
    let QueueReply::Updated(queue) = update(d, UpdateQueue::new(Q, APP, change)).await else { panic!("not updated") };
    assert!(seen.insert(queue.revision), "updated");
}

async fn a_queue_made_anew_has_another_revision(d: &Desk) {
    let planned = stored(d, Q).await.revision;
    d.enqueue("w").await;
    delete(d, APP, Q).await;
    assert_ne!(d.register(Q, Limits::default()).await.revision, planned);
    let claimed = d.take(d.claim().revision(planned)).await;
    assert!(matches!(claimed.stop, mainstay_store::Stop::Stale(_)), "{:?}", claimed.stop);
}

async fn queue_names_differ_in_case(d: &Desk) {
    d.register("Q", limited(1)).await;
    assert_eq!((stored(d, Q).await.stored, stored(d, "Q").await.stored), (Limits::default(), limited(1)));
    delete(d, APP, "Q").await;
    assert_eq!(names(&list(d, APP).await), [Q]);
}

async fn tick(d: &Desk, app: &str, seen: Option<mainstay_store::RegistryStamp>) -> mainstay_store::Ticked {
    let mut request = mainstay_store::Tick::new(app);
    request.seen = seen;
    d.store().tick(request).await.expect("ticked")
}

async fn a_tick_gives_the_queues_when_they_changed(d: &Desk) {
    register(d, RegisterQueue::new("theirs", "else")).await;
    let first = tick(d, APP, None).await;
    assert_eq!((first.queues.as_ref(), first.malformed.len()), (Some(&list(d, APP).await), 0));
    assert_eq!(tick(d, APP, Some(first.stamp)).await.queues, None);
    d.register("more", limited(2)).await;
    let second = tick(d, APP, Some(first.stamp)).await;
    assert_ne!(second.stamp, first.stamp);
    assert_eq!(second.queues, Some(list(d, APP).await));
}

async fn every_change_of_the_queues_moves_the_stamp(d: &Desk) {
    let mut seen = BTreeSet::from([tick(d, APP, None).await.stamp]);
    d.register(Q, limited(4)).await;
    assert!(seen.insert(tick(d, APP, None).await.stamp), "registered");
    let change = QueueChange { concurrency: Change::Clear, ..QueueChange::default() };
    update(d, UpdateQueue::new(Q, APP, change)).await;
    assert!(seen.insert(tick(d, APP, None).await.stamp), "updated");
    delete(d, APP, Q).await;
    assert!(seen.insert(tick(d, APP, None).await.stamp), "deleted");
    d.register(Q, Limits::default()).await;
    assert!(seen.insert(tick(d, APP, None).await.stamp), "made anew");
}

async fn a_refused_change_leaves_the_stamp(d: &Desk) {
    let before = tick(d, APP, None).await.stamp;
    register(d, RegisterQueue::new(Q, "else").limits(limited(1))).await;
    register(d, RegisterQueue::new(Q, APP).limits(limited(1)).on_conflict(OnConflict::Keep)).await;
    update(d, UpdateQueue::new("nowhere", APP, QueueChange::default())).await;
    delete(d, "else", Q).await;
    assert!(d.store().queue_register(RegisterQueue::new(Q, APP).limits(limited(0))).await.is_err());
    assert_eq!(tick(d, APP, Some(before)).await.queues, None);
}
