//! Group `claim`: the tick, which makes delayed rows claimable and ends what is past its deadline.

use mainstay_store::{Place, QueueName, Status, Submit, Tick, Ticked, When};

use crate::desk::{APP, Desk, Q, WORK, ids, ms, success, texts};

cases! { "claim";
    a_delayed_row_is_not_claimed_before_its_time;
    a_delayed_row_is_released_when_it_is_due;
    a_released_row_keeps_what_it_does_not_name;
    a_tick_names_the_queues_it_released;
    a_tick_releases_the_rows_that_are_due_first;
    a_tick_releases_rows_of_its_own_application;
    a_tick_releases_unowned_rows;
    a_tick_releases_rows_of_unregistered_queues;
    a_tick_cancels_rows_past_their_deadline;
    a_passed_deadline_cancels_every_open_state;
    a_deadline_that_has_not_come_cancels_nothing;
    a_deadline_of_an_ended_row_is_nothing;
    a_deadline_of_a_parked_row_is_nothing;
    a_tick_cancels_the_earliest_deadlines_first;
    a_tick_answers_cancelled_rows_in_order_of_id;
    a_tick_cancels_up_to_its_limit;
    a_tick_cancels_rows_of_its_own_application;
    a_tick_tells_when_the_next_row_is_due;
    a_tick_over_its_limit_is_due_at_once;
    a_repeated_tick_finds_nothing;
    a_tick_carries_the_clock;
    a_delay_and_a_deadline_at_once_end_the_row;
    a_late_tick_releases_what_came_due_meanwhile;
}

fn queues(ticked: &Ticked) -> Vec<&str> {
    ticked.released.iter().map(QueueName::as_str).collect()
}

async fn limited(d: &Desk, limit: u32) -> Ticked {
    d.store().tick(Tick::new(APP).limit(limit)).await.expect("ticked")
}

async fn a_delayed_row_is_not_claimed_before_its_time(d: &Desk) {
    d.put(d.later("w", 1_000)).await;
    d.pass(999);
    assert_eq!(d.tick().await.released, [""; 0]);
    assert_eq!((d.take_ids(d.claim()).await, d.status("w").await), (vec![], Status::Delayed));
}

async fn a_delayed_row_is_released_when_it_is_due(d: &Desk) {
    d.put(d.later("w", 1_000)).await;
    d.pass(1_000);
    assert_eq!(d.take_ids(d.claim()).await, [""; 0], "a claim releases nothing");
    assert_eq!(queues(&d.tick().await), [Q]);
    assert_eq!(d.take_ids(d.claim()).await, ["w"]);
}

async fn a_released_row_keeps_what_it_does_not_name(d: &Desk) {
    d.put(d.later("w", 1_000).priority(4).timeout(ms(500)).input("[1]")).await;
    let mut expected = d.row("w").await;
    d.pass(1_500);
    d.tick().await;
    (expected.status, expected.updated_at) = (Status::Enqueued, d.now());
    assert_eq!(d.row("w").await, expected);
}

fn delayed_on(d: &Desk, queue: &str, id: &str, millis: u64) -> Submit {
    let place = Place::Queue { name: queue.into(), key: None, delay: Some(ms(millis).into()) };
    Submit::new(id, WORK, d.token(), place).app(APP)
}

async fn a_tick_names_the_queues_it_released(d: &Desk) {
    for (queue, id, millis) in [("b", "w1", 10), ("a", "w2", 10), ("b", "w3", 10), ("c", "w4", 99)] {
        d.put(delayed_on(d, queue, id, millis)).await;
    }
    d.pass(50);
    let ticked = d.tick().await;
    let mut released = queues(&ticked);
    released.sort_unstable();
    assert_eq!(released, ["a", "b"]);
}

async fn a_tick_releases_the_rows_that_are_due_first(d: &Desk) {
    for (id, millis) in [("c", 30), ("d", 10), ("b", 20), ("a", 20), ("e", 40)] {
        d.put(d.later(id, millis)).await;
    }
    d.pass(50);
    let mut released = Vec::new();
    for _ in 0..5 {
        assert_eq!(queues(&limited(d, 1).await), [Q]);
        released.extend(d.take_ids(d.claim()).await);
    }
    assert_eq!(released, ["d", "a", "b", "c", "e"]);
    assert_eq!(limited(d, 1).await.released, [""; 0]);
}

