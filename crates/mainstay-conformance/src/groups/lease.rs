//! Group `lease`: beats, take-over and audit.

use mainstay_store::{
    Audit, AuditCursor, Audited, Beat, Beaten, Lease, Limits, Registered, Status, Stop, TakeOver, TakenOver, Tick, wire,
};

use crate::desk::{APP, Desk, E1, E2, Q, WORK, field, ms, success, texts};

cases! { "lease";
    a_first_beat_opens_a_lease;
    a_higher_beat_moves_it_up;
    a_late_beat_never_moves_it_down;
    a_repeated_beat_changes_nothing;
    a_beat_without_a_lease_finds_it_gone;
    a_beat_after_a_take_over_finds_it_gone;
    a_beat_of_an_ended_lease_finds_it_gone;
    a_beat_of_0_is_invalid;
    names_of_a_beat_are_bounded;
    leases_are_listed_by_executor;
    only_one_s_own_leases_are_listed;
    an_ended_lease_is_listed_until_it_is_removed;
    a_live_executor_is_not_listed_as_dead;
    a_dead_process_is_listed_as_dead: Shared ProvesDeath;
    a_take_over_of_a_beat_that_moved_is_refused;
    a_take_over_enqueues_the_executor_s_rows;
    a_take_over_answers_in_order_of_id;
    a_take_over_is_done_in_pieces;
    a_take_over_leaves_other_executors;
    a_take_over_leaves_what_is_not_pending;
    a_take_over_sends_direct_starts_to_the_internal_queue;
    a_take_over_sends_direct_starts_to_the_fallback;
    a_take_over_keeps_what_it_does_not_name;
    a_take_over_of_an_idle_executor_removes_its_lease;
    a_take_over_of_an_unknown_executor_finds_no_rows;
    a_repeated_take_over_finds_no_rows;
    a_take_over_of_no_rows_is_invalid;
    names_of_a_take_over_are_bounded;
    what_was_taken_over_runs_elsewhere;
    take_overs_count_as_attempts;
    an_executor_taken_over_starts_nothing;
    an_audit_lists_pending_rows_with_their_fences;
    an_audit_is_in_order_of_age;
    an_audit_goes_on_after_its_cursor;
    an_audit_page_of_all_rows_has_no_next;
    an_audit_tells_queue_and_token;
    an_audit_leaves_out_what_has_ended;
    an_audit_of_an_ended_lease_lists_its_rows;
    an_audit_of_an_unknown_executor_is_empty;
    an_audit_of_no_rows_is_invalid;
    a_tick_beats_and_lists_the_leases;
    a_tick_without_a_beat_answers_none;
    a_tick_s_beat_finds_a_lost_lease_gone;
    a_tick_s_beat_is_checked;
}

async fn beat(d: &Desk, executor: &str, beat: u64) -> Beaten {
    d.store().lease_beat(Beat::new(executor, APP, beat)).await.expect("answered")
}

async fn leases(d: &Desk) -> Vec<Lease> {
    d.store().lease_list(&APP.into()).await.expect("listed").leases
}

async fn beat_of(d: &Desk, executor: &str) -> Option<u64> {
    leases(d).await.iter().find(|lease| lease.executor == *executor).map(|lease| lease.beat)
}

async fn a_first_beat_opens_a_lease(d: &Desk) {
    assert_eq!(beat(d, "new~1", 1).await, Beaten::Alive);
    assert_eq!(leases(d).await.first(), Some(&Lease::new("new~1", APP, 1_u64)));
    d.enqueue("w").await;
    assert_eq!(d.take_ids(d.claim_by("new~1")).await, ["w"]);
}

async fn a_higher_beat_moves_it_up(d: &Desk) {
    for next in [2, 3, 900] {
        assert_eq!((beat(d, E1, next).await, beat_of(d, E1).await), (Beaten::Alive, Some(next)));
    }
}

async fn a_late_beat_never_moves_it_down(d: &Desk) {
    beat(d, E1, 5).await;
    for late in [4, 1, 5] {
        assert_eq!((beat(d, E1, late).await, beat_of(d, E1).await), (Beaten::Alive, Some(5)));
    }
}

async fn a_repeated_beat_changes_nothing(d: &Desk) {
    beat(d, E1, 2).await;
    let before = leases(d).await;
    assert_eq!((beat(d, E1, 2).await, leases(d).await), (Beaten::Alive, before));
}

