//! Group `drops`: a call whose future is dropped has happened whole or not at all, and the store goes on.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use mainstay_store::{Audit, Effect, Status, Stop, TakeOver, Unit};

use crate::desk::{APP, Desk, E1, E2, Opening, Q, ids, ms, step, success};

cases! { "drops", Opening::IN_ORDER;
    a_dropped_commit_is_whole_or_nothing;
    a_dropped_outcome_is_whole_or_nothing;
    a_dropped_claim_can_be_repeated;
    a_dropped_take_over_can_be_repeated;
    a_dropped_beat_can_be_repeated;
    dropped_reads_leave_the_store_at_work;
}

/// Polls a future so many times, letting other threads work in between, and drops it. Says whether it was ready.
async fn abandon<T>(d: &Desk, polls: u32, future: impl Future<Output = T>) -> bool {
    let mut future = pin!(future);
    for poll in 0..polls {
        if poll > 0 {
            d.env().sleep(ms(1)).await;
        }
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
    }
    false
}

/// Waits until what was abandoned has happened, or will not: the handle works off its calls in order.
async fn settled(d: &Desk) {
    d.tick().await;
}

async fn a_dropped_commit_is_whole_or_nothing(d: &Desk) {
    for round in 0..20 {
        let names = [format!("a{round}"), format!("b{round}")];
        let unit = Unit::new().effect(d.job(&names[0])).effect(d.direct(&names[1]));
        let ready = abandon(d, round % 4, d.store().commit(std::slice::from_ref(&unit))).await;
        settled(d).await;
        let found = d.store().workflow_rows(&ids(&[&names[0], &names[1]])).await.expect("read");
        let found: Vec<bool> = found.iter().map(Option::is_some).collect();
        assert!(found[0] == found[1] && (found[0] || !ready), "round {round}: {found:?}");
        assert_eq!(d.done(unit).await.len(), 2);
    }
}

async fn a_dropped_outcome_is_whole_or_nothing(d: &Desk) {
    for round in 0..20 {
        let id = format!("w{round}");
        let fence = d.start(&id).await;
        let unit = Unit::by(&fence).step(step(0, "last")).outcome(success("end"));
        let ready = abandon(d, round % 4, d.store().commit(std::slice::from_ref(&unit))).await;
        settled(d).await;
        let (ended, recorded) = (d.status(&id).await == Status::Success, d.steps(&id).await.len() == 1);
        assert!(ended == recorded && (ended || !ready), "round {round}: {ended} {recorded}");
        d.unit(unit).await;
        assert_eq!(d.status(&id).await, Status::Success);
    }
}

async fn a_dropped_claim_can_be_repeated(d: &Desk) {
    for round in 0..20 {
        for n in 0..3 {
            d.enqueue(&format!("w{round}-{n}")).await;
        }
        let claim = d.claim().budget(2);
        abandon(d, round % 4, d.store().queue_claim(claim.clone())).await;
        let again = d.take(claim.repeat(true)).await;
        assert_eq!((again.rows.len(), again.stop), (2, Stop::More), "round {round}");
        let held = d.store().queue_audit(Audit::new(E1)).await.expect("audited").rows;
        assert_eq!(held.len(), 2, "round {round}: a row is held by nobody's claim");
        for row in again.rows {
            d.settle(&row.fence, success("end")).await;
        }
        assert_eq!(d.delete(&format!("w{round}-2")).await.len(), 1);
    }
}

async fn a_dropped_take_over_can_be_repeated(d: &Desk) {
    for round in 0..12 {
        let executor = format!("x~{round}");
        d.lease(&executor).await;
        for n in 0..3 {
            d.enqueue(&format!("w{round}-{n}")).await;
        }
        assert_eq!(d.take_ids(d.claim_by(&executor)).await.len(), 3);
        let request = TakeOver::new(executor.as_str(), 1_u64);
        abandon(d, round % 4, d.store().lease_take_over(request.clone())).await;
        d.take_over_in_calls(request).await;
        let leases = d.store().lease_list(&APP.into()).await.expect("listed").leases;
        assert!(leases.iter().all(|lease| lease.executor != *executor), "round {round}");
        let taken = d.take(d.claim_by(E2)).await.rows;
        assert_eq!(taken.len(), 3, "round {round}");
        for row in taken {
            d.settle(&row.fence, success("end")).await;
        }
    }
}

async fn a_dropped_beat_can_be_repeated(d: &Desk) {
    for round in 0..12 {
        let beat = mainstay_store::Beat::new(E1, APP, u64::from(round) + 2);
        abandon(d, round % 4, d.store().lease_beat(beat.clone())).await;
        let beaten = d.store().lease_beat(beat.clone()).await.expect("answered");
        assert_eq!(beaten, mainstay_store::Beaten::Alive);
        let leases = d.store().lease_list(&APP.into()).await.expect("listed").leases;
        assert_eq!(leases[0].beat, beat.beat);
    }
}

async fn dropped_reads_leave_the_store_at_work(d: &Desk) {
    d.enqueue("w").await;
    for polls in 0..4 {
        let (store, asked) = (d.store(), ids(&["w"]));
        abandon(d, polls, store.workflow_standing(&asked)).await;
        abandon(d, polls, store.workflow_rows(&asked)).await;
        abandon(d, polls, store.workflow_steps(mainstay_store::ReadSteps::new("w"))).await;
        abandon(d, polls, store.queue_audit(Audit::new(E1))).await;
        abandon(d, polls, store.queue_list(&APP.into())).await;
        assert_eq!(d.status("w").await, Status::Enqueued);
    }
    let resume = Effect::Resume { ids: ids(&["w"]), queue: Some(Q.into()), force: false };
    assert_eq!(d.moved(resume).await, ["w"]);
}
