//! Group `time`: every stamp that is stored holds the clock, not only those of rows.

use mainstay_store::{Effect, StepRow, Timestamp, Unit};

use crate::desk::{APP, Desk, Q, ids, ms, step};

cases! { "time";
    a_recorded_step_holds_the_clock;
    a_registered_queue_holds_the_clock;
    a_registered_version_holds_the_clock;
    a_promoted_version_holds_the_clock;
    a_deleted_row_holds_the_clock;
    a_due_time_does_not_hold_the_clock;
}

/// The clock goes back, and no operation works behind `stamp`.
async fn holds(d: &Desk, stamp: Timestamp) {
    d.clock().skew_wall(-5_000);
    assert!(d.now() < stamp, "{stamp} is a stamp of the past");
    for now in [d.tick().await.now, d.enqueue("later").await.created_at] {
        assert!(now >= stamp, "{now} is behind {stamp}");
    }
}

async fn a_recorded_step_holds_the_clock(d: &Desk) {
    let fence = d.start("w").await;
    d.pass(1_000);
    d.done(Unit::by(&fence).step(step(0, "1"))).await;
    let stamp = d.steps("w").await[0].completed_at.expect("a stamp");
    holds(d, stamp).await;
    d.done(Unit::by(&fence).step(StepRow::new(1, "s", mainstay_store::StepOutput::Nothing))).await;
    assert!(d.steps("w").await[1].completed_at >= Some(stamp));
}

async fn a_registered_queue_holds_the_clock(d: &Desk) {
    d.pass(1_000);
    let queue = d.register("new", mainstay_store::Limits::default()).await;
    holds(d, queue.created_at).await;
}

async fn promoted_at(d: &Desk) -> Timestamp {
    d.store().version_list(&APP.into()).await.expect("listed")[0].promoted_at
}

async fn a_registered_version_holds_the_clock(d: &Desk) {
    d.pass(1_000);
    d.store().version_register(&APP.into(), &"v1".into()).await.expect("registered");
    let stamp = promoted_at(d).await;
    holds(d, stamp).await;
}

async fn a_promoted_version_holds_the_clock(d: &Desk) {
    for version in ["v1", "v2"] {
        d.store().version_register(&APP.into(), &version.into()).await.expect("registered");
    }
    d.pass(1_000);
    d.store().version_promote(&APP.into(), &"v1".into()).await.expect("promoted");
    let stamp = promoted_at(d).await;
    holds(d, stamp).await;
}

async fn a_deleted_row_holds_the_clock(d: &Desk) {
    d.pass(1_000);
    let stamp = d.enqueue("w").await.created_at;
    d.delete("w").await;
    holds(d, stamp).await;
}

async fn a_due_time_does_not_hold_the_clock(d: &Desk) {
    d.put(d.later("delayed", 60_000).deadline(ms(90_000))).await;
    let delay = ms(120_000).into();
    d.done(Unit::new().effect(Effect::SetDelay { id: "delayed".into(), delay })).await;
    d.put(d.direct("limited").timeout(ms(90_000))).await;
    d.enqueue("w").await;
    let row = d.take_one().await;
    d.done(Unit::by(&row.fence).effect(Effect::GiveBack { delay: Some(ms(90_000)), begun: true })).await;
    d.pass(100);
    assert_eq!((d.tick().await.now, d.enqueue("next").await.created_at), (d.now(), d.now()));
    assert_eq!(d.moved(Effect::Cancel { ids: ids(&["w"]), children: false }).await, ["w"]);
    assert_eq!(d.take_ids(d.claim_on(Q)).await, ["next"]);
}
