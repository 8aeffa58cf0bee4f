//! Group `time`: a store without a clock of its own, which reads that of its environment.

use mainstay_store::{Status, Timestamp};

use crate::desk::{Desk, Opening, Q, ms, success};

cases! { "time", Opening::SERVER;
    the_server_clock_is_that_of_the_environment;
    a_server_clock_that_went_back_is_not_followed;
    stamps_of_a_server_clock_that_jumps_never_fall;
    a_server_clock_releases_by_its_own_time;
    a_server_clock_keeps_executions_apart;
}

async fn the_server_clock_is_that_of_the_environment(d: &Desk) {
    for passed in [1, 1_000, 86_400_000] {
        d.pass(passed);
        assert_eq!(d.tick().await.now, d.now());
    }
    assert_eq!(d.enqueue("w").await.created_at, d.now());
}

async fn a_server_clock_that_went_back_is_not_followed(d: &Desk) {
    d.pass(10_000);
    let first = d.enqueue("a").await.created_at;
    d.clock().skew_wall(-60_000);
    let second = d.enqueue("b").await.created_at;
    assert!(first == d.now() + ms(60_000) && second >= first, "{second} is before {first}");
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b"]);
}

async fn stamps_of_a_server_clock_that_jumps_never_fall(d: &Desk) {
    let mut last = Timestamp::EPOCH;
    for (n, jump) in [0, 5_000, -7_000, 1, -1, 90_000, -90_000, 3].into_iter().enumerate() {
        d.clock().skew_wall(jump);
        let created = d.enqueue(&format!("w{n}")).await.created_at;
        let claimed = d.take_one().await;
        let started = claimed.row.started_at.expect("a start stamp");
        d.settle(&claimed.fence, success("end")).await;
        let ended = d.row(&format!("w{n}")).await.completed_at.expect("an end");
        assert!(last <= created && created < started, "{last}, {created}, {started}");
        assert!(ended >= created, "{ended} is before {created}");
        last = created;
    }
}

async fn a_server_clock_releases_by_its_own_time(d: &Desk) {
    d.put(d.later("w", 1_000)).await;
    d.pass(999);
    assert_eq!((d.tick().await.released, d.status("w").await), (vec![], Status::Delayed));
    d.pass(1);
    assert_eq!(d.tick().await.released, [Q]);
}

async fn a_server_clock_keeps_executions_apart(d: &Desk) {
    d.enqueue("w").await;
    let mut last = Timestamp::EPOCH;
    for _ in 0..4 {
        let claimed = d.take_one().await;
        assert!(claimed.row.started_at > Some(last), "{:?} is not after {last}", claimed.row.started_at);
        last = claimed.row.updated_at;
        d.clock().skew_wall(-500);
        d.give_back(&claimed.fence).await;
    }
}
