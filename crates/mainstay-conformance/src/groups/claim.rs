//! Group `claim`: what a claim writes, answers and refuses.

use std::collections::BTreeSet;

use mainstay_store::{
    Change, Claim, Limits, Outcome, QueueChange, Registered, Standing, Status, Stop, UpdateQueue, wire,
};

use crate::desk::{APP, Desk, E1, E2, Q, V1, WORK, field, ms, rows, success, texts};

cases! { "claim";
    a_claim_makes_a_row_its_executor_s;
    a_claim_keeps_what_it_does_not_name;
    a_claim_turns_a_timeout_into_a_deadline;
    a_deadline_is_set_once;
    a_given_deadline_outlives_the_claim;
    a_start_stamp_is_after_the_last_change;
    a_claim_leaves_an_owner_and_takes_the_unowned;
    an_empty_queue_is_drained;
    fewer_rows_than_asked_for_drain_the_queue;
    a_full_batch_may_have_more;
    a_claim_takes_what_its_budget_allows;
    the_reply_of_a_claim_carries_the_clock;
    rows_are_answered_as_the_claim_left_them;
    every_fence_of_a_claim_is_current;
    a_claimed_row_is_not_claimed_again;
    claims_of_one_executor_add_up;
    a_budget_of_no_rows_is_invalid;
    names_of_a_claim_are_bounded;
    a_claim_s_token_has_at_most_40_bytes;
    an_executor_without_a_lease_claims_nothing;
    an_executor_with_an_ended_lease_claims_nothing;
    an_unregistered_queue_is_no_queue;
    a_deleted_queue_is_no_queue;
    the_internal_queue_is_always_there;
    an_outdated_revision_takes_nothing;
    the_revision_at_hand_is_taken;
    a_claim_without_a_revision_takes_rows;
    a_field_is_checked_before_the_lease;
    the_lease_is_asked_before_the_queue;
    a_repeat_answers_the_same_rows;
    a_repeat_takes_no_others;
    a_repeat_leaves_out_what_has_left_the_execution;
    a_repeat_of_a_lost_claim_is_a_claim;
    a_repeat_after_all_has_ended_is_a_claim;
    a_repeat_looks_at_one_queue;
    a_repeat_is_answered_on_a_full_queue;
    a_repeat_brings_inputs_and_steps;
    a_repeat_of_an_ended_lease_is_unleased;
    a_row_over_its_attempts_is_parked;
    a_parked_row_uses_up_a_place;
    parked_rows_leave_more_to_be_claimed;
    parking_goes_by_the_registration;
    attempts_grow_by_one_a_claim;
    a_row_is_run_as_often_as_it_may;
    a_resumed_row_has_its_attempts_again;
    case_o02_a_bad_row_does_not_stop_the_batch;
}

async fn a_claim_makes_a_row_its_executor_s(d: &Desk) {
    d.enqueue("w").await;
    d.pass(1_000);
    let row = d.take_one().await.row;
    assert_eq!((row.status, row.attempts, row.executor), (Status::Pending, 1, Some(E1.into())));
    assert_eq!((row.started_at, row.updated_at, row.version), (Some(d.now()), d.now(), Some(V1.into())));
    assert_eq!((row.rate_limited, row.deadline), (false, None));
}

async fn a_claim_keeps_what_it_does_not_name(d: &Desk) {
    let mut submit = d.job("w").input("[1]").priority(3).codec("json").parent("p").attributes("{}").schedule("s");
    submit.place = mainstay_store::Place::Queue { name: Q.into(), key: Some("k".into()), delay: None };
    d.put(submit).await;
    let mut expected = d.row("w").await;
    d.pass(1_000);
    let row = d.take_one().await.row;
    expected.status = Status::Pending;
    (expected.attempts, expected.executor, expected.version) = (1, Some(E1.into()), Some(V1.into()));
    (expected.started_at, expected.updated_at) = (Some(d.now()), d.now());
    assert_eq!(row, expected);
}

