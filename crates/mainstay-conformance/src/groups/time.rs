//! Group `time`: the store's clock, which is read once an operation and never behind what it has stored.

use std::time::Duration;

use mainstay_store::{Audit, Collect, Probe, Status, StepOutput, StepResult, StepRow, Tick, Timestamp, Unit, When};

use crate::desk::{APP, Desk, E1, V1, ms, step, success};

cases! { "time";
    every_reply_carries_the_manual_clock;
    a_clock_that_went_back_is_not_followed;
    a_clock_that_went_back_makes_no_earlier_row;
    a_clock_that_went_back_releases_nothing_early;
    a_clock_that_went_back_keeps_executions_apart;
    an_endless_delay_is_far_away;
    an_endless_timeout_is_far_away;
    an_endless_sleep_is_far_away;
    an_endless_age_collects_nothing;
    stamps_are_whole_milliseconds;
    one_operation_reads_one_time;
}

async fn every_reply_carries_the_manual_clock(d: &Desk) {
    d.enqueue("w").await;
    for passed in [1, 1_000, 86_400_000] {
        d.pass(passed);
        let (store, now) = (d.store(), d.now());
        assert_eq!(store.commit(&[]).await.expect("committed").now, now);
        assert_eq!(store.tick(Tick::new(APP)).await.expect("ticked").now, now);
        assert_eq!(store.queue_probe(Probe::new(APP, V1)).await.expect("probed").now, now);
        assert_eq!(store.queue_audit(Audit::new(E1)).await.expect("audited").now, now);
        assert_eq!(store.lease_list(&APP.into()).await.expect("listed").now, now);
        assert_eq!(store.collect(Collect::new(APP, ms(0))).await.expect("collected").now, now);
        assert_eq!(d.take(d.claim_on("nowhere")).await.now, now);
    }
}

async fn a_clock_that_went_back_is_not_followed(d: &Desk) {
    d.pass(10_000);
    d.enqueue("w").await;
    let latest = d.row("w").await.updated_at;
    d.clock().skew_wall(-5_000);
    assert!(d.now() < latest);
    for now in [d.store().commit(&[]).await.expect("committed").now, d.tick().await.now] {
        assert!(now >= latest, "{now} is behind {latest}");
    }
    d.clock().skew_wall(6_000);
    assert_eq!(d.tick().await.now, d.now());
}

async fn a_clock_that_went_back_makes_no_earlier_row(d: &Desk) {
    d.pass(10_000);
    let first = d.enqueue("a").await.created_at;
    d.clock().skew_wall(-5_000);
    let second = d.enqueue("b").await.created_at;
    assert!(second >= first, "{second} is before {first}");
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b"]);
    for id in ["a", "b"] {
        let row = d.row(id).await;
        assert!(row.updated_at >= row.created_at && row.started_at > Some(row.created_at), "{row:?}");
    }
    let fence = d.put(d.direct("c")).await.fence.expect("a fence");
    d.done(Unit::by(&fence).step(step(0, "1")).outcome(success("end"))).await;
    assert!(d.row("c").await.completed_at >= Some(first) && d.steps("c").await[0].completed_at >= Some(first));
}

async fn a_clock_that_went_back_releases_nothing_early(d: &Desk) {
    d.put(d.later("w", 1_000)).await;
    let due = d.row("w").await.delay_until.expect("a due time");
    d.clock().skew_wall(-60_000);
    d.pass(500);
    assert_eq!((d.tick().await.released.len(), d.status("w").await), (0, Status::Delayed));
    d.pass(60_500);
    let ticked = d.tick().await;
    assert!(ticked.now >= due && ticked.released.len() == 1, "{ticked:?}");
}

async fn a_clock_that_went_back_keeps_executions_apart(d: &Desk) {
    d.enqueue("w").await;
    let mut last = Timestamp::EPOCH;
    for _ in 0..4 {
        let claimed = d.take_one().await;
        let started = claimed.row.started_at.expect("a start stamp");
        assert!(started > last, "{started} is not after {last}");
        last = started;
        d.clock().skew_wall(-1_000);
        d.give_back(&claimed.fence).await;
    }
}

/// A thousand years after the desk's beginning.
fn far(d: &Desk) -> Timestamp {
    d.now() + Duration::from_secs(1_000 * 365 * 86_400)
}

async fn an_endless_delay_is_far_away(d: &Desk) {
    d.put(d.later("w", 10)).await;
    for delay in [When::In(Duration::MAX), When::At(Timestamp::from_millis(i64::MAX))] {
        d.done(Unit::new().effect(mainstay_store::Effect::SetDelay { id: "w".into(), delay })).await;
        assert!(d.row("w").await.delay_until > Some(far(d)));
    }
    d.pass(86_400_000);
    let ticked = d.tick().await;
    assert_eq!((ticked.released, d.status("w").await), (vec![], Status::Delayed));
    assert!(ticked.next_due > Some(ms(86_400_000)));
}

async fn an_endless_timeout_is_far_away(d: &Desk) {
    d.put(d.job("w").timeout(Duration::MAX)).await;
    assert!(d.take_one().await.row.deadline > Some(far(d)));
    assert!(d.put(d.direct("v").timeout(Duration::MAX)).await.deadline > Some(far(d)));
    d.put(d.job("u").deadline(Duration::MAX)).await;
    d.pass(86_400_000);
    assert_eq!(d.tick().await.cancelled, [""; 0]);
    assert!(d.row("w").await.timeout > Some(ms(86_400_000)));
}

async fn an_endless_sleep_is_far_away(d: &Desk) {
    let fence = d.start("w").await;
    let took = StepRow::new(0, "sleep", StepOutput::WakeIn(Duration::MAX)).took(Duration::MAX);
    d.done(Unit::by(&fence).step(took)).await;
    let stored = d.steps("w").await.remove(0);
    assert!(stored.completed_at > Some(far(d)) && stored.started_at < Some(d.now()), "{stored:?}");
    let StepResult::Value(text) = stored.result else { panic!("not a value: {:?}", stored.result) };
    assert_eq!(text.as_str().parse::<i64>().map(Timestamp::from_millis).ok(), stored.completed_at);
}

async fn an_endless_age_collects_nothing(d: &Desk) {
    let fence = d.start("w").await;
    d.settle(&fence, success("end")).await;
    d.pass(86_400_000);
    let collected = d.store().collect(Collect::new(APP, Duration::MAX)).await.expect("collected");
    assert_eq!((collected.removed, collected.more), (0, false));
    d.make("v", Status::Cancelled).await;
}

async fn stamps_are_whole_milliseconds(d: &Desk) {
    d.clock().advance(Duration::from_micros(1_500));
    let odd = Duration::from_micros(2_700);
    d.put(d.job("w").timeout(odd).deadline(odd)).await;
    let row = d.row("w").await;
    assert_eq!((row.created_at, row.deadline), (d.now(), Some(d.now() + ms(2))));
    assert_eq!(row.timeout.map(|timeout| timeout.as_millis()), Some(2));
}

async fn one_operation_reads_one_time(d: &Desk) {
    let jobs: Vec<Unit> = (0..50).map(|n| Unit::new().effect(d.job(&format!("w{n:02}")))).collect();
    let committed = d.store().commit(&jobs).await.expect("committed");
    d.pass(1_000);
    let claimed = d.take(d.claim()).await;
    for row in &claimed.rows {
        assert_eq!((row.row.created_at, row.row.started_at), (committed.now, Some(claimed.now)));
    }
    assert_eq!(claimed.rows.len(), 50);
}