async fn a_beat_without_a_lease_finds_it_gone(d: &Desk) {
    assert_eq!((beat(d, "nobody~1", 2).await, beat_of(d, "nobody~1").await), (Beaten::Gone, None));
}

async fn a_beat_after_a_take_over_finds_it_gone(d: &Desk) {
    d.take_over(E1).await;
    assert_eq!((beat(d, E1, 2).await, beat_of(d, E1).await), (Beaten::Gone, None));
}

/// Of two rows of the first executor one is taken over, so that its lease is ended and not removed yet; the other one.
async fn half_taken_over(d: &Desk) -> &'static str {
    for id in ["a", "b"] {
        d.claimed(id).await;
    }
    if d.take_over_one(E1).await == "a" { "b" } else { "a" }
}

async fn a_beat_of_an_ended_lease_finds_it_gone(d: &Desk) {
    half_taken_over(d).await;
    for next in [1, 2] {
        assert_eq!((beat(d, E1, next).await, beat_of(d, E1).await), (Beaten::Gone, Some(1)));
    }
}

async fn a_beat_of_0_is_invalid(d: &Desk) {
    let error = d.store().lease_beat(Beat::new("new~1", APP, 0_u64)).await.expect_err("a beat of 0");
    assert!(field(&error).ends_with("beat"), "{error}");
    assert_eq!((error.op(), beat_of(d, "new~1").await), ("lease_beat", None));
}

async fn names_of_a_beat_are_bounded(d: &Desk) {
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        for (executor, app) in [(bad, APP), ("new~1", bad)] {
            field(&d.store().lease_beat(Beat::new(executor, app, 1_u64)).await.expect_err("a bad name"));
        }
    }
    assert_eq!(leases(d).await.len(), 2);
}

async fn leases_are_listed_by_executor(d: &Desk) {
    for executor in ["b~1", "A~1", "é~1", "a~2"] {
        beat(d, executor, 1).await;
    }
    let listed = d.store().lease_list(&APP.into()).await.expect("listed");
    let executors: Vec<&str> = listed.leases.iter().map(|lease| lease.executor.as_str()).collect();
    assert_eq!((executors, listed.now), (vec!["A~1", "a~2", "b~1", E1, E2, "é~1"], d.now()));
}

async fn only_one_s_own_leases_are_listed(d: &Desk) {
    d.store().lease_beat(Beat::new("theirs~1", "else", 1_u64)).await.expect("answered");
    assert_eq!(leases(d).await, [Lease::new(E1, APP, 1_u64), Lease::new(E2, APP, 1_u64)]);
    let theirs = d.store().lease_list(&"else".into()).await.expect("listed").leases;
    assert_eq!(theirs, [Lease::new("theirs~1", "else", 1_u64)]);
}

async fn an_ended_lease_is_listed_until_it_is_removed(d: &Desk) {
    let left = half_taken_over(d).await;
    assert_eq!(leases(d).await, [Lease::new(E1, APP, 1_u64).ended(true), Lease::new(E2, APP, 1_u64)]);
    assert_eq!(d.take_over(E1).await, [left]);
    assert_eq!(leases(d).await, [Lease::new(E2, APP, 1_u64)]);
}

async fn a_live_executor_is_not_listed_as_dead(d: &Desk) {
    d.pass(86_400_000);
    assert!(leases(d).await.iter().all(|lease| !lease.dead && !lease.ended));
}

/// The proof comes from the operating system, so real time passes until it is there.
async fn a_dead_process_is_listed_as_dead(d: &Desk) {
    let other = d.another().await;
    d.close();
    for _ in 0..200 {
        let listed = other.lease_list(&APP.into()).await.expect("listed").leases;
        if listed.iter().all(|lease| lease.dead) {
            return;
        }
        d.env().sleep(ms(20)).await;
    }
    panic!("the executors of a closed handle are not listed as dead");
}

async fn a_take_over_of_a_beat_that_moved_is_refused(d: &Desk) {
    d.claimed("w").await;
    beat(d, E1, 2).await;
    let before = (d.row("w").await, leases(d).await);
    for seen in [1_u64, 3] {
        let reply = d.store().lease_take_over(TakeOver::new(E1, seen)).await.expect("answered");
        assert_eq!(reply, TakenOver::Alive);
    }
    assert_eq!((d.row("w").await, leases(d).await), before);
    assert_eq!(d.take_over_in_calls(TakeOver::new(E1, 2_u64)).await.concat(), ["w"]);
}

