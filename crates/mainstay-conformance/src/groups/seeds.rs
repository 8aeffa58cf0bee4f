//! Group `seeds`: orders of events that broke systems of this kind, each fixed as a case. The numbers are those of the
//! project's list of such orders; what concerns an engine alone is tested there.

use std::sync::Arc;

use mainstay_store::{Audit, Effect, Limits, Outcome, Rate, Standing, Status, Stop, Store, TakeOver, Unit};

use crate::clients;
use crate::desk::{Desk, E1, E2, Q, ids, ms, step, success};

cases! { "seeds";
    seed_s1_an_older_row_that_arrives_between_two_claims_overfills_no_fleet;
    seed_s1_two_claims_at_once_overfill_no_fleet;
    seed_s4_two_claims_at_once_exceed_no_rate;
    seed_s5_a_row_deleted_after_its_claim_is_not_made_again;
    seed_s6_a_claim_whose_answer_was_lost_is_found_again;
    seed_s7_a_row_of_an_unknown_name_takes_no_slot_and_no_attempt;
    seed_s8_a_resume_of_a_running_row_leaves_one_execution;
    seed_s9_rows_that_left_their_start_still_count_in_the_window;
    seed_s10_a_second_launch_leaves_the_first_one_s_rows;
    seed_s13_rows_of_a_claim_that_nobody_started_go_back_by_audit;
}

fn fleet_of_one() -> Limits {
    Limits { concurrency: Some(1), ..Limits::default() }
}

async fn seed_s1_an_older_row_that_arrives_between_two_claims_overfills_no_fleet(d: &Desk) {
    d.register(Q, fleet_of_one()).await;
    d.put(d.later("released", 10).priority(1)).await;
    let returned = d.claimed("returned").await;
    d.give_back(&returned).await;
    d.put(d.job("h1").priority(5)).await;
    assert_eq!(d.take_ids(d.claim()).await, ["returned"]);
    d.pass(10);
    d.tick().await;
    d.put(d.job("h0").priority(1)).await;
    for executor in [E2, E1, E2] {
        let claimed = d.take(d.claim_by(executor)).await;
        assert_eq!((claimed.rows.len(), claimed.stop), (0, Stop::Limit(mainstay_store::Reach::Fleet)));
    }
}

/// Claims of both executors at once, round after round, while rows of higher rank come in; at most so many are taken.
async fn race(d: &Desk, limits: Limits, most: usize) {
    for round in 0..40 {
        let queue = format!("q{round}");
        d.register(&queue, limits).await;
        d.put(d.job_on(&queue, &format!("{queue}-h1")).priority(5)).await;
        let mut claims = Vec::new();
        for executor in [E1, E2] {
            let mut claim = d.claim_by(executor);
            claim.queue = queue.as_str().into();
            claims.push(claim);
        }
        let late = Unit::new().effect(d.job_on(&queue, &format!("{queue}-h0")).priority(1));
        let store = d.store();
        let arrival = {
            let store = store.clone();
            async move { store.commit(&[late]).await.map(|_| 0) }
        };
        let mut works: Vec<clients::Work<mainstay_store::Result<usize>>> = vec![Box::pin(arrival)];
        for claim in claims {
            let store: Arc<dyn Store> = store.clone();
            works.push(Box::pin(async move { Ok(store.queue_claim(claim).await?.rows.len()) }));
        }
        let taken = clients::at_once(d, works).await;
        let taken: usize = taken.into_iter().map(|count| count.expect("answered")).sum();
        assert!(taken <= most, "round {round}: {taken} rows run");
    }
}

async fn seed_s1_two_claims_at_once_overfill_no_fleet(d: &Desk) {
    race(d, fleet_of_one(), 1).await;
}

async fn seed_s4_two_claims_at_once_exceed_no_rate(d: &Desk) {
    race(d, Limits { rate: Some(Rate { starts: 1, period: ms(60_000) }), ..Limits::default() }, 1).await;
}

async fn seed_s5_a_row_deleted_after_its_claim_is_not_made_again(d: &Desk) {
    let fence = d.claimed("w").await;
    d.delete("w").await;
    let writes = [
        Unit::by(&fence).step(step(0, "1")),
        Unit::by(&fence).outcome(success("end")),
        Unit::by(&fence).effect(Effect::GiveBack { delay: None, begun: true }),
    ];
    for unit in writes {
        assert_eq!(d.superseded(unit).await, Standing::Gone);
    }
    d.take_over(E1).await;
    d.tick().await;
    assert_eq!((d.find("w").await, d.take_ids(d.claim_by(E2)).await), (None, vec![]));
}