async fn a_claim_turns_a_timeout_into_a_deadline(d: &Desk) {
    d.put(d.job("w").timeout(ms(5_000))).await;
    d.pass(1_000);
    let row = d.take_one().await.row;
    assert_eq!((row.deadline, row.timeout), (Some(d.now() + ms(5_000)), Some(ms(5_000))));
}

async fn a_deadline_is_set_once(d: &Desk) {
    d.put(d.job("w").timeout(ms(5_000))).await;
    d.pass(1_000);
    let first = d.take_one().await;
    d.pass(1_000);
    d.give_back(&first.fence).await;
    d.pass(1_000);
    assert_eq!(d.take_one().await.row.deadline, first.row.deadline);
}

async fn a_given_deadline_outlives_the_claim(d: &Desk) {
    d.put(d.job("w").timeout(ms(5)).deadline(ms(60_000))).await;
    let due = Some(d.now() + ms(60_000));
    d.pass(1_000);
    assert_eq!(d.take_one().await.row.deadline, due);
}

async fn a_start_stamp_is_after_the_last_change(d: &Desk) {
    d.enqueue("w").await;
    let row = d.take_one().await.row;
    let at_once = d.now() + ms(1);
    assert_eq!((row.created_at, row.started_at, row.updated_at), (d.now(), Some(at_once), at_once));
    let audited = d.store().queue_audit(mainstay_store::Audit::new(E1)).await.expect("read");
    assert!(audited.now >= at_once, "no operation works with a clock behind the latest stamp");
}

async fn a_claim_leaves_an_owner_and_takes_the_unowned(d: &Desk) {
    d.enqueue("owned").await;
    let mut unowned = d.job("unowned");
    unowned.app = None;
    d.put(unowned).await;
    d.take(d.claim()).await;
    assert_eq!((d.row("owned").await.app, d.row("unowned").await.app), (Some(APP.into()), Some(APP.into())));
}

async fn an_empty_queue_is_drained(d: &Desk) {
    let claimed = d.take(d.claim()).await;
    assert_eq!((rows(&claimed), claimed.parked.len(), claimed.stop), (vec![], 0, Stop::Drained));
}

async fn fewer_rows_than_asked_for_drain_the_queue(d: &Desk) {
    for id in ["a", "b"] {
        d.enqueue(id).await;
    }
    let claimed = d.take(d.claim().budget(3)).await;
    assert_eq!((rows(&claimed).len(), claimed.stop), (2, Stop::Drained));
}

async fn a_full_batch_may_have_more(d: &Desk) {
    for id in ["a", "b"] {
        d.enqueue(id).await;
    }
    let claimed = d.take(d.claim().budget(2)).await;
    assert_eq!((rows(&claimed).len(), claimed.stop), (2, Stop::More));
    assert_eq!(d.take(d.claim().budget(2)).await.stop, Stop::Drained);
}

async fn a_claim_takes_what_its_budget_allows(d: &Desk) {
    let units: Vec<_> = (0..300).map(|n| mainstay_store::Unit::new().effect(d.job(&format!("w{n:03}")))).collect();
    d.units(&units).await;
    for (budget, taken) in [(1, 1), (7, 7), (250, 250), (u32::MAX, 42)] {
        assert_eq!(d.take_ids(d.claim().budget(budget)).await.len(), taken, "budget {budget}");
    }
}

async fn the_reply_of_a_claim_carries_the_clock(d: &Desk) {
    d.pass(777);
    assert_eq!(d.take(d.claim()).await.now, d.now());
    assert_eq!(d.take(d.claim_on("nowhere")).await.now, d.now());
}

async fn rows_are_answered_as_the_claim_left_them(d: &Desk) {
    for id in ["a", "b", "c"] {
        d.enqueue(id).await;
    }
    for claimed in d.take(d.claim()).await.rows {
        assert_eq!(d.row(claimed.row.id.as_str()).await, claimed.row);
        assert_eq!(claimed.fence.workflow(), &claimed.row.id);
    }
}