async fn a_tick_releases_rows_of_its_own_application(d: &Desk) {
    d.put(d.later("theirs", 10).app("else")).await;
    d.pass(50);
    assert_eq!((d.tick().await.released, d.status("theirs").await), (vec![], Status::Delayed));
    let theirs = d.store().tick(Tick::new("else")).await.expect("ticked");
    assert_eq!((queues(&theirs), d.status("theirs").await), (vec![Q], Status::Enqueued));
}

async fn a_tick_releases_unowned_rows(d: &Desk) {
    let mut unowned = d.later("w", 10);
    unowned.app = None;
    d.put(unowned).await;
    d.pass(50);
    assert_eq!(queues(&d.tick().await), [Q]);
    assert_eq!((d.status("w").await, d.row("w").await.app), (Status::Enqueued, None));
}

async fn a_tick_releases_rows_of_unregistered_queues(d: &Desk) {
    d.put(delayed_on(d, "nowhere", "w", 10)).await;
    d.pass(50);
    assert_eq!((queues(&d.tick().await), d.status("w").await), (vec!["nowhere"], Status::Enqueued));
}

async fn a_tick_cancels_rows_past_their_deadline(d: &Desk) {
    d.put(d.job("w").deadline(ms(1_000))).await;
    d.pass(1_000);
    assert_eq!(texts(&d.tick().await.cancelled), ["w"]);
    let row = d.row("w").await;
    assert_eq!((row.status, row.completed_at, row.updated_at), (Status::Cancelled, Some(d.now()), d.now()));
    assert_eq!((row.queue, row.dedup, row.started_at), (None, None, None));
}

async fn a_passed_deadline_cancels_every_open_state(d: &Desk) {
    d.put(delayed_on(d, "delayed", "delayed", 60_000).deadline(ms(100))).await;
    d.put(d.job_on("nowhere", "enqueued").deadline(ms(100))).await;
    d.put(d.direct("started").deadline(ms(100))).await;
    d.put(d.job("claimed").timeout(ms(90))).await;
    d.take_one().await;
    d.pass(200);
    assert_eq!(texts(&d.tick().await.cancelled), ["claimed", "delayed", "enqueued", "started"]);
}

async fn a_deadline_that_has_not_come_cancels_nothing(d: &Desk) {
    d.put(d.job("w").deadline(ms(1_000))).await;
    d.pass(999);
    assert_eq!((d.tick().await.cancelled, d.status("w").await), (vec![], Status::Enqueued));
}

async fn a_deadline_of_an_ended_row_is_nothing(d: &Desk) {
    for (id, outcome) in [("a", success("end")), ("b", mainstay_store::Outcome::Error("\"end\"".into()))] {
        let fence = d.put(d.direct(id).deadline(ms(50))).await.fence.expect("a fence");
        d.settle(&fence, outcome).await;
    }
    d.put(d.job("c").deadline(ms(50))).await;
    d.cancel("c").await;
    d.pass(100);
    let ticked = d.tick().await;
    assert_eq!((ticked.cancelled, ticked.next_due), (vec![], None));
    assert_eq!((d.status("a").await, d.status("b").await), (Status::Success, Status::Error));
}

async fn a_deadline_of_a_parked_row_is_nothing(d: &Desk) {
    let fence = d.put(d.direct("w").deadline(ms(50))).await.fence.expect("a fence");
    let parked = mainstay_store::Outcome::Parked("\"why\"".into());
    d.settle(&fence, parked.clone()).await;
    d.pass(100);
    let ticked = d.tick().await;
    assert_eq!((ticked.cancelled, ticked.next_due), (vec![], None));
    assert_eq!(d.standing("w").await, mainstay_store::Standing::Ended(parked));
}

async fn a_tick_cancels_the_earliest_deadlines_first(d: &Desk) {
    for (id, millis) in [("c", 2), ("b", 3), ("a", 4), ("e", 1), ("d", 2)] {
        d.put(d.job(id).deadline(ms(millis))).await;
    }
    d.pass(10);
    let mut cancelled = Vec::new();
    for _ in 0..5 {
        cancelled.extend(texts(&limited(d, 1).await.cancelled));
    }
    assert_eq!(cancelled, ["e", "c", "d", "b", "a"]);
}

