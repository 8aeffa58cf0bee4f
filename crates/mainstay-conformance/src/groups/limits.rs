//! Group `limits`: how many rows a claim may take, and what it answers at a limit.

use mainstay_store::{Claim, Effect, Limits, Local, Outcome, Rate, Reach, Registered, Stop, wire};

use crate::desk::{APP, Desk, E1, E2, Q, V1, WORK, ids, ms, rows, success};

cases! { "limits";
    a_fleet_limit_counts_every_executor;
    a_fleet_limit_counts_other_versions;
    a_fleet_limit_does_not_count_other_applications;
    a_full_fleet_takes_nothing;
    a_full_fleet_is_told_on_an_empty_queue;
    a_claim_that_fills_the_fleet_says_so;
    an_outcome_frees_a_fleet_slot;
    a_cancel_frees_a_fleet_slot;
    a_delete_frees_a_fleet_slot;
    a_give_back_frees_a_fleet_slot;
    a_forced_resume_frees_a_fleet_slot;
    a_take_over_frees_fleet_slots;
    a_dead_executor_holds_its_fleet_slots;
    a_lowered_limit_starts_nothing_until_there_is_room;
    a_raised_limit_is_used_by_the_next_claim;
    rows_of_a_deleted_queue_count_when_it_is_back;
    direct_starts_take_no_fleet_slot;
    rows_that_wait_take_no_fleet_slot;
    a_parked_row_takes_no_fleet_slot;
    fleets_of_two_queues_are_apart;
    a_process_limit_counts_what_its_claimer_says;
    a_full_process_takes_nothing;
    a_process_limit_is_one_process_s;
    the_tightest_limit_wins;
    the_batch_comes_after_the_limits;
    the_internal_queue_has_no_limits;
    a_rate_counts_starts_in_its_window;
    a_window_leaves_out_its_first_moment;
    a_claim_that_fills_the_window_says_when_it_opens;
    a_full_window_opens_when_the_oldest_start_leaves;
    starts_count_whatever_became_of_the_row;
    starts_of_every_executor_count;
    starts_before_a_rate_do_not_count;
    windows_of_two_queues_are_apart;
    a_row_is_marked_where_its_queue_has_a_rate;
    a_parked_row_is_no_start;
    a_repeat_is_no_start;
    a_rate_stops_before_a_fleet;
    a_lowered_rate_counts_what_was_started;
}

fn fleet(concurrency: u32) -> Limits {
    Limits { concurrency: Some(concurrency), ..Limits::default() }
}

fn rate(starts: u32, millis: u64) -> Limits {
    Limits { rate: Some(Rate { starts, period: ms(millis) }), ..Limits::default() }
}

/// The queue with these limits, and rows `w0`, `w1`, …
async fn queue(d: &Desk, limits: Limits, count: u32) {
    d.register(Q, limits).await;
    for n in 0..count {
        d.enqueue(&format!("w{n}")).await;
    }
    d.pass(10);
}

async fn taken(d: &Desk, claim: Claim) -> (usize, Stop) {
    let claimed = d.take(claim).await;
    (claimed.rows.len(), claimed.stop)
}

const FLEET: Stop = Stop::Limit(Reach::Fleet);
const PROCESS: Stop = Stop::Limit(Reach::Process);

async fn a_fleet_limit_counts_every_executor(d: &Desk) {
    queue(d, fleet(3), 6).await;
    assert_eq!(taken(d, d.claim().budget(2)).await, (2, Stop::More));
    assert_eq!(taken(d, d.claim_by(E2)).await, (1, FLEET));
    assert_eq!(taken(d, d.claim()).await, (0, FLEET));
}

async fn a_fleet_limit_counts_other_versions(d: &Desk) {
    queue(d, fleet(2), 0).await;
    for version in ["v1", "v2"] {
        for n in 0..2 {
            d.put(d.job(&format!("{version}-{n}")).version(version)).await;
        }
    }
    assert_eq!(taken(d, d.claim().budget(1)).await.0, 1);
    let other = Claim::new(Q, E2, APP, "v2", d.token()).names(vec![Registered::new(WORK)]);
    assert_eq!(taken(d, other).await, (1, FLEET));
    assert_eq!(taken(d, d.claim()).await, (0, FLEET));
}

