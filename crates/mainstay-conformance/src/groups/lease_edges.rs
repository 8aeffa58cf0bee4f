//! Group `lease`: what a take-over and an audit go by.

use mainstay_store::{
    Audit, AuditCursor, Beat, Claim, Lease, Limits, Registered, Status, Stop, TakeOver, TakenOver, Timestamp,
};

use crate::desk::{APP, Desk, E1, E2, Q, V1, WORK, field, success};

cases! { "lease";
    an_ended_lease_goes_on_whatever_the_beat;
    a_take_over_brings_rows_of_every_application;
    rows_of_an_ended_lease_hold_their_fleet_slots;
    an_audit_leaves_other_executors;
    an_audit_goes_by_the_age_of_the_submit;
    names_of_an_audit_are_bounded;
    a_refused_take_over_leaves_the_executor_at_work;
}

async fn an_ended_lease_goes_on_whatever_the_beat(d: &Desk) {
    for id in ["a", "b", "c"] {
        d.claimed(id).await;
    }
    d.take_over_one(E1).await;
    let reply = d.store().lease_take_over(TakeOver::new(E1, 0_u64).limit(1)).await.expect("answered");
    assert!(matches!(reply, TakenOver::Rows { .. }), "{reply:?}");
    d.take_over_in_calls(TakeOver::new(E1, 900_u64)).await;
    for id in ["a", "b", "c"] {
        assert_eq!(d.status(id).await, Status::Enqueued, "{id}");
    }
    let leases = d.store().lease_list(&APP.into()).await.expect("listed").leases;
    assert_eq!(leases, [Lease::new(E2, APP, 1_u64)]);
}

async fn a_take_over_brings_rows_of_every_application(d: &Desk) {
    d.put(d.job("theirs").app("else")).await;
    let claim = Claim::new(Q, E1, "else", V1, d.token()).names(vec![Registered::new(WORK)]);
    assert_eq!(d.take_ids(claim).await, ["theirs"]);
    d.claimed("own").await;
    assert_eq!(d.take_over(E1).await, ["own", "theirs"]);
}

async fn rows_of_an_ended_lease_hold_their_fleet_slots(d: &Desk) {
    d.register(Q, Limits { concurrency: Some(2), ..Limits::default() }).await;
    for id in ["a", "b", "c", "d"] {
        d.enqueue(id).await;
    }
    assert_eq!(d.take(d.claim()).await.rows.len(), 2);
    d.take_over_one(E1).await;
    let claimed = d.take(d.claim_by(E2)).await;
    assert_eq!((claimed.rows.len(), claimed.stop), (1, Stop::Limit(mainstay_store::Reach::Fleet)));
}

/// All pages of an executor's rows.
async fn audited(d: &Desk, executor: &str) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..1_000 {
        let mut request = Audit::new(executor);
        request.after = after;
        let page = d.store().queue_audit(request).await.expect("audited");
        found.extend(page.rows.iter().map(|row| row.fence.workflow().as_str().to_owned()));
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
    panic!("an audit of {executor} has no end");
}

async fn an_audit_leaves_other_executors(d: &Desk) {
    for (id, executor) in [("a", E1), ("b", E2), ("c", E1)] {
        d.enqueue(id).await;
        assert_eq!(d.take_ids(d.claim_by(executor)).await, [id]);
    }
    assert_eq!((audited(d, E1).await.join(" "), audited(d, E2).await.join(" ")), ("a c".to_owned(), "b".to_owned()));
}

async fn names_of_an_audit_are_bounded(d: &Desk) {
    let after = |id: &str| Audit::new(E1).after(AuditCursor { created_at: Timestamp::EPOCH, id: id.into() });
    let mut cases = vec![("audit.after", after("a\0b")), ("audit.limit", Audit::new(E1).limit(0_u32))];
    for bad in ["", "a\0b", &"x".repeat(513)] {
        cases.push(("audit.executor", Audit::new(bad)));
    }
    for (name, audit) in cases {
        let error = d.store().queue_audit(audit).await.expect_err("a bad field");
        assert_eq!((field(&error).as_str(), error.op()), (name, "queue_audit"));
    }
    // A program that bounds no id may have left one as long as that.
    d.store().queue_audit(after(&"x".repeat(2_000))).await.expect("audited");
}

async fn an_audit_goes_by_the_age_of_the_submit(d: &Desk) {
    for (id, priority) in [("z", 3), ("y", 1), ("x", 2)] {
        d.put(d.job(id).priority(priority)).await;
        d.pass(10);
    }
    for id in ["y", "x", "z"] {
        assert_eq!(d.take_ids(d.claim().budget(1)).await, [id]);
        d.pass(10);
    }
    assert_eq!(audited(d, E1).await, ["z", "y", "x"]);
}

async fn a_refused_take_over_leaves_the_executor_at_work(d: &Desk) {
    let fence = d.claimed("w").await;
    d.store().lease_beat(Beat::new(E1, APP, 2_u64)).await.expect("answered");
    let reply = d.store().lease_take_over(TakeOver::new(E1, 1_u64)).await.expect("answered");
    assert_eq!(reply, TakenOver::Alive);
    d.settle(&fence, success("end")).await;
    d.start("v").await;
    d.claimed("u").await;
}
