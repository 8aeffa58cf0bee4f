//! Group `wakeups`: the hints that follow a commit. A hint more is allowed, so only missing ones fail a case.

use std::sync::Arc;

use mainstay_store::{
    Beat, Change, Effect, Fork, Limits, Outcome, QueueChange, RegisterQueue, Registered, Store, Subscription, TakeOver,
    Unit, UpdateQueue, Wakeup,
};

use crate::desk::{APP, Desk, E1, Q, WORK, ids, ms, success};

cases! { "wakeups";
    an_enqueued_row_wakes_its_queue;
    every_queue_of_a_batch_is_woken;
    a_released_row_wakes_its_queue;
    a_given_back_row_wakes_its_queue;
    a_resumed_row_wakes_its_queue;
    a_fork_wakes_its_queue;
    a_take_over_wakes_the_queues;
    an_outcome_wakes_the_workflow;
    a_cancel_wakes_the_workflow;
    a_delete_wakes_the_workflow;
    a_passed_deadline_wakes_the_workflow;
    parking_wakes_the_workflow;
    a_forced_resume_wakes_the_workflow;
    a_take_over_wakes_the_workflow;
    a_freed_fleet_slot_wakes_the_queue;
    a_changed_queue_wakes_the_registry;
    a_new_version_wakes_the_registry;
    a_hint_comes_after_its_commit;
    a_refused_unit_wakes_no_workflow;
    a_dropped_subscription_stops_nothing;
}

/// Waits until all of these hints were heard, or `All`. They are promised soon, not at once, by real time.
pub(super) async fn hears(d: &Desk, heard: &mut Subscription, wanted: &[Wakeup]) {
    let mut missing = wanted.to_vec();
    let all = async {
        while !missing.is_empty() {
            match heard.next().await {
                Wakeup::All => break,
                hint => missing.retain(|wanted| *wanted != hint),
            }
        }
    };
    let in_time = d.env().timeout(ms(5_000), all).await.is_ok();
    assert!(in_time, "not heard within 5 s: {missing:?}");
}

pub(super) fn listen(d: &Desk) -> Subscription {
    d.store().wakeups().subscribe()
}

pub(super) fn queue() -> Wakeup {
    Wakeup::Queue(Q.into())
}

pub(super) fn workflow(id: &str) -> Wakeup {
    Wakeup::Workflow(id.into())
}

async fn an_enqueued_row_wakes_its_queue(d: &Desk) {
    let mut heard = listen(d);
    d.enqueue("w").await;
    hears(d, &mut heard, &[queue()]).await;
}

async fn every_queue_of_a_batch_is_woken(d: &Desk) {
    let mut heard = listen(d);
    let units: Vec<Unit> = ["a", "b", "c"].iter().map(|name| Unit::new().effect(d.job_on(name, name))).collect();
    d.units(&units).await;
    hears(d, &mut heard, &["a", "b", "c"].map(|name| Wakeup::Queue(name.into()))).await;
}

async fn a_released_row_wakes_its_queue(d: &Desk) {
    d.put(d.later("w", 10)).await;
    d.pass(10);
    let mut heard = listen(d);
    d.tick().await;
    hears(d, &mut heard, &[queue()]).await;
}

async fn a_given_back_row_wakes_its_queue(d: &Desk) {
    let fence = d.claimed("w").await;
    let mut heard = listen(d);
    d.give_back(&fence).await;
    hears(d, &mut heard, &[queue()]).await;
}

async fn a_resumed_row_wakes_its_queue(d: &Desk) {
    d.enqueue("w").await;
    d.cancel("w").await;
    let mut heard = listen(d);
    d.moved(Effect::Resume { ids: ids(&["w"]), queue: Some("other".into()), force: false }).await;
    hears(d, &mut heard, &[Wakeup::Queue("other".into())]).await;
}

async fn a_fork_wakes_its_queue(d: &Desk) {
    d.start("w").await;
    let mut heard = listen(d);
    d.done(Unit::new().effect(Fork::new("w", "copy", 0).queue(Q))).await;
    hears(d, &mut heard, &[queue()]).await;
}

async fn a_take_over_wakes_the_queues(d: &Desk) {
    d.claimed("queued").await;
    d.start("direct").await;
    let mut heard = listen(d);
    d.take_over_in_calls(TakeOver::new(E1, 1_u64).fallback("other".into())).await;
    hears(d, &mut heard, &[queue(), Wakeup::Queue("other".into())]).await;
}

async fn an_outcome_wakes_the_workflow(d: &Desk) {
    let outcomes = [success("end"), Outcome::Error("\"end\"".into()), Outcome::Parked("\"end\"".into())];
    for outcome in outcomes {
        let id = outcome.status().as_str();
        let fence = d.start(id).await;
        let mut heard = listen(d);
        d.settle(&fence, outcome.clone()).await;
        hears(d, &mut heard, &[workflow(id)]).await;
    }
}

async fn a_cancel_wakes_the_workflow(d: &Desk) {
    d.start("running").await;
    d.enqueue("waiting").await;
    let mut heard = listen(d);
    d.moved(Effect::Cancel { ids: ids(&["running", "waiting"]), children: false }).await;
    hears(d, &mut heard, &[workflow("running"), workflow("waiting")]).await;
}

async fn a_delete_wakes_the_workflow(d: &Desk) {
    d.start("running").await;
    let mut heard = listen(d);
    d.delete("running").await;
    hears(d, &mut heard, &[workflow("running")]).await;
}