async fn a_fleet_limit_does_not_count_other_applications(d: &Desk) {
    queue(d, fleet(1), 1).await;
    d.put(d.job("theirs").app("else")).await;
    let theirs = Claim::new(Q, E2, "else", V1, d.token()).names(vec![Registered::new(WORK)]);
    assert_eq!(taken(d, theirs).await.0, 1);
    assert_eq!(d.take_ids(d.claim()).await, ["w0"]);
}

async fn a_full_fleet_takes_nothing(d: &Desk) {
    queue(d, fleet(1), 2).await;
    assert_eq!(d.take_ids(d.claim()).await, ["w0"]);
    for claim in [d.claim(), d.claim_by(E2)] {
        assert_eq!(taken(d, claim).await, (0, FLEET));
    }
    assert_eq!(d.row("w1").await.attempts, 0);
}

async fn a_full_fleet_is_told_on_an_empty_queue(d: &Desk) {
    queue(d, fleet(1), 1).await;
    d.take_one().await;
    assert_eq!(taken(d, d.claim()).await, (0, FLEET));
}

async fn a_claim_that_fills_the_fleet_says_so(d: &Desk) {
    queue(d, fleet(2), 2).await;
    assert_eq!(taken(d, d.claim()).await, (2, FLEET));
}

/// A full queue of one with `w0` running and `w1` waiting; `w1` can be claimed after `free`.
async fn frees<F: Future<Output = ()>>(d: &Desk, free: impl FnOnce(mainstay_store::Fence) -> F) {
    queue(d, fleet(1), 2).await;
    let fence = d.take_one().await.fence;
    assert_eq!(taken(d, d.claim_by(E2)).await.0, 0);
    free(fence).await;
    assert_eq!(taken(d, d.claim_by(E2)).await.0, 1);
    assert_eq!(taken(d, d.claim_by(E2)).await, (0, FLEET));
}

async fn an_outcome_frees_a_fleet_slot(d: &Desk) {
    frees(d, async |fence| d.settle(&fence, success("end")).await).await;
    let fence = d.store().queue_audit(mainstay_store::Audit::new(E2)).await.expect("read").rows.remove(0).fence;
    d.settle(&fence, Outcome::Parked("\"cannot\"".into())).await;
    d.enqueue("w2").await;
    assert_eq!(taken(d, d.claim()).await.0, 1);
}

async fn a_cancel_frees_a_fleet_slot(d: &Desk) {
    frees(d, async |_| assert_eq!(d.cancel("w0").await, ["w0"])).await;
}

async fn a_delete_frees_a_fleet_slot(d: &Desk) {
    frees(d, async |_| assert_eq!(d.delete("w0").await, ["w0"])).await;
}

async fn a_give_back_frees_a_fleet_slot(d: &Desk) {
    frees(d, async |fence| d.give_back(&fence).await).await;
}

async fn a_forced_resume_frees_a_fleet_slot(d: &Desk) {
    let resume = Effect::Resume { ids: ids(&["w0"]), queue: None, force: true };
    frees(d, async |_| assert_eq!(d.moved(resume).await, ["w0"])).await;
}

async fn a_take_over_frees_fleet_slots(d: &Desk) {
    frees(d, async |_| {
        d.take_over(E1).await;
    })
    .await;
}

async fn a_dead_executor_holds_its_fleet_slots(d: &Desk) {
    queue(d, fleet(1), 2).await;
    d.take_one().await;
    d.pass(86_400_000);
    d.tick().await;
    assert_eq!(taken(d, d.claim_by(E2)).await, (0, FLEET));
}

