//! Group `restart`: what a store that was closed and opened again has kept. Needs capability `durable`.

use mainstay_store::{
    Beat, Beaten, Effect, Joining, Limits, OnHeld, Outcome, Rate, Refusal, Standing, Status, Stop, Unit, VersionReply,
};

use crate::desk::{APP, Desk, E1, E2, Q, WORK, ids, ms, rows, step, success, texts};

cases! { "restart";
    rows_come_back_whole: Durable;
    inputs_steps_and_outcomes_come_back: Durable;
    queues_come_back_with_their_revision: Durable;
    versions_come_back: Durable;
    leases_come_back_with_their_beat: Durable;
    a_fence_outlives_a_restart: Durable;
    a_void_fence_stays_void: Durable;
    a_claim_is_repeated_after_a_restart: Durable;
    a_submit_is_repeated_after_a_restart: Durable;
    a_direct_start_is_repeated_after_a_restart: Durable;
    starts_in_a_window_come_back: Durable;
    running_rows_fill_the_fleet_after_a_restart: Durable;
    keys_are_still_held: Durable;
    delayed_rows_come_due: Durable;
    a_take_over_goes_on_after_a_restart: Durable;
    the_clock_stays_ahead_of_what_is_stored: Durable;
    what_was_refused_stays_unwritten: Durable;
    what_was_deleted_stays_deleted: Durable;
    the_order_of_a_queue_stays: Durable;
    an_empty_store_opens_again: Durable;
    a_store_opens_again_and_again: Durable;
}

async fn rows_come_back_whole(d: &Desk) {
    for status in Status::ALL {
        d.make(status.as_str(), status).await;
    }
    let all: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
    let before = d.store().workflow_rows(&ids(&all)).await.expect("read");
    d.reopen().await;
    assert_eq!(d.store().workflow_rows(&ids(&all)).await.expect("read"), before);
    assert!(before.iter().all(Option::is_some));
}

async fn inputs_steps_and_outcomes_come_back(d: &Desk) {
    let fence = d.put(d.direct("w").input("[\"é\"]").attributes("{\"a\":1}")).await.fence.expect("a fence");
    d.record(&fence, 0, "first").await;
    d.settle(&fence, success("end")).await;
    let before = (d.row("w").await, d.steps("w").await, d.standing("w").await);
    d.reopen().await;
    assert_eq!((d.row("w").await, d.steps("w").await, d.standing("w").await), before);
    assert_eq!(d.store().workflow_input(&"w".into()).await.expect("read"), Some("[\"é\"]".into()));
}

async fn queues_come_back_with_their_revision(d: &Desk) {
    let limits = Limits {
        concurrency: Some(4),
        worker_concurrency: Some(2),
        rate: Some(Rate { starts: 3, period: ms(2_500) }),
        ..Limits::default()
    };
    let revision = d.register("other", limits).await.revision;
    let (before, stamp) = (d.store().queue_list(&APP.into()).await.expect("listed"), d.tick().await.stamp);
    d.reopen().await;
    assert_eq!(d.store().queue_list(&APP.into()).await.expect("listed"), before);
    let ticked = d.store().tick(mainstay_store::Tick::new(APP).seen(stamp)).await.expect("ticked");
    assert_eq!(ticked.queues, None);
    d.put(d.job_on("other", "w")).await;
    assert_eq!(d.take_ids(d.claim_on("other").revision(revision)).await, ["w"]);
}

async fn versions_come_back(d: &Desk) {
    for name in ["v1", "v2"] {
        d.pass(10);
        d.store().version_register(&APP.into(), &name.into()).await.expect("registered");
    }
    let before = d.store().version_list(&APP.into()).await.expect("listed");
    d.reopen().await;
    assert_eq!(d.store().version_list(&APP.into()).await.expect("listed"), before);
    let reply = d.store().version_register(&APP.into(), &"v1".into()).await.expect("answered");
    assert_eq!(reply, VersionReply::Known);
}

async fn leases_come_back_with_their_beat(d: &Desk) {
    d.store().lease_beat(Beat::new(E1, APP, 5_u64)).await.expect("answered");
    d.reopen().await;
    let listed = d.store().lease_list(&APP.into()).await.expect("listed").leases;
    let beats: Vec<_> = listed.iter().map(|lease| (lease.executor.as_str(), lease.beat, lease.ended)).collect();
    assert_eq!(beats, [(E1, 5, false), (E2, 1, false)]);
    let beaten = d.store().lease_beat(Beat::new(E1, APP, 6_u64)).await.expect("answered");
    assert_eq!(beaten, Beaten::Alive);
}

async fn a_fence_outlives_a_restart(d: &Desk) {
    let (claimed, started) = (d.claimed("claimed").await, d.start("started").await);
    d.reopen().await;
    for fence in [claimed, started] {
        d.done(Unit::by(&fence).step(step(0, "1")).outcome(success("end"))).await;
    }
}

async fn a_void_fence_stays_void(d: &Desk) {
    let first = d.claimed("w").await;
    d.give_back(&first).await;
    d.take_one().await;
    d.reopen().await;
    let by = d.superseded(Unit::by(&first).outcome(success("late"))).await;
    assert_eq!(by, Standing::Open(Status::Pending));
}

async fn a_claim_is_repeated_after_a_restart(d: &Desk) {
    for id in ["a", "b", "c"] {
        d.enqueue(id).await;
    }
    let claim = d.claim().budget(2);
    let first = d.take(claim.clone()).await;
    d.reopen().await;
    let again = d.take(claim.repeat(true)).await;
    assert_eq!((rows(&again), &again.rows), (vec!["a".to_owned(), "b".to_owned()], &first.rows));
}