async fn a_take_over_enqueues_the_executor_s_rows(d: &Desk) {
    d.claimed("w").await;
    d.pass(1_000);
    assert_eq!(d.take_over(E1).await, ["w"]);
    let row = d.row("w").await;
    assert_eq!((row.status, row.queue, row.started_at), (Status::Enqueued, Some(Q.into()), None));
    assert_eq!((row.updated_at, row.attempts), (d.now(), 1));
}

async fn a_take_over_answers_in_order_of_id(d: &Desk) {
    for id in ["b", "C", "a"] {
        d.claimed(id).await;
        d.pass(5);
    }
    let calls = d.take_over_in_calls(TakeOver::new(E1, 1_u64)).await;
    assert!(calls.iter().all(|ids| ids.is_sorted()), "{calls:?}");
    let mut all = calls.concat();
    all.sort();
    assert_eq!(all, ["C", "a", "b"]);
}

async fn a_take_over_is_done_in_pieces(d: &Desk) {
    for id in ["e", "d", "c", "b", "a"] {
        d.claimed(id).await;
    }
    let calls = d.take_over_in_calls(TakeOver::new(E1, 1_u64).limit(2)).await;
    assert!(calls.iter().all(|ids| ids.len() <= 2 && ids.is_sorted()), "{calls:?}");
    let mut all = calls.concat();
    all.sort();
    assert_eq!((all.join(""), leases(d).await.len()), ("abcde".to_owned(), 1));
}

async fn a_take_over_leaves_other_executors(d: &Desk) {
    d.enqueue("theirs").await;
    let fence = d.take(d.claim_by(E2)).await.rows.remove(0).fence;
    d.claimed("w").await;
    assert_eq!(d.take_over(E1).await, ["w"]);
    d.settle(&fence, success("end")).await;
}

async fn a_take_over_leaves_what_is_not_pending(d: &Desk) {
    for status in Status::ALL {
        d.make(status.as_str(), status).await;
    }
    let fence = d.claimed("given back").await;
    d.give_back(&fence).await;
    assert_eq!(d.take_over(E1).await, ["PENDING"]);
    for status in Status::ALL.into_iter().filter(|status| *status != Status::Pending) {
        assert_eq!(d.status(status.as_str()).await, status);
    }
}

async fn a_take_over_sends_direct_starts_to_the_internal_queue(d: &Desk) {
    d.start("w").await;
    d.take_over(E1).await;
    assert_eq!(d.row("w").await.queue, Some(wire::INTERNAL_QUEUE.into()));
    let mut claim = d.claim_by(E2);
    claim.queue = wire::INTERNAL_QUEUE.into();
    assert_eq!(d.take_ids(claim).await, ["w"]);
}

async fn a_take_over_sends_direct_starts_to_the_fallback(d: &Desk) {
    d.register("fallback", Limits::default()).await;
    d.start("direct").await;
    d.claimed("queued").await;
    d.take_over_in_calls(TakeOver::new(E1, 1_u64).fallback("fallback".into())).await;
    let queues = (d.row("direct").await.queue, d.row("queued").await.queue);
    assert_eq!(queues, (Some("fallback".into()), Some(Q.into())));
}

async fn a_take_over_keeps_what_it_does_not_name(d: &Desk) {
    d.put(d.job("w").priority(4).timeout(ms(60_000)).attributes("{}").input("[1]")).await;
    let claimed = d.take_one().await;
    d.record(&claimed.fence, 0, "kept").await;
    d.pass(1_000);
    d.take_over(E1).await;
    let mut expected = claimed.row;
    (expected.status, expected.started_at, expected.updated_at) = (Status::Enqueued, None, d.now());
    assert_eq!((d.row("w").await, d.values("w").await.len()), (expected, 1));
}

async fn a_take_over_of_an_idle_executor_removes_its_lease(d: &Desk) {
    assert_eq!(d.take_over(E1).await, [""; 0]);
    assert_eq!(leases(d).await, [Lease::new(E2, APP, 1_u64)]);
}

