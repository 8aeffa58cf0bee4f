//! Group `wakeups`: every way in which a row comes to a queue, ends, or leaves a fleet slot free.

use mainstay_store::{Effect, Fence, Limits, Outcome, TakeOver, Unit, Wakeup};

use super::wakeups::{hears, listen, queue, workflow};
use crate::desk::{Desk, E1, Q, ids, ms, success};

cases! { "wakeups";
    a_waiting_row_resumed_elsewhere_wakes_its_new_queue;
    a_submit_to_the_internal_queue_wakes_it;
    the_end_of_a_row_that_did_not_run_wakes_the_workflow;
    a_cancelled_parked_row_wakes_the_workflow;
    a_delete_of_a_row_that_did_not_run_wakes_the_workflow;
    every_way_out_of_a_fleet_slot_wakes_the_queue;
}

async fn a_waiting_row_resumed_elsewhere_wakes_its_new_queue(d: &Desk) {
    d.enqueue("enqueued").await;
    d.put(d.later("delayed", 60_000)).await;
    for id in ["enqueued", "delayed"] {
        let mut heard = listen(d);
        let name = format!("for {id}");
        d.moved(Effect::Resume { ids: ids(&[id]), queue: Some(name.as_str().into()), force: false }).await;
        hears(d, &mut heard, &[Wakeup::Queue(name.as_str().into())]).await;
    }
}

async fn a_submit_to_the_internal_queue_wakes_it(d: &Desk) {
    let internal = mainstay_store::wire::INTERNAL_QUEUE;
    let mut heard = listen(d);
    d.put(d.job_on(internal, "w")).await;
    hears(d, &mut heard, &[Wakeup::Queue(internal.into())]).await;
    let fence = d.start("v").await;
    let mut heard = listen(d);
    d.give_back(&fence).await;
    hears(d, &mut heard, &[Wakeup::Queue(internal.into())]).await;
}

async fn the_end_of_a_row_that_did_not_run_wakes_the_workflow(d: &Desk) {
    d.put(d.later("a", 60_000)).await;
    d.put(d.later("b", 60_000).deadline(ms(10))).await;
    d.put(d.job("c").deadline(ms(10))).await;
    let mut heard = listen(d);
    d.cancel("a").await;
    hears(d, &mut heard, &[workflow("a")]).await;
    d.pass(10);
    let mut heard = listen(d);
    d.tick().await;
    hears(d, &mut heard, &[workflow("b"), workflow("c")]).await;
}

async fn a_cancelled_parked_row_wakes_the_workflow(d: &Desk) {
    let fence = d.start("w").await;
    d.settle(&fence, Outcome::Parked("\"why\"".into())).await;
    let mut heard = listen(d);
    d.cancel("w").await;
    hears(d, &mut heard, &[workflow("w")]).await;
}

async fn a_delete_of_a_row_that_did_not_run_wakes_the_workflow(d: &Desk) {
    d.put(d.later("delayed", 60_000)).await;
    d.enqueue("enqueued").await;
    for id in ["delayed", "enqueued"] {
        let mut heard = listen(d);
        d.delete(id).await;
        hears(d, &mut heard, &[workflow(id)]).await;
    }
}

/// A running row of a queue with a fleet limit, and a subscription from now on.
async fn slot(d: &Desk, id: &str) -> (Fence, mainstay_store::Subscription) {
    let fence = d.claimed(id).await;
    (fence, listen(d))
}

async fn every_way_out_of_a_fleet_slot_wakes_the_queue(d: &Desk) {
    d.register(Q, Limits { concurrency: Some(1), ..Limits::default() }).await;
    for outcome in [success("end"), Outcome::Error("\"end\"".into()), Outcome::Parked("\"end\"".into())] {
        let (fence, mut heard) = slot(d, outcome.status().as_str()).await;
        d.settle(&fence, outcome).await;
        hears(d, &mut heard, &[queue()]).await;
    }
    let (_, mut heard) = slot(d, "deleted").await;
    d.delete("deleted").await;
    hears(d, &mut heard, &[queue()]).await;
    let (_, mut heard) = slot(d, "resumed").await;
    d.moved(Effect::Resume { ids: ids(&["resumed"]), queue: Some("other".into()), force: true }).await;
    hears(d, &mut heard, &[queue()]).await;
    let (fence, mut heard) = slot(d, "postponed").await;
    d.done(Unit::by(&fence).effect(Effect::GiveBack { delay: Some(ms(60_000)), begun: true })).await;
    hears(d, &mut heard, &[queue()]).await;
    d.put(d.job("limited").deadline(ms(10))).await;
    d.take_one().await;
    d.pass(20);
    let mut heard = listen(d);
    d.tick().await;
    hears(d, &mut heard, &[queue()]).await;
    let (_, mut heard) = slot(d, "taken over").await;
    d.take_over_in_calls(TakeOver::new(E1, 1_u64)).await;
    hears(d, &mut heard, &[queue()]).await;
}