async fn a_submit_is_repeated_after_a_restart(d: &Desk) {
    let submit = d.job("w");
    let first = d.put(submit.clone()).await;
    d.reopen().await;
    d.pass(100);
    assert_eq!(d.put(submit).await, first);
}

async fn a_direct_start_is_repeated_after_a_restart(d: &Desk) {
    let submit = d.direct("w").timeout(ms(9_000));
    let first = d.put(submit.clone()).await;
    d.reopen().await;
    assert_eq!(d.put(submit).await, first);
    d.settle(&first.fence.expect("a fence"), success("end")).await;
}

async fn starts_in_a_window_come_back(d: &Desk) {
    d.register(Q, Limits { rate: Some(Rate { starts: 2, period: ms(60_000) }), ..Limits::default() }).await;
    for id in ["a", "b", "c"] {
        d.enqueue(id).await;
    }
    d.pass(10);
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b"]);
    d.reopen().await;
    d.pass(20_000);
    let claimed = d.take(d.claim()).await;
    assert_eq!((claimed.rows.len(), claimed.stop), (0, Stop::RateIn(ms(40_000))));
}

async fn running_rows_fill_the_fleet_after_a_restart(d: &Desk) {
    d.register(Q, Limits { concurrency: Some(1), ..Limits::default() }).await;
    let fence = d.claimed("a").await;
    d.enqueue("b").await;
    d.reopen().await;
    assert_eq!(d.take(d.claim()).await.rows.len(), 0);
    d.settle(&fence, success("end")).await;
    assert_eq!(d.take_ids(d.claim()).await, ["b"]);
}

async fn keys_are_still_held(d: &Desk) {
    let keyed = |id: &str| d.job(id).dedup(Joining { key: "k".into(), on_held: OnHeld::Reject });
    d.put(keyed("w")).await;
    d.reopen().await;
    let refused = d.refused(Unit::new().effect(keyed("v"))).await;
    assert_eq!(refused, (0, Refusal::Held { holder: "w".into() }));
}

async fn delayed_rows_come_due(d: &Desk) {
    d.put(d.later("delayed", 1_000)).await;
    d.put(d.job("limited").deadline(ms(1_000))).await;
    d.reopen().await;
    d.pass(1_000);
    let ticked = d.tick().await;
    assert_eq!((ticked.released.len(), texts(&ticked.cancelled)), (1, vec!["limited".to_owned()]));
    assert_eq!(d.take_ids(d.claim()).await, ["delayed"]);
}

async fn a_take_over_goes_on_after_a_restart(d: &Desk) {
    for id in ["a", "b"] {
        d.claimed(id).await;
    }
    let first = d.take_over_one(E1).await;
    d.reopen().await;
    assert_eq!(d.take(d.claim()).await.stop, Stop::Unleased);
    assert_eq!(d.take_over(E1).await, [if first == "a" { "b" } else { "a" }]);
    assert_eq!(d.take_ids(d.claim_by(E2)).await, ["a", "b"]);
}

async fn the_clock_stays_ahead_of_what_is_stored(d: &Desk) {
    d.pass(60_000);
    let first = d.enqueue("a").await.created_at;
    d.clock().skew_wall(-30_000);
    d.reopen().await;
    let second = d.enqueue("b").await.created_at;
    assert!(second >= first, "{second} is before {first}");
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b"]);
}

async fn what_was_refused_stays_unwritten(d: &Desk) {
    d.enqueue("taken").await;
    let other = mainstay_store::Submit::new("taken", "other", d.token(), mainstay_store::Place::queue(Q));
    d.refused(Unit::new().effect(d.job("lost")).effect(other)).await;
    d.enqueue("kept").await;
    d.reopen().await;
    assert_eq!((d.find("lost").await, d.status("kept").await), (None, Status::Enqueued));
}

async fn what_was_deleted_stays_deleted(d: &Desk) {
    let fence = d.start("w").await;
    d.record(&fence, 0, "old").await;
    d.moved(Effect::Delete { ids: ids(&["w"]), children: false }).await;
    d.store().queue_delete(&APP.into(), &Q.into()).await.expect("deleted");
    d.reopen().await;
    assert_eq!(
        (d.standing("w").await, d.store().queue_list(&APP.into()).await.expect("listed")),
        (Standing::Gone, vec![])
    );
    d.enqueue("w").await;
    assert_eq!(d.steps("w").await, []);
}

async fn the_order_of_a_queue_stays(d: &Desk) {
    for (id, priority) in [("c", 1), ("b", 0), ("a", 1), ("d", 2)] {
        d.put(d.job(id).priority(priority)).await;
        d.pass(1);
    }
    d.reopen().await;
    assert_eq!(d.take_ids(d.claim()).await, ["b", "c", "a", "d"]);
}

async fn an_empty_store_opens_again(d: &Desk) {
    d.reopen().await;
    assert_eq!(d.standing("w").await, Standing::Gone);
    assert_eq!(d.claimed("w").await.workflow().as_str(), "w");
    assert_eq!(d.row("w").await.name, WORK);
}

async fn a_store_opens_again_and_again(d: &Desk) {
    for n in 0..5 {
        let fence = d.claimed(&format!("w{n}")).await;
        d.reopen().await;
        d.settle(&fence, Outcome::Error("\"end\"".into())).await;
        d.reopen().await;
    }
    for n in 0..5 {
        assert_eq!(d.status(&format!("w{n}")).await, Status::Error);
    }
}