async fn a_take_over_of_an_unknown_executor_finds_no_rows(d: &Desk) {
    let reply = d.store().lease_take_over(TakeOver::new("nobody~1", 1_u64)).await.expect("answered");
    assert_eq!(reply, TakenOver::Rows { ids: vec![], more: false });
    assert_eq!(leases(d).await.len(), 2);
}

async fn a_repeated_take_over_finds_no_rows(d: &Desk) {
    d.claimed("w").await;
    d.take_over(E1).await;
    let before = d.row("w").await;
    d.pass(1_000);
    let reply = d.store().lease_take_over(TakeOver::new(E1, 1_u64)).await.expect("answered");
    assert_eq!((reply, d.row("w").await), (TakenOver::Rows { ids: vec![], more: false }, before));
}

async fn a_take_over_of_no_rows_is_invalid(d: &Desk) {
    d.claimed("w").await;
    let error = d.store().lease_take_over(TakeOver::new(E1, 1_u64).limit(0)).await.expect_err("a limit of 0");
    assert!(field(&error).ends_with("limit"), "{error}");
    assert_eq!((error.op(), d.status("w").await), ("lease_take_over", Status::Pending));
    assert!(leases(d).await.iter().all(|lease| !lease.ended));
}

async fn names_of_a_take_over_are_bounded(d: &Desk) {
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        for request in [TakeOver::new(bad, 1_u64), TakeOver::new(E1, 1_u64).fallback(bad.into())] {
            field(&d.store().lease_take_over(request).await.expect_err("a bad name"));
        }
    }
    assert_eq!(leases(d).await.len(), 2);
}

async fn what_was_taken_over_runs_elsewhere(d: &Desk) {
    let fence = d.claimed("w").await;
    d.record(&fence, 0, "first").await;
    d.take_over(E1).await;
    let claimed = d.take(d.claim_by(E2)).await.rows.remove(0);
    assert_eq!((claimed.row.executor, claimed.row.attempts), (Some(E2.into()), 2));
    assert_eq!(claimed.steps.here(), d.steps("w").await);
    d.settle(&claimed.fence, success("end")).await;
}

async fn take_overs_count_as_attempts(d: &Desk) {
    d.enqueue("w").await;
    let names = || vec![Registered { max_attempts: 2, ..Registered::new(WORK) }];
    for executor in ["x~1", "x~2"] {
        d.lease(executor).await;
        assert_eq!(d.take_ids(d.claim_by(executor).names(names())).await, ["w"]);
        d.take_over(executor).await;
    }
    assert_eq!(texts(&d.take(d.claim().names(names())).await.parked), ["w"]);
}

async fn an_executor_taken_over_starts_nothing(d: &Desk) {
    d.take_over(E1).await;
    d.enqueue("w").await;
    assert_eq!(d.take(d.claim()).await.stop, Stop::Unleased);
    let (_, why) = d.refused(mainstay_store::Unit::new().effect(d.direct("v"))).await;
    assert_eq!(why, mainstay_store::Refusal::Unleased(E1.into()));
}

async fn audit(d: &Desk, request: Audit) -> Audited {
    d.store().queue_audit(request).await.expect("audited")
}

fn held(audited: &Audited) -> Vec<&str> {
    audited.rows.iter().map(|row| row.fence.workflow().as_str()).collect()
}

async fn an_audit_lists_pending_rows_with_their_fences(d: &Desk) {
    let fences = [d.claimed("a").await, d.start("b").await];
    let audited = audit(d, Audit::new(E1)).await;
    let found: Vec<_> = audited.rows.iter().map(|row| row.fence.clone()).collect();
    assert_eq!(found, fences);
    for fence in &found {
        d.settle(fence, success("end")).await;
    }
    assert!(audited.now >= d.row("a").await.created_at);
}

async fn an_audit_is_in_order_of_age(d: &Desk) {
    for id in ["c", "b", "a", "é", "A"] {
        d.start(id).await;
        d.pass(u64::from(id == "c"));
    }
    assert_eq!(held(&audit(d, Audit::new(E1)).await), ["c", "A", "a", "b", "é"]);
}