async fn every_fence_of_a_claim_is_current(d: &Desk) {
    for n in 0..20 {
        d.enqueue(&format!("w{n:02}")).await;
    }
    let claimed = d.take(d.claim()).await.rows;
    let fences: BTreeSet<_> = claimed.iter().map(|row| row.fence.clone()).collect();
    assert_eq!(fences.len(), 20);
    for row in claimed {
        d.settle(&row.fence, success("end")).await;
    }
}

async fn a_claimed_row_is_not_claimed_again(d: &Desk) {
    d.enqueue("w").await;
    d.take_one().await;
    for claim in [d.claim(), d.claim_by(E2)] {
        assert_eq!(d.take_ids(claim).await, [""; 0]);
    }
}

async fn claims_of_one_executor_add_up(d: &Desk) {
    for id in ["a", "b", "c"] {
        d.enqueue(id).await;
        d.take_one().await;
    }
    let audited = d.store().queue_audit(mainstay_store::Audit::new(E1)).await.expect("read");
    assert_eq!(audited.rows.len(), 3);
}

async fn refused(d: &Desk, claim: Claim) -> String {
    let error = d.store().queue_claim(claim).await.expect_err("a bad field");
    assert_eq!(error.op(), "queue_claim");
    field(&error)
}

async fn a_budget_of_no_rows_is_invalid(d: &Desk) {
    assert_eq!(refused(d, d.claim().budget(0)).await, "claim.budget");
}

async fn names_of_a_claim_are_bounded(d: &Desk) {
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        let token = d.token();
        let cases = [
            ("claim.queue", Claim::new(bad, E1, APP, V1, &token)),
            ("claim.executor", Claim::new(Q, bad, APP, V1, &token)),
            ("claim.app", Claim::new(Q, E1, bad, V1, &token)),
            ("claim.version", Claim::new(Q, E1, APP, bad, &token)),
            ("claim.token", Claim::new(Q, E1, APP, V1, bad)),
            ("claim.cursor", d.claim().cursor(bad)),
        ];
        for (field, claim) in cases {
            assert_eq!(refused(d, claim).await, field);
        }
    }
}

async fn a_claim_s_token_has_at_most_40_bytes(d: &Desk) {
    d.enqueue("w").await;
    let claim = |bytes: usize| Claim::new(Q, E1, APP, V1, "t".repeat(bytes)).names(vec![Registered::new(WORK)]);
    assert_eq!(refused(d, claim(41)).await, "claim.token");
    assert_eq!(d.take_ids(claim(40)).await, ["w"]);
    assert_eq!(d.take_ids(claim(40).repeat(true)).await, ["w"]);
}

async fn an_executor_without_a_lease_claims_nothing(d: &Desk) {
    d.enqueue("w").await;
    let claimed = d.take(d.claim_by("nobody~1")).await;
    assert_eq!((rows(&claimed), claimed.stop, d.status("w").await), (vec![], Stop::Unleased, Status::Enqueued));
}

async fn an_executor_with_an_ended_lease_claims_nothing(d: &Desk) {
    for id in ["a", "b"] {
        d.claimed(id).await;
    }
    d.take_over_one(E1).await;
    assert_eq!(d.take(d.claim()).await.stop, Stop::Unleased, "it is ended");
    d.take_over(E1).await;
    assert_eq!(d.take(d.claim()).await.stop, Stop::Unleased, "it is removed");
    assert_eq!((d.status("a").await, d.status("b").await), (Status::Enqueued, Status::Enqueued));
}

async fn an_unregistered_queue_is_no_queue(d: &Desk) {
    d.put(d.job_on("nowhere", "w")).await;
    let claimed = d.take(d.claim_on("nowhere")).await;
    assert_eq!((rows(&claimed), claimed.stop, d.status("w").await), (vec![], Stop::NoQueue, Status::Enqueued));
}