async fn a_tick_answers_cancelled_rows_in_order_of_id(d: &Desk) {
    for (id, millis) in [("c", 1), ("a", 3), ("B", 2)] {
        d.put(d.job(id).deadline(ms(millis))).await;
    }
    d.pass(10);
    assert_eq!(texts(&d.tick().await.cancelled), ["B", "a", "c"]);
}

async fn a_tick_cancels_up_to_its_limit(d: &Desk) {
    for n in 0..5 {
        d.put(d.job(&format!("w{n}")).deadline(ms(10))).await;
    }
    d.pass(10);
    let mut cancelled = Vec::new();
    for expected in [2, 2, 1, 0] {
        let ticked = limited(d, 2).await;
        assert_eq!(ticked.cancelled.len(), expected);
        cancelled.extend(texts(&ticked.cancelled));
    }
    cancelled.sort();
    assert_eq!(cancelled, ["w0", "w1", "w2", "w3", "w4"]);
}

async fn a_tick_cancels_rows_of_its_own_application(d: &Desk) {
    d.put(d.job("theirs").app("else").deadline(ms(10))).await;
    let mut unowned = d.job("unowned").deadline(ms(10));
    unowned.app = None;
    d.put(unowned).await;
    d.pass(10);
    assert_eq!(texts(&d.tick().await.cancelled), ["unowned"]);
    assert_eq!(d.status("theirs").await, Status::Enqueued);
}

async fn a_tick_tells_when_the_next_row_is_due(d: &Desk) {
    assert_eq!(d.tick().await.next_due, None);
    d.put(d.later("delayed", 5_000)).await;
    assert_eq!(d.tick().await.next_due, Some(ms(5_000)));
    d.put(d.job("limited").deadline(ms(3_000))).await;
    d.put(d.later("theirs", 1_000).app("else")).await;
    assert_eq!(d.tick().await.next_due, Some(ms(3_000)));
    d.pass(3_000);
    let ticked = d.tick().await;
    assert_eq!((texts(&ticked.cancelled), ticked.next_due), (vec!["limited".to_owned()], Some(ms(2_000))));
}

async fn a_tick_over_its_limit_is_due_at_once(d: &Desk) {
    for id in ["a", "b"] {
        d.put(d.later(id, 10)).await;
    }
    d.pass(20);
    assert_eq!(limited(d, 1).await.next_due, Some(ms(0)));
    assert_eq!(limited(d, 1).await.next_due, None);
}

async fn a_repeated_tick_finds_nothing(d: &Desk) {
    d.put(d.later("a", 10)).await;
    d.put(d.job("b").deadline(ms(10))).await;
    d.pass(10);
    d.tick().await;
    let before = (d.row("a").await, d.row("b").await);
    d.pass(10);
    let again = d.tick().await;
    assert_eq!((again.released, again.cancelled), (vec![], vec![]));
    assert_eq!((d.row("a").await, d.row("b").await), before);
}

async fn a_tick_carries_the_clock(d: &Desk) {
    d.pass(4_321);
    assert_eq!(d.tick().await.now, d.now());
}

async fn a_delay_and_a_deadline_at_once_end_the_row(d: &Desk) {
    d.put(d.later("w", 10).deadline(ms(10))).await;
    d.pass(10);
    assert_eq!(texts(&d.tick().await.cancelled), ["w"]);
    assert_eq!((d.status("w").await, d.take_ids(d.claim()).await), (Status::Cancelled, vec![]));
}

async fn a_late_tick_releases_what_came_due_meanwhile(d: &Desk) {
    for n in 0..4 {
        d.put(d.later(&format!("w{n}"), n * 1_000)).await;
    }
    let delay = When::At(d.now() + ms(100_000));
    d.done(mainstay_store::Unit::new().effect(mainstay_store::Effect::SetDelay { id: "w1".into(), delay })).await;
    d.pass(60_000);
    d.tick().await;
    assert_eq!(d.take_ids(d.claim()).await, ["w0", "w2", "w3"]);
    assert_eq!(d.moved(mainstay_store::Effect::Cancel { ids: ids(&["w1"]), children: false }).await, ["w1"]);
}