async fn a_passed_deadline_wakes_the_workflow(d: &Desk) {
    d.put(d.direct("w").timeout(ms(10))).await;
    d.pass(10);
    let mut heard = listen(d);
    d.tick().await;
    hears(d, &mut heard, &[workflow("w")]).await;
}

async fn parking_wakes_the_workflow(d: &Desk) {
    d.enqueue("w").await;
    let mut heard = listen(d);
    d.take(d.claim().names(vec![Registered { max_attempts: 0, ..Registered::new(WORK) }])).await;
    hears(d, &mut heard, &[workflow("w")]).await;
}

async fn a_forced_resume_wakes_the_workflow(d: &Desk) {
    d.claimed("w").await;
    let mut heard = listen(d);
    d.moved(Effect::Resume { ids: ids(&["w"]), queue: None, force: true }).await;
    hears(d, &mut heard, &[workflow("w")]).await;
}

async fn a_take_over_wakes_the_workflow(d: &Desk) {
    d.claimed("w").await;
    let mut heard = listen(d);
    d.take_over(E1).await;
    hears(d, &mut heard, &[workflow("w")]).await;
}

async fn a_freed_fleet_slot_wakes_the_queue(d: &Desk) {
    d.register(Q, Limits { concurrency: Some(2), ..Limits::default() }).await;
    let fences = [d.claimed("a").await, d.claimed("b").await];
    let mut heard = listen(d);
    d.settle(&fences[0], success("end")).await;
    hears(d, &mut heard, &[queue()]).await;
    let mut heard = listen(d);
    d.cancel("b").await;
    hears(d, &mut heard, &[queue()]).await;
}

async fn a_changed_queue_wakes_the_registry(d: &Desk) {
    let (app, name) = (APP.into(), "new".into());
    let mut heard = listen(d);
    d.store().queue_register(RegisterQueue::new("new", APP)).await.expect("registered");
    hears(d, &mut heard, &[Wakeup::Registry]).await;
    let change = QueueChange { concurrency: Change::Set(3), ..QueueChange::default() };
    let mut heard = listen(d);
    d.store().queue_update(UpdateQueue::new("new", APP, change)).await.expect("updated");
    hears(d, &mut heard, &[Wakeup::Registry]).await;
    let mut heard = listen(d);
    d.store().queue_delete(&app, &name).await.expect("deleted");
    hears(d, &mut heard, &[Wakeup::Registry]).await;
}

async fn a_new_version_wakes_the_registry(d: &Desk) {
    let mut heard = listen(d);
    d.store().version_register(&APP.into(), &"v1".into()).await.expect("registered");
    hears(d, &mut heard, &[Wakeup::Registry]).await;
    d.pass(10);
    d.store().version_register(&APP.into(), &"v2".into()).await.expect("registered");
    let mut heard = listen(d);
    d.store().version_promote(&APP.into(), &"v1".into()).await.expect("promoted");
    hears(d, &mut heard, &[Wakeup::Registry]).await;
}

/// Who hears a hint finds what it is about, also when it looks at once.
async fn a_hint_comes_after_its_commit(d: &Desk) {
    for n in 0..20 {
        let id = format!("w{n}");
        let (mut heard, store) = (listen(d), d.store());
        let watcher = d.env().tasks().spawn("watcher", {
            let id = mainstay_store::WorkflowId::from(id.as_str());
            async move {
                while !matches!(heard.next().await, Wakeup::Queue(_) | Wakeup::All) {}
                look(store, id).await
            }
        });
        d.enqueue(&id).await;
        let watched = d.env().timeout(ms(5_000), watcher).await.expect("a hint within 5 s");
        assert!(watched.expect("the watcher lives"), "{id} was hinted at before it was there");
    }
}

async fn look(store: Arc<dyn Store>, id: mainstay_store::WorkflowId) -> bool {
    store.workflow_rows(&[id]).await.expect("read")[0].is_some()
}

/// The hint of a later commit has come, so one of the refused unit would have come as well.
async fn a_refused_unit_wakes_no_workflow(d: &Desk) {
    d.start("w").await;
    d.start("last").await;
    d.enqueue("taken").await;
    let mut heard = listen(d);
    let other = mainstay_store::Submit::new("taken", "other", d.token(), mainstay_store::Place::queue(Q));
    let cancel = Effect::Cancel { ids: ids(&["w"]), children: false };
    d.refused(Unit::new().effect(cancel).effect(other)).await;
    d.cancel("last").await;
    let mut before = Vec::new();
    let last = async {
        loop {
            match heard.next().await {
                hint if hint == workflow("last") || hint == Wakeup::All => break,
                hint => before.push(hint),
            }
        }
    };
    d.env().timeout(ms(5_000), last).await.expect("the hint of the cancel");
    assert!(!before.contains(&workflow("w")), "{before:?}");
}

async fn a_dropped_subscription_stops_nothing(d: &Desk) {
    drop(listen(d));
    let idle = listen(d);
    for n in 0..50_u64 {
        d.store().lease_beat(Beat::new(E1, APP, n + 2)).await.expect("answered");
        d.enqueue(&format!("w{n}")).await;
    }
    let mut heard = listen(d);
    d.enqueue("last").await;
    hears(d, &mut heard, &[queue()]).await;
    drop(idle);
}