async fn a_deleted_queue_is_no_queue(d: &Desk) {
    d.enqueue("w").await;
    assert!(d.store().queue_delete(&APP.into(), &Q.into()).await.expect("deleted"));
    assert_eq!(d.take(d.claim()).await.stop, Stop::NoQueue);
    d.register(Q, Limits::default()).await;
    assert_eq!(d.take_ids(d.claim()).await, ["w"]);
}

async fn the_internal_queue_is_always_there(d: &Desk) {
    let claimed = d.take(d.claim_on(wire::INTERNAL_QUEUE)).await;
    assert_eq!((rows(&claimed), claimed.stop), (vec![], Stop::Drained));
    for n in 0..10 {
        d.put(d.job_on(wire::INTERNAL_QUEUE, &format!("w{n}"))).await;
    }
    assert_eq!(d.take_ids(d.claim_on(wire::INTERNAL_QUEUE)).await.len(), 10);
}

async fn change_limits(d: &Desk) {
    let change = QueueChange { concurrency: Change::Set(9), ..QueueChange::default() };
    d.store().queue_update(UpdateQueue::new(Q, APP, change)).await.expect("updated");
}

async fn an_outdated_revision_takes_nothing(d: &Desk) {
    let planned = d.register(Q, Limits::default()).await.revision;
    d.enqueue("w").await;
    change_limits(d).await;
    let claimed = d.take(d.claim().revision(planned)).await;
    let Stop::Stale(queue) = claimed.stop else { panic!("not stale: {:?}", claimed.stop) };
    assert_eq!((queue.name.as_str(), queue.stored.concurrency, queue.revision == planned), (Q, Some(9), false));
    assert_eq!((claimed.rows.len(), d.status("w").await), (0, Status::Enqueued));
    assert_eq!(d.take_ids(d.claim().revision(queue.revision)).await, ["w"]);
}

async fn the_revision_at_hand_is_taken(d: &Desk) {
    let planned = d.register(Q, Limits::default()).await.revision;
    d.register("other", Limits { concurrency: Some(2), ..Limits::default() }).await;
    d.enqueue("w").await;
    assert_eq!(d.take_ids(d.claim().revision(planned)).await, ["w"]);
}

async fn a_claim_without_a_revision_takes_rows(d: &Desk) {
    d.enqueue("w").await;
    change_limits(d).await;
    assert_eq!(d.take_ids(d.claim()).await, ["w"]);
}

async fn a_field_is_checked_before_the_lease(d: &Desk) {
    assert_eq!(refused(d, d.claim_by("nobody~1").budget(0)).await, "claim.budget");
}

async fn the_lease_is_asked_before_the_queue(d: &Desk) {
    let claim = Claim::new("nowhere", "nobody~1", APP, V1, d.token());
    assert_eq!(d.take(claim).await.stop, Stop::Unleased);
}

/// Rows `a`, `b` and `c` with a claim that has taken the first two.
async fn two_of_three(d: &Desk) -> (Claim, mainstay_store::Claimed) {
    for id in ["a", "b", "c"] {
        d.enqueue(id).await;
    }
    let claim = d.claim().budget(2);
    let claimed = d.take(claim.clone()).await;
    assert_eq!(rows(&claimed), ["a", "b"]);
    (claim.repeat(true), claimed)
}

async fn a_repeat_answers_the_same_rows(d: &Desk) {
    let (repeat, first) = two_of_three(d).await;
    d.pass(1_000);
    for _ in 0..3 {
        let again = d.take(repeat.clone()).await;
        assert_eq!((&again.rows, &again.stop, again.parked.len()), (&first.rows, &Stop::More, 0));
    }
    d.settle(&first.rows[0].fence, success("end")).await;
}

async fn a_repeat_takes_no_others(d: &Desk) {
    let (repeat, _) = two_of_three(d).await;
    assert_eq!(rows(&d.take(repeat.budget(10)).await), ["a", "b"]);
    assert_eq!(d.status("c").await, Status::Enqueued);
}