async fn an_audit_goes_on_after_its_cursor(d: &Desk) {
    for n in 0..7 {
        d.start(&format!("w{n}")).await;
        d.pass(u64::from(n % 3 == 0));
    }
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..1_000 {
        let mut request = Audit::new(E1).limit(3);
        request.after = after;
        let page = audit(d, request).await;
        assert!(page.rows.len() <= 3, "{page:?}");
        found.extend(held(&page).into_iter().map(str::to_owned));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((found.join(" "), after), ("w0 w1 w2 w3 w4 w5 w6".to_owned(), None));
}

async fn an_audit_page_of_all_rows_has_no_next(d: &Desk) {
    for id in ["a", "b"] {
        d.start(id).await;
    }
    let page = audit(d, Audit::new(E1).limit(3)).await;
    assert_eq!((page.rows.len(), page.next), (2, None));
    let last = AuditCursor { created_at: d.now(), id: "b".into() };
    let beyond = audit(d, Audit::new(E1).after(last)).await;
    assert_eq!((beyond.rows.len(), beyond.next), (0, None));
}

async fn an_audit_tells_queue_and_token(d: &Desk) {
    d.pass(70);
    let direct = d.direct("direct");
    d.put(direct.clone()).await;
    d.enqueue("queued").await;
    let claim = d.claim();
    d.take(claim.clone()).await;
    let rows = audit(d, Audit::new(E1)).await.rows;
    assert_eq!((&rows[0].queue, &rows[0].token, rows[0].created_at), (&None, &Some(direct.token), d.now()));
    assert_eq!((&rows[1].queue, &rows[1].token), (&Some(Q.into()), &Some(claim.token)));
}

async fn an_audit_leaves_out_what_has_ended(d: &Desk) {
    let fences = [d.start("a").await, d.start("b").await, d.start("c").await, d.start("d").await];
    d.settle(&fences[0], success("end")).await;
    d.cancel("b").await;
    d.give_back(&fences[2]).await;
    assert_eq!(held(&audit(d, Audit::new(E1)).await), ["d"]);
}

async fn an_audit_of_an_ended_lease_lists_its_rows(d: &Desk) {
    let left = half_taken_over(d).await;
    assert_eq!(held(&audit(d, Audit::new(E1)).await), [left]);
}

async fn an_audit_of_an_unknown_executor_is_empty(d: &Desk) {
    let audited = audit(d, Audit::new("nobody~1")).await;
    assert_eq!((audited.rows.len(), audited.next, audited.now), (0, None, d.now()));
}

async fn an_audit_of_no_rows_is_invalid(d: &Desk) {
    let error = d.store().queue_audit(Audit::new(E1).limit(0)).await.expect_err("a limit of 0");
    assert!(field(&error).ends_with("limit"), "{error}");
    assert_eq!(error.op(), "queue_audit");
}

async fn a_tick_beats_and_lists_the_leases(d: &Desk) {
    let ticked = d.store().tick(Tick::new(APP).beat(Beat::new(E1, APP, 7_u64))).await.expect("ticked");
    assert_eq!(ticked.beat, Some(Beaten::Alive));
    assert_eq!(ticked.leases, [Lease::new(E1, APP, 7_u64), Lease::new(E2, APP, 1_u64)]);
    let ticked = d.store().tick(Tick::new(APP).beat(Beat::new("new~1", APP, 1_u64))).await.expect("ticked");
    assert_eq!((ticked.beat, ticked.leases.len()), (Some(Beaten::Alive), 3));
}

async fn a_tick_without_a_beat_answers_none(d: &Desk) {
    let ticked = d.tick().await;
    assert_eq!((ticked.beat, ticked.leases), (None, leases(d).await));
}

async fn a_tick_s_beat_finds_a_lost_lease_gone(d: &Desk) {
    d.take_over(E1).await;
    let ticked = d.store().tick(Tick::new(APP).beat(Beat::new(E1, APP, 2_u64))).await.expect("ticked");
    assert_eq!((ticked.beat, ticked.leases), (Some(Beaten::Gone), vec![Lease::new(E2, APP, 1_u64)]));
}

async fn a_tick_s_beat_is_checked(d: &Desk) {
    d.put(d.later("w", 10)).await;
    d.pass(10);
    let error = d.store().tick(Tick::new(APP).beat(Beat::new(E1, APP, 0_u64))).await.expect_err("a beat of 0");
    assert!(field(&error).ends_with("beat"), "{error}");
    assert_eq!((error.op(), d.status("w").await), ("tick", Status::Delayed));
}