async fn a_lowered_limit_starts_nothing_until_there_is_room(d: &Desk) {
    queue(d, fleet(3), 6).await;
    let running = d.take(d.claim()).await.rows;
    d.register(Q, fleet(1)).await;
    for row in &running {
        assert_eq!(taken(d, d.claim()).await, (0, FLEET));
        d.settle(&row.fence, success("end")).await;
    }
    assert_eq!(taken(d, d.claim()).await, (1, FLEET));
}

async fn a_raised_limit_is_used_by_the_next_claim(d: &Desk) {
    queue(d, fleet(1), 6).await;
    assert_eq!(taken(d, d.claim()).await.0, 1);
    d.register(Q, fleet(4)).await;
    assert_eq!(taken(d, d.claim()).await, (3, FLEET));
    d.register(Q, Limits::default()).await;
    assert_eq!(taken(d, d.claim()).await, (2, Stop::Drained));
}

async fn rows_of_a_deleted_queue_count_when_it_is_back(d: &Desk) {
    queue(d, fleet(2), 4).await;
    d.take(d.claim().budget(1)).await;
    d.store().queue_delete(&APP.into(), &Q.into()).await.expect("deleted");
    d.register(Q, fleet(2)).await;
    assert_eq!(taken(d, d.claim()).await, (1, FLEET));
}

async fn direct_starts_take_no_fleet_slot(d: &Desk) {
    queue(d, fleet(1), 1).await;
    for id in ["a", "b"] {
        d.start(id).await;
    }
    assert_eq!(taken(d, d.claim()).await, (1, FLEET));
}

async fn rows_that_wait_take_no_fleet_slot(d: &Desk) {
    queue(d, fleet(2), 5).await;
    d.put(d.later("late", 1_000)).await;
    assert_eq!(taken(d, d.claim()).await, (2, FLEET));
}

async fn a_parked_row_takes_no_fleet_slot(d: &Desk) {
    queue(d, fleet(2), 2).await;
    let parking = vec![Registered { max_attempts: 0, ..Registered::new(WORK) }];
    let claimed = d.take(d.claim().names(parking)).await;
    assert_eq!((claimed.rows.len(), claimed.parked.len(), claimed.stop), (0, 2, Stop::More));
    for id in ["a", "b", "c"] {
        d.enqueue(id).await;
    }
    assert_eq!(taken(d, d.claim()).await, (2, FLEET));
}

async fn fleets_of_two_queues_are_apart(d: &Desk) {
    queue(d, fleet(1), 2).await;
    d.register("other", fleet(1)).await;
    d.put(d.job_on("other", "x")).await;
    assert_eq!(taken(d, d.claim()).await, (1, FLEET));
    assert_eq!(taken(d, d.claim_on("other")).await, (1, FLEET));
}

fn running(count: u32) -> Local {
    Local { running: count, ..Local::default() }
}

fn process(worker_concurrency: u32) -> Limits {
    Limits { worker_concurrency: Some(worker_concurrency), ..Limits::default() }
}

async fn a_process_limit_counts_what_its_claimer_says(d: &Desk) {
    queue(d, process(3), 6).await;
    assert_eq!(taken(d, d.claim().local(running(1))).await, (2, PROCESS));
    assert_eq!(taken(d, d.claim().local(running(0))).await, (3, PROCESS));
}

async fn a_full_process_takes_nothing(d: &Desk) {
    queue(d, process(2), 2).await;
    for local in [2, 3, u32::MAX] {
        assert_eq!(taken(d, d.claim().local(running(local))).await, (0, PROCESS));
    }
    assert_eq!(d.row("w0").await.attempts, 0);
}

async fn a_process_limit_is_one_process_s(d: &Desk) {
    queue(d, process(1), 3).await;
    assert_eq!(taken(d, d.claim()).await, (1, PROCESS));
    assert_eq!(taken(d, d.claim_by(E2)).await, (1, PROCESS));
}