async fn a_repeat_leaves_out_what_has_left_the_execution(d: &Desk) {
    let (repeat, first) = two_of_three(d).await;
    d.settle(&first.rows[0].fence, success("end")).await;
    assert_eq!(rows(&d.take(repeat.clone()).await), ["b"]);
    d.give_back(&first.rows[1].fence).await;
    let other = d.take(d.claim_by(E2).budget(1)).await;
    assert_eq!(rows(&other), ["b"]);
    assert_eq!(rows(&d.take(repeat).await), ["c"]);
}

async fn a_repeat_of_a_lost_claim_is_a_claim(d: &Desk) {
    for id in ["a", "b"] {
        d.enqueue(id).await;
    }
    let claim = d.claim().budget(1).repeat(true);
    let claimed = d.take(claim.clone()).await;
    assert_eq!((rows(&claimed), &claimed.stop), (vec!["a".to_owned()], &Stop::More));
    assert_eq!(d.take(claim).await.rows, claimed.rows);
}

async fn a_repeat_after_all_has_ended_is_a_claim(d: &Desk) {
    let (repeat, first) = two_of_three(d).await;
    for row in &first.rows {
        d.settle(&row.fence, success("end")).await;
    }
    let again = d.take(repeat).await;
    assert_eq!((rows(&again), again.stop), (vec!["c".to_owned()], Stop::Drained));
}

async fn a_repeat_looks_at_one_queue(d: &Desk) {
    let (repeat, _) = two_of_three(d).await;
    d.register("other", Limits::default()).await;
    d.put(d.job_on("other", "d")).await;
    let mut elsewhere = repeat;
    elsewhere.queue = "other".into();
    assert_eq!(rows(&d.take(elsewhere).await), ["d"]);
}

async fn a_repeat_is_answered_on_a_full_queue(d: &Desk) {
    d.register(Q, Limits { concurrency: Some(2), ..Limits::default() }).await;
    let (repeat, first) = two_of_three(d).await;
    assert_eq!(d.take(repeat.clone()).await.rows, first.rows);
    d.store().queue_delete(&APP.into(), &Q.into()).await.expect("deleted");
    assert_eq!(d.take(repeat).await.rows, first.rows, "its rows are looked for before the queue");
}

async fn a_repeat_brings_inputs_and_steps(d: &Desk) {
    d.put(d.job("w").input("[1]")).await;
    let fence = d.take_one().await.fence;
    d.record(&fence, 0, "first").await;
    d.give_back(&fence).await;
    let claim = d.claim();
    let first = d.take(claim.clone()).await;
    let again = d.take(claim.repeat(true)).await;
    assert_eq!((again.rows.len(), &again.rows), (1, &first.rows));
    assert_eq!(again.rows[0].steps.here(), d.steps("w").await);
}

async fn a_repeat_of_an_ended_lease_is_unleased(d: &Desk) {
    let (repeat, _) = two_of_three(d).await;
    d.take_over_one(E1).await;
    let again = d.take(repeat).await;
    assert_eq!((again.rows.len(), again.stop), (0, Stop::Unleased));
}

fn at_most(attempts: u32) -> Vec<Registered> {
    vec![Registered { max_attempts: attempts, ..Registered::new(WORK) }]
}

/// A row that was begun so often, and given back.
async fn begun(d: &Desk, id: &str, attempts: u32) {
    d.enqueue(id).await;
    for _ in 0..attempts {
        let fence = d.take_one().await.fence;
        d.give_back(&fence).await;
    }
}

async fn a_row_over_its_attempts_is_parked(d: &Desk) {
    begun(d, "w", 2).await;
    d.pass(1_000);
    let claimed = d.take(d.claim().names(at_most(2))).await;
    assert_eq!((rows(&claimed), texts(&claimed.parked)), (vec![], vec!["w".to_owned()]));
    assert_eq!(d.standing("w").await, Standing::Ended(Outcome::out_of_attempts(2)));
    let row = d.row("w").await;
    assert_eq!((row.status, row.attempts, row.completed_at), (Status::Parked, 2, Some(d.now())));
    assert_eq!((row.queue, row.dedup, row.started_at, row.updated_at), (None, None, None, d.now()));
}