async fn seed_s6_a_claim_whose_answer_was_lost_is_found_again(d: &Desk) {
    for n in 0..50 {
        d.enqueue(&format!("w{n:02}")).await;
    }
    let claim = d.claim().budget(20);
    d.take(claim.clone()).await;
    let audited = d.store().queue_audit(Audit::new(E1)).await.expect("audited");
    let lost: Vec<_> = audited.rows.iter().filter(|row| row.token.as_ref() == Some(&claim.token)).collect();
    assert_eq!((lost.len(), audited.rows.len()), (20, 20));
    let found = d.take(claim.repeat(true)).await;
    let fences: Vec<_> = found.rows.iter().map(|row| &row.fence).collect();
    assert_eq!(fences, lost.iter().map(|row| &row.fence).collect::<Vec<_>>());
    assert_eq!(d.take(d.claim()).await.rows.len(), 30);
}

/// Whoever does not know a name leaves its rows alone, however often it looks.
async fn seed_s7_a_row_of_an_unknown_name_takes_no_slot_and_no_attempt(d: &Desk) {
    d.register(Q, fleet_of_one()).await;
    let mut unknown = d.job("unknown").priority(1);
    unknown.name = "nobody".into();
    d.put(unknown).await;
    d.put(d.job("known").priority(2)).await;
    let known = d.take_one().await;
    assert_eq!(known.row.id, "known");
    for executor in [E2, E1, E2] {
        assert_eq!(d.take(d.claim_by(executor)).await.rows.len(), 0);
    }
    d.settle(&known.fence, success("end")).await;
    for _ in 0..3 {
        assert_eq!(d.take(d.claim()).await.stop, Stop::Drained);
    }
    let row = d.row("unknown").await;
    assert_eq!((row.status, row.attempts), (Status::Enqueued, 0));
}

async fn seed_s8_a_resume_of_a_running_row_leaves_one_execution(d: &Desk) {
    let first = d.claimed("w").await;
    let resume = |force| Effect::Resume { ids: ids(&["w"]), queue: Some(Q.into()), force };
    d.refused(Unit::new().effect(resume(false))).await;
    d.record(&first, 0, "first").await;
    d.moved(resume(true)).await;
    let second = d.take_one().await;
    assert_eq!(second.steps.here().len(), 1);
    let late = Unit::by(&first).step(step(1, "first")).outcome(success("first"));
    assert_eq!(d.superseded(late).await, Standing::Open(Status::Pending));
    d.record(&second.fence, 1, "second").await;
    d.settle(&second.fence, success("second")).await;
    assert_eq!(
        (d.standing("w").await, d.values("w").await[1].1.as_str()),
        (Standing::Ended(success("second")), "second")
    );
}

async fn seed_s9_rows_that_left_their_start_still_count_in_the_window(d: &Desk) {
    d.register(Q, Limits { rate: Some(Rate { starts: 2, period: ms(60_000) }), ..Limits::default() }).await;
    for id in ["a", "b", "c", "d"] {
        d.enqueue(id).await;
    }
    d.pass(10);
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b"]);
    d.cancel("a").await;
    d.take_over(E1).await;
    d.moved(Effect::Resume { ids: ids(&["a", "b"]), queue: Some(Q.into()), force: true }).await;
    assert_eq!(d.take(d.claim_by(E2)).await.rows.len(), 0);
    d.moved(Effect::Delete { ids: ids(&["a", "b"]), children: false }).await;
    let claimed = d.take(d.claim_by(E2)).await;
    assert!(claimed.rows.is_empty() && matches!(claimed.stop, Stop::RateIn(_)), "{:?}", claimed.stop);
    d.pass(60_000);
    assert_eq!(d.take_ids(d.claim_by(E2)).await, ["c", "d"]);
}

/// A launch takes an executor id of its own, so that nothing of an earlier one is taken for its leftovers.
async fn seed_s10_a_second_launch_leaves_the_first_one_s_rows(d: &Desk) {
    let fence = d.claimed("w").await;
    d.lease("one~2").await;
    d.tick().await;
    assert_eq!(d.store().queue_audit(Audit::new("one~2")).await.expect("audited").rows.len(), 0);
    assert_eq!(d.take_ids(d.claim_by("one~2")).await, [""; 0]);
    let reply = d.store().lease_take_over(TakeOver::new("one~2", 1_u64)).await.expect("answered");
    assert_eq!(reply, mainstay_store::TakenOver::Rows { ids: vec![], more: false });
    d.settle(&fence, Outcome::Error("\"end\"".into())).await;
}

/// What follows a claim may fail: its rows are found by the audit and go back, though their executor lives.
async fn seed_s13_rows_of_a_claim_that_nobody_started_go_back_by_audit(d: &Desk) {
    d.register(Q, Limits { concurrency: Some(3), ..Limits::default() }).await;
    for id in ["a", "b", "c", "d"] {
        d.enqueue(id).await;
    }
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b", "c"]);
    let audited = d.store().queue_audit(Audit::new(E1)).await.expect("audited");
    for held in &audited.rows {
        d.give_back(&held.fence).await;
    }
    assert_eq!(d.store().queue_audit(Audit::new(E1)).await.expect("audited").rows.len(), 0);
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b", "c"]);
    assert_eq!(d.row("a").await.attempts, 2);
}