async fn the_tightest_limit_wins(d: &Desk) {
    let cases = [
        (Limits { worker_concurrency: Some(1), ..fleet(2) }, 1, PROCESS),
        (Limits { worker_concurrency: Some(2), ..fleet(2) }, 2, PROCESS),
        (Limits { concurrency: Some(1), ..rate(2, 1_000) }, 1, FLEET),
        (Limits { concurrency: Some(3), ..rate(2, 1_000) }, 2, Stop::RateIn(ms(1_000))),
        (Limits { worker_concurrency: Some(2), concurrency: Some(2), ..rate(2, 1_000) }, 2, PROCESS),
        (Limits { concurrency: Some(2), ..rate(2, 1_000) }, 2, Stop::RateIn(ms(1_000))),
    ];
    for (at, (limits, count, stop)) in cases.into_iter().enumerate() {
        let name = format!("q{at}");
        d.register(&name, limits).await;
        for n in 0..5 {
            d.put(d.job_on(&name, &format!("{name}-{n}"))).await;
        }
        assert_eq!(taken(d, d.claim_on(&name)).await, (count, stop), "{limits:?}");
    }
}

async fn the_batch_comes_after_the_limits(d: &Desk) {
    queue(d, Limits { worker_concurrency: Some(2), ..fleet(2) }, 5).await;
    assert_eq!(taken(d, d.claim().budget(1)).await, (1, Stop::More));
    assert_eq!(taken(d, d.claim().budget(1)).await, (1, FLEET));
}

async fn the_internal_queue_has_no_limits(d: &Desk) {
    for n in 0..40 {
        d.put(d.job_on(wire::INTERNAL_QUEUE, &format!("w{n}"))).await;
    }
    let claim = d.claim_on(wire::INTERNAL_QUEUE).local(running(1_000));
    assert_eq!(taken(d, claim).await, (40, Stop::Drained));
    assert!(!d.row("w0").await.rate_limited);
}

async fn a_rate_counts_starts_in_its_window(d: &Desk) {
    queue(d, rate(3, 1_000), 9).await;
    assert_eq!(taken(d, d.claim().budget(2)).await, (2, Stop::More));
    d.pass(400);
    assert_eq!(taken(d, d.claim()).await, (1, Stop::RateIn(ms(600))));
    d.pass(599);
    assert_eq!(taken(d, d.claim()).await, (0, Stop::RateIn(ms(1))));
    d.pass(1);
    assert_eq!(taken(d, d.claim()).await, (2, Stop::RateIn(ms(400))));
}

async fn a_window_leaves_out_its_first_moment(d: &Desk) {
    queue(d, rate(1, 100), 3).await;
    for _ in 0..3 {
        assert_eq!(taken(d, d.claim()).await, (1, Stop::RateIn(ms(100))));
        d.pass(99);
        assert_eq!(taken(d, d.claim()).await.0, 0);
        d.pass(1);
    }
}

async fn a_claim_that_fills_the_window_says_when_it_opens(d: &Desk) {
    queue(d, rate(2, 5_000), 4).await;
    assert_eq!(taken(d, d.claim()).await, (2, Stop::RateIn(ms(5_000))));
}

async fn a_full_window_opens_when_the_oldest_start_leaves(d: &Desk) {
    queue(d, rate(4, 10_000), 9).await;
    for _ in 0..4 {
        assert_eq!(taken(d, d.claim().budget(1)).await.0, 1);
        d.pass(1_000);
    }
    assert_eq!(taken(d, d.claim()).await, (0, Stop::RateIn(ms(6_000))));
    // With a lower limit only its latest starts are looked at.
    d.register(Q, rate(2, 10_000)).await;
    assert_eq!(taken(d, d.claim()).await, (0, Stop::RateIn(ms(8_000))));
}

