//! Group `claim`: what a tick does for several owners, limits and kinds of work at once.

use mainstay_store::{ErrorKind, Status, Submit, Tick, Ticked};

use crate::desk::{APP, Desk, Q, field, ms, texts};

cases! { "claim";
    a_tick_releases_own_and_unowned_rows_in_one_order;
    a_tick_has_a_limit_for_each_kind_of_work;
    a_tick_tells_when_unowned_rows_are_due;
    a_tick_tells_nothing_of_other_applications;
    a_tick_over_its_limit_of_deadlines_is_due_at_once;
    names_of_a_tick_are_bounded;
}

fn unowned(mut submit: Submit) -> Submit {
    submit.app = None;
    submit
}

async fn limited(d: &Desk, limit: u32) -> Ticked {
    d.store().tick(Tick::new(APP).limit(limit)).await.expect("ticked")
}

async fn a_tick_releases_own_and_unowned_rows_in_one_order(d: &Desk) {
    d.put(d.later("d", 40)).await;
    d.put(unowned(d.later("c", 30))).await;
    d.put(d.later("b", 20)).await;
    d.put(unowned(d.later("a", 10))).await;
    d.pass(50);
    for id in ["a", "b", "c", "d"] {
        limited(d, 1).await;
        assert_eq!(d.take_ids(d.claim()).await, [id]);
    }
}

async fn a_tick_has_a_limit_for_each_kind_of_work(d: &Desk) {
    for id in ["a", "b"] {
        d.put(d.later(id, 10)).await;
        d.put(d.job_on("other", &format!("{id} late")).deadline(ms(10))).await;
    }
    d.pass(10);
    for _ in 0..2 {
        let ticked = limited(d, 1).await;
        assert_eq!((ticked.released.len(), ticked.cancelled.len()), (1, 1));
    }
    let ticked = limited(d, 1).await;
    assert_eq!((ticked.released.len(), ticked.cancelled.len(), ticked.next_due), (0, 0, None));
}

async fn a_tick_tells_when_unowned_rows_are_due(d: &Desk) {
    d.put(unowned(d.job("limited").deadline(ms(5_000)))).await;
    assert_eq!(d.tick().await.next_due, Some(ms(5_000)));
    d.put(unowned(d.later("delayed", 3_000))).await;
    assert_eq!(d.tick().await.next_due, Some(ms(3_000)));
    d.put(d.job("own").deadline(ms(2_000))).await;
    d.pass(500);
    assert_eq!(d.tick().await.next_due, Some(ms(1_500)));
}

async fn a_tick_tells_nothing_of_other_applications(d: &Desk) {
    d.put(d.job("limited").app("else").deadline(ms(1_000))).await;
    d.put(d.later("delayed", 1_000).app("else")).await;
    assert_eq!(d.tick().await.next_due, None);
    d.pass(1_000);
    let ticked = d.tick().await;
    assert_eq!((ticked.released, ticked.cancelled, ticked.next_due), (vec![], vec![], None));
}

async fn a_tick_over_its_limit_of_deadlines_is_due_at_once(d: &Desk) {
    for id in ["a", "b"] {
        d.put(d.job(id).deadline(ms(10))).await;
    }
    d.pass(20);
    assert_eq!(limited(d, 1).await.next_due, Some(ms(0)));
    let ticked = limited(d, 1).await;
    assert_eq!((ticked.cancelled.len(), ticked.next_due), (1, None));
}

async fn names_of_a_tick_are_bounded(d: &Desk) {
    d.put(d.later("w", 10)).await;
    d.pass(10);
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        let error = d.store().tick(Tick::new(bad)).await.expect_err("a bad name");
        assert_eq!((field(&error).ends_with("app"), error.op(), error.kind()), (true, "tick", ErrorKind::Invalid));
    }
    assert_eq!((d.status("w").await, texts(&d.tick().await.cancelled).len()), (Status::Delayed, 0));
    assert_eq!(d.take_ids(d.claim_on(Q)).await, ["w"]);
}