async fn a_parked_row_uses_up_a_place(d: &Desk) {
    begun(d, "a", 1).await;
    d.pass(5);
    for id in ["b", "c"] {
        d.enqueue(id).await;
    }
    let claimed = d.take(d.claim().names(at_most(1)).budget(2)).await;
    assert_eq!((rows(&claimed), texts(&claimed.parked)), (vec!["b".to_owned()], vec!["a".to_owned()]));
    assert_eq!((claimed.stop, d.status("c").await), (Stop::More, Status::Enqueued));
}

async fn parked_rows_leave_more_to_be_claimed(d: &Desk) {
    d.register(Q, Limits { concurrency: Some(2), ..Limits::default() }).await;
    begun(d, "a", 1).await;
    begun(d, "b", 0).await;
    let claimed = d.take(d.claim().names(at_most(1))).await;
    assert_eq!((claimed.rows.len(), claimed.parked.len(), claimed.stop), (1, 1, Stop::More));
    assert_eq!(d.take(d.claim().names(at_most(1))).await.stop, Stop::Drained);
}

async fn parking_goes_by_the_registration(d: &Desk) {
    begun(d, "w", 3).await;
    d.put(mainstay_store::Submit::new("v", "other", d.token(), mainstay_store::Place::queue(Q)).app(APP)).await;
    let names = vec![
        Registered { max_attempts: 4, ..Registered::new(WORK) },
        Registered { max_attempts: 0, ..Registered::new("other") },
    ];
    let claimed = d.take(d.claim().names(names)).await;
    assert_eq!((rows(&claimed), texts(&claimed.parked)), (vec!["w".to_owned()], vec!["v".to_owned()]));
}

async fn attempts_grow_by_one_a_claim(d: &Desk) {
    d.enqueue("w").await;
    for attempts in 1..6 {
        let claimed = d.take_one().await;
        assert_eq!(claimed.row.attempts, attempts);
        d.give_back(&claimed.fence).await;
        assert_eq!(d.row("w").await.attempts, attempts);
    }
}

async fn a_row_is_run_as_often_as_it_may(d: &Desk) {
    d.enqueue("w").await;
    for _ in 0..3 {
        let claimed = d.take(d.claim().names(at_most(3))).await;
        d.give_back(&claimed.rows[0].fence).await;
    }
    assert_eq!(d.take(d.claim().names(at_most(3))).await.parked.len(), 1);
    assert_eq!(d.take(d.claim().names(at_most(3))).await.stop, Stop::Drained);
}

async fn a_resumed_row_has_its_attempts_again(d: &Desk) {
    begun(d, "w", 1).await;
    d.take(d.claim().names(at_most(1))).await;
    let resume = mainstay_store::Effect::Resume { ids: vec!["w".into()], queue: Some(Q.into()), force: false };
    assert_eq!(d.moved(resume).await, ["w"]);
    assert_eq!(d.take_ids(d.claim().names(at_most(1))).await, ["w"]);
}

async fn case_o02_a_bad_row_does_not_stop_the_batch(d: &Desk) {
    d.put(d.job("w3").priority(3)).await;
    let fence = d.take_one().await.fence;
    d.give_back(&fence).await;
    for n in [0, 1, 2, 4, 5, 6, 7, 8, 9] {
        d.put(d.job(&format!("w{n}")).priority(n)).await;
    }
    let claimed = d.take(d.claim().names(at_most(1)).budget(10)).await;
    assert_eq!(rows(&claimed), ["w0", "w1", "w2", "w4", "w5", "w6", "w7", "w8", "w9"]);
    assert_eq!((d.status("w3").await, texts(&claimed.parked)), (Status::Parked, vec!["w3".to_owned()]));
}