async fn starts_count_whatever_became_of_the_row(d: &Desk) {
    queue(d, rate(6, 60_000), 9).await;
    let fences: Vec<_> = d.take(d.claim().budget(5)).await.rows.into_iter().map(|row| row.fence).collect();
    d.settle(&fences[0], success("end")).await;
    d.cancel("w1").await;
    d.delete("w2").await;
    d.moved(Effect::Resume { ids: ids(&["w3"]), queue: None, force: true }).await;
    d.give_back(&fences[4]).await;
    assert_eq!(taken(d, d.claim()).await, (1, Stop::RateIn(ms(60_000))));
    d.take_over(E1).await;
    let (count, stop) = taken(d, d.claim_by(E2)).await;
    assert!(count == 0 && matches!(stop, Stop::RateIn(_)), "{count} {stop:?}");
}

async fn starts_of_every_executor_count(d: &Desk) {
    queue(d, rate(2, 1_000), 4).await;
    assert_eq!(taken(d, d.claim().budget(1)).await.0, 1);
    assert_eq!(taken(d, d.claim_by(E2)).await, (1, Stop::RateIn(ms(1_000))));
    assert_eq!(taken(d, d.claim_by(E2)).await.0, 0);
}

async fn starts_before_a_rate_do_not_count(d: &Desk) {
    queue(d, Limits::default(), 6).await;
    assert_eq!(taken(d, d.claim().budget(3)).await.0, 3);
    d.register(Q, rate(2, 60_000)).await;
    assert_eq!(taken(d, d.claim()).await, (2, Stop::RateIn(ms(60_000))));
}

async fn windows_of_two_queues_are_apart(d: &Desk) {
    queue(d, rate(1, 60_000), 2).await;
    d.register("other", rate(1, 60_000)).await;
    d.put(d.job_on("other", "x")).await;
    assert_eq!(taken(d, d.claim()).await.0, 1);
    assert_eq!(taken(d, d.claim_on("other")).await.0, 1);
}

async fn a_row_is_marked_where_its_queue_has_a_rate(d: &Desk) {
    queue(d, rate(9, 1_000), 1).await;
    let claimed = d.take_one().await;
    assert!(claimed.row.rate_limited && d.row("w0").await.rate_limited);
    d.give_back(&claimed.fence).await;
    d.register(Q, Limits::default()).await;
    assert!(!d.take_one().await.row.rate_limited);
}

async fn a_parked_row_is_no_start(d: &Desk) {
    queue(d, rate(1, 60_000), 1).await;
    let parking = vec![Registered { max_attempts: 0, ..Registered::new(WORK) }];
    assert_eq!(d.take(d.claim().names(parking)).await.parked.len(), 1);
    d.enqueue("next").await;
    assert_eq!(d.take_ids(d.claim()).await, ["next"]);
}

async fn a_repeat_is_no_start(d: &Desk) {
    queue(d, rate(3, 60_000), 3).await;
    let claim = d.claim().budget(1);
    d.take(claim.clone()).await;
    for _ in 0..5 {
        assert_eq!(rows(&d.take(claim.clone().repeat(true)).await), ["w0"]);
    }
    assert_eq!(taken(d, d.claim()).await.0, 2);
}

async fn a_rate_stops_before_a_fleet(d: &Desk) {
    queue(d, Limits { concurrency: Some(1), ..rate(1, 1_000) }, 2).await;
    assert_eq!(taken(d, d.claim()).await, (1, Stop::RateIn(ms(1_000))));
    d.pass(1_000);
    assert_eq!(taken(d, d.claim()).await, (0, FLEET));
}

async fn a_lowered_rate_counts_what_was_started(d: &Desk) {
    queue(d, rate(5, 60_000), 9).await;
    assert_eq!(taken(d, d.claim().budget(4)).await.0, 4);
    d.register(Q, rate(3, 60_000)).await;
    assert_eq!(taken(d, d.claim()).await, (0, Stop::RateIn(ms(60_000))));
    d.register(Q, rate(6, 120_000)).await;
    d.pass(90_000);
    assert_eq!(taken(d, d.claim()).await.0, 2);
    assert_eq!(taken(d, d.claim()).await, (0, Stop::RateIn(ms(30_000))));
}
