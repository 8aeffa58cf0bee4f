//! Group `limits`: which starts a window counts, and what a change of a queue is asked first.

use mainstay_store::{
    Claim, ErrorKind, Limits, OnConflict, QueueChange, QueueReply, Rate, RegisterQueue, Registered, Stop, UpdateQueue,
};

use crate::desk::{APP, Desk, E2, Q, V1, WORK, field, ms};

cases! { "limits";
    starts_of_every_application_count;
    a_longer_window_counts_what_was_started_before;
    a_start_counts_from_the_clock_of_its_claim;
    starts_of_a_deleted_queue_count_when_it_is_back;
    an_empty_change_of_another_s_queue_is_owned;
    names_of_a_queue_s_delete_are_bounded;
    a_version_to_compare_with_is_bounded;
}

fn rate(starts: u32, millis: u64) -> Limits {
    Limits { rate: Some(Rate { starts, period: ms(millis) }), ..Limits::default() }
}

async fn taken(d: &Desk, claim: Claim) -> (usize, Stop) {
    let claimed = d.take(claim).await;
    (claimed.rows.len(), claimed.stop)
}

async fn starts_of_every_application_count(d: &Desk) {
    d.register(Q, rate(2, 60_000)).await;
    d.put(d.job("theirs").app("else")).await;
    for id in ["a", "b"] {
        d.enqueue(id).await;
    }
    d.pass(10);
    let theirs = Claim::new(Q, E2, "else", V1, d.token()).names(vec![Registered::new(WORK)]);
    assert_eq!(taken(d, theirs).await, (1, Stop::Drained));
    assert_eq!(taken(d, d.claim()).await, (1, Stop::RateIn(ms(60_000))));
}

/// The third start is written when the first two have left the window of its time.
async fn a_longer_window_counts_what_was_started_before(d: &Desk) {
    d.register(Q, rate(2, 1_000)).await;
    for n in 0..9 {
        d.enqueue(&format!("w{n}")).await;
    }
    d.pass(10);
    assert_eq!(taken(d, d.claim()).await.0, 2);
    d.pass(2_000);
    assert_eq!(taken(d, d.claim().budget(1)).await.0, 1);
    d.register(Q, rate(4, 60_000)).await;
    assert_eq!(taken(d, d.claim()).await, (1, Stop::RateIn(ms(58_000))));
}

/// In the millisecond of the submit the row's start stamp is one later, and the start in the window is not.
async fn a_start_counts_from_the_clock_of_its_claim(d: &Desk) {
    d.register(Q, rate(1, 100)).await;
    for id in ["a", "b"] {
        d.enqueue(id).await;
    }
    assert_eq!(taken(d, d.claim()).await, (1, Stop::RateIn(ms(100))));
    d.pass(99);
    assert_eq!(taken(d, d.claim()).await, (0, Stop::RateIn(ms(1))));
    d.pass(1);
    assert_eq!(d.take_ids(d.claim()).await, ["b"]);
}

async fn starts_of_a_deleted_queue_count_when_it_is_back(d: &Desk) {
    d.register(Q, rate(2, 60_000)).await;
    for id in ["a", "b"] {
        d.enqueue(id).await;
    }
    d.pass(10);
    assert_eq!(taken(d, d.claim().budget(1)).await.0, 1);
    d.store().queue_delete(&APP.into(), &Q.into()).await.expect("deleted");
    d.register(Q, rate(1, 60_000)).await;
    assert_eq!(taken(d, d.claim()).await, (0, Stop::RateIn(ms(60_000))));
}

async fn an_empty_change_of_another_s_queue_is_owned(d: &Desk) {
    let reply = d.store().queue_update(UpdateQueue::new(Q, "else", QueueChange::default())).await.expect("answered");
    assert_eq!(reply, QueueReply::Owned(APP.into()));
}

async fn names_of_a_queue_s_delete_are_bounded(d: &Desk) {
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        for (app, name) in [(APP, bad), (bad, Q)] {
            let error = d.store().queue_delete(&app.into(), &name.into()).await.expect_err("a bad name");
            assert_eq!((error.kind(), error.op()), (ErrorKind::Invalid, "queue_delete"));
            field(&error);
        }
    }
    assert_eq!(d.store().queue_list(&APP.into()).await.expect("listed").len(), 1);
}

async fn a_version_to_compare_with_is_bounded(d: &Desk) {
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        let request = RegisterQueue::new("new", APP).on_conflict(OnConflict::UpdateIfLatest(bad.into()));
        field(&d.store().queue_register(request).await.expect_err("a bad name"));
    }
    assert_eq!(d.store().queue_list(&APP.into()).await.expect("listed").len(), 1);
}
