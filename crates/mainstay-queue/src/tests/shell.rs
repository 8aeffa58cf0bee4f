//! What the tasks around the cores do: drain, refill, survive, renew, stop.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mainstay_env::Sim;
use mainstay_store::*;

use crate::lanes::Sent;

use super::support::{Fault, Process, calm, config, ids, launch};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

#[test]
fn a_backlog_drains_at_the_pace_of_its_slots() {
    let sim = Sim::new(1);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
    web.register(&sim, "q", Limits { worker_concurrency: Some(4), ..Limits::default() });
    web.enqueue(&sim, "q", ids("w", 200));
    sim.advance(2 * SECOND);
    // 50 rounds of 10 ms, each behind a cooldown of 5 ms: polling once a second would have started 8 rows.
    assert_eq!(web.started().len(), 200);
    assert_eq!(*web.bodies.most.lock().unwrap(), 4);
    assert_eq!(web.started(), ids("w", 200).iter().map(WorkflowId::from).collect::<Vec<_>>());
    assert_eq!(web.dispatch.stats().running, 0);
    assert!(sim.panics().is_empty(), "{:?}", sim.panics());
}

#[test]
fn fifty_idle_queues_cost_under_three_round_trips_a_second() {
    let sim = Sim::new(2);
    let web = launch(&sim, calm(&sim, "web"), MILLI, config());
    for queue in 0..50 {
        web.register(&sim, &format!("q{queue}"), Limits::default());
    }
    sim.advance(10 * SECOND);
    let before = web.probe.total();
    sim.advance(300 * SECOND);
    let calls = web.probe.total() - before;
    assert!(calls <= 900, "{calls} calls in 300 s: {:?}", web.probe.calls);
    assert!(web.probe.count("queue_probe") >= 200, "polls go on");
    assert_eq!(web.probe.count("queue_claim"), 0, "queues without work are not claimed");
    assert_eq!(web.dispatch.stats().workers, 51);
}

#[test]
fn a_lost_claim_answer_is_asked_for_again_with_its_token() {
    let sim = Sim::new(3);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
    web.register(&sim, "q", Limits::default());
    sim.advance(2 * SECOND);
    web.probe.fault("queue_claim", Fault::Lose, 2);
    web.enqueue(&sim, "q", ids("w", 5));
    sim.advance(2 * SECOND);
    let claims = web.probe.claims.lock().unwrap();
    assert!(claims.len() >= 3 && !claims[0].repeat && claims[1].repeat && claims[2].repeat);
    assert!(claims[0].token == claims[1].token && claims[1].token == claims[2].token);
    assert_eq!(web.bodies.started.lock().unwrap().len(), 5, "each once");
}

#[test]
fn every_claim_has_a_token_of_its_own() {
    let sim = Sim::new(18);
    let web = launch(&sim, calm(&sim, "web"), MILLI, config().batch(1));
    web.register(&sim, "q", Limits::default());
    web.enqueue(&sim, "q", ids("w", 50));
    sim.advance(3 * SECOND);
    let claims = web.probe.claims.lock().unwrap();
    let tokens: BTreeSet<_> = claims.iter().map(|claim| claim.token.clone()).collect();
    assert!(claims.len() >= 50 && claims.len() == tokens.len(), "{} claims, {} tokens", claims.len(), tokens.len());
}

/// A row that was claimed for the engine behind its back, with its claim.
fn claimed_aside(sim: &Sim, web: &Process) -> (Claim, Claimed) {
    web.enqueue(sim, "side", ids("w", 1));
    web.register(sim, "side", Limits::default());
    let revision = sim.block_on(web.memory.queue_list(&"shop".into())).unwrap()[0].revision;
    let (mut request, _) = web.dispatch.shared.new_claim(&"side".into());
    request.revision = Some(revision);
    let claimed = sim.block_on(web.memory.queue_claim(request.clone())).unwrap();
    assert_eq!(claimed.rows.len(), 1);
    (request, claimed)
}

#[test]
fn a_row_that_a_claim_brings_again_is_not_started_beside_itself() {
    let sim = Sim::new(19);
    let web = launch(&sim, calm(&sim, "web"), SECOND, config().listen([]));
    sim.advance(SECOND);
    let (request, claimed) = claimed_aside(&sim, &web);
    let cell = web.dispatch.shared.lanes.all().pop().unwrap();
    for _ in 0..2 {
        cell.lock().sent = Some(Sent { request: request.clone(), epoch: 0 });
        web.dispatch.shared.dispatch(&cell, claimed.clone());
    }
    assert_eq!((web.started().len(), web.dispatch.stats().evicted), (1, 0));
    assert_eq!(web.dispatch.stats().running, 1);
}

#[test]
fn a_row_that_was_claimed_under_a_lost_lease_is_not_started() {
    let sim = Sim::new(20);
    let web = launch(&sim, calm(&sim, "web"), SECOND, config().listen([]));
    sim.advance(SECOND);
    let (request, claimed) = claimed_aside(&sim, &web);
    let cell = web.dispatch.shared.lanes.all().pop().unwrap();
    web.dispatch.shared.identity(|identity| identity.epoch += 1);
    cell.lock().sent = Some(Sent { request, epoch: 0 });
    web.dispatch.shared.dispatch(&cell, claimed);
    assert!(web.started().is_empty());
}

#[test]
fn a_hanging_claim_stops_neither_the_beat_nor_other_queues() {
    let sim = Sim::new(4);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config().max_running(8));
    web.register(&sim, "a", Limits::default());
    web.register(&sim, "b", Limits::default());
    sim.advance(2 * SECOND);
    web.probe.fault("queue_claim", Fault::Hang, 1);
    web.enqueue(&sim, "a", ids("a", 1));
    sim.advance(SECOND);
    web.enqueue(&sim, "b", ids("b", 20));
    sim.advance(20 * SECOND);
    assert_eq!(web.started().len(), 20, "b drains while a hangs");
    assert_eq!(web.dispatch.stats().renewals, 0);
    sim.advance(60 * SECOND);
    assert_eq!(web.started().len(), 21);
}

#[test]
fn a_hanging_tick_does_not_cost_the_lease() {
    let sim = Sim::new(5);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
    let other = launch(&sim, web.memory.attach(sim.env("other")), MILLI, config());
    sim.advance(2 * SECOND);
    web.probe.fault("tick", Fault::Hang, 6);
    sim.advance(60 * SECOND);
    assert_eq!((web.dispatch.stats().renewals, other.dispatch.stats().taken_over), (0, 0));
    assert!(web.probe.count("lease_beat") > 5, "beats went alone");
    let leases = sim.block_on(web.memory.lease_list(&"shop".into())).unwrap().leases;
    assert_eq!(leases.len(), 2);
}

#[test]
fn a_dead_worker_a_dead_supervisor_and_a_dead_prober_are_replaced() {
    for op in ["queue_claim", "tick", "queue_probe", "queue_audit"] {
        let sim = Sim::new(6);
        let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
        web.register(&sim, "q", Limits::default());
        sim.advance(2 * SECOND);
        web.probe.fault(op, Fault::Panic, 1);
        web.enqueue(&sim, "q", ids("w", 10));
        sim.advance(10 * SECOND);
        assert_eq!(sim.panics().len(), 1, "{op}: {:?}", sim.panics());
        assert_eq!(web.started().len(), 10, "{op}");
        let stats = web.dispatch.stats();
        assert_eq!(stats.worker_restarts + stats.service_restarts, 1, "{op}: {stats:?}");
        web.enqueue(&sim, "q", ids("x", 10));
        sim.advance(3 * SECOND);
        assert_eq!((web.started().len(), web.dispatch.stats().workers), (20, 2), "{op}");
    }
}

#[test]
fn the_rows_of_a_dead_process_run_elsewhere_within_a_ttl() {
    let sim = Sim::new(7);
    let web = launch(&sim, calm(&sim, "web"), 3600 * SECOND, config());
    web.register(&sim, "q", Limits::default());
    web.enqueue(&sim, "q", ids("w", 10));
    sim.advance(2 * SECOND);
    assert_eq!(web.started().len(), 10);
    let other = launch(&sim, web.memory.attach(sim.env("other")), MILLI, config());
    sim.advance(30 * SECOND);
    assert_eq!(other.started().len(), 0, "the living are left alone");
    sim.kill("web");
    sim.advance(8 * SECOND);
    assert_eq!(other.started().len(), 0, "not before one ttl");
    sim.advance(6 * SECOND);
    assert_eq!(other.started().len(), 10);
    assert_eq!(other.dispatch.stats().taken_over, 10);
    assert_eq!(other.status(&sim, "w-000"), Status::Success);
}

#[test]
fn a_lost_lease_drops_what_runs_and_goes_on_under_a_new_id() {
    let sim = Sim::new(8);
    let web = launch(&sim, calm(&sim, "web"), 5 * SECOND, config());
    web.register(&sim, "q", Limits::default());
    web.enqueue(&sim, "q", ids("w", 3));
    sim.advance(2 * SECOND);
    let first = web.dispatch.executor();
    let beat = sim.block_on(web.memory.lease_list(&"shop".into())).unwrap().leases[0].beat;
    sim.block_on(web.memory.lease_take_over(TakeOver::new(first.clone(), beat))).unwrap();
    sim.advance(20 * SECOND);
    assert_ne!(web.dispatch.executor(), first);
    let stats = web.dispatch.stats();
    assert_eq!((stats.renewals, stats.running), (1, 0), "{stats:?}");
    assert_eq!(web.started().len(), 6, "each began again");
    assert_eq!(web.status(&sim, "w-002"), Status::Success);
}

#[test]
fn a_row_that_runs_nowhere_is_dispatched_again_within_seconds() {
    let sim = Sim::new(9);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
    web.register(&sim, "q", Limits::default());
    sim.advance(2 * SECOND);
    // A claim of this executor that its engine knows nothing of.
    let names = vec![Registered::new("job")];
    web.enqueue(&sim, "side", ids("w", 3));
    web.register(&sim, "side", Limits::default());
    let queue = sim.block_on(web.memory.queue_list(&"shop".into())).unwrap();
    let revision = queue.iter().find(|queue| queue.name == "side").unwrap().revision;
    let claim = Claim::new("side", web.dispatch.executor(), "shop", "shop@1", "foreign");
    let claimed = sim.block_on(web.memory.queue_claim(claim.names(names).revision(revision))).unwrap();
    assert_eq!(claimed.rows.len(), 3);
    sim.advance(12 * SECOND);
    assert_eq!(web.started().len(), 3);
    assert_eq!(web.dispatch.stats().given_back, 3);
}

#[test]
fn a_launch_that_panics_neither_stops_the_rows_behind_it_nor_loses_its_own() {
    let sim = Sim::new(10);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
    web.register(&sim, "q", Limits::default());
    web.bodies.panics.store(true, Ordering::Relaxed);
    web.enqueue(&sim, "q", ids("w", 3));
    sim.advance(500 * MILLI);
    assert_eq!((web.started().len(), web.dispatch.stats().running), (3, 0));
    web.bodies.panics.store(false, Ordering::Relaxed);
    sim.advance(5 * SECOND);
    assert_eq!(web.dispatch.stats().launch_panics, 3);
    assert_eq!(web.status(&sim, "w-000"), Status::Success);
}

#[test]
fn the_audit_goes_on_when_give_backs_hang_while_workers_die() {
    let sim = Sim::new(15);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
    web.register(&sim, "q", Limits::default());
    sim.advance(2 * SECOND);
    web.bodies.panics.store(true, Ordering::Relaxed);
    web.probe.fault("commit", Fault::Hang, 1);
    web.enqueue(&sim, "q", ids("w", 2));
    sim.advance(SECOND);
    web.bodies.panics.store(false, Ordering::Relaxed);
    web.probe.fault("queue_claim", Fault::Panic, 1);
    web.enqueue(&sim, "q", ids("x", 2));
    sim.advance(30 * SECOND);
    for id in ["w-000", "w-001", "x-000", "x-001"] {
        assert_eq!(web.status(&sim, id), Status::Success, "{id}");
    }
}

#[test]
fn rows_of_a_claim_that_is_out_at_the_stop_go_back_to_their_queue() {
    let sim = Sim::new(16);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
    web.register(&sim, "q", Limits::default());
    sim.advance(2 * SECOND);
    web.probe.fault("queue_claim", Fault::Late, 1);
    web.enqueue(&sim, "q", ids("w", 1));
    sim.advance(SECOND);
    assert_eq!(web.status(&sim, "w-000"), Status::Pending);
    sim.block_on(web.dispatch.stop_claiming());
    let claims = web.probe.count("queue_claim");
    sim.advance(SECOND);
    assert_eq!((web.status(&sim, "w-000"), web.started().len()), (Status::Enqueued, 0));
    web.enqueue(&sim, "q", ids("x", 3));
    sim.advance(60 * SECOND);
    assert_eq!(web.probe.count("queue_claim"), claims, "no claim begins");
    assert_eq!((web.dispatch.stats().workers, web.dispatch.stats().renewals), (0, 0), "the lease is kept");
}

#[test]
fn a_stop_while_an_answer_is_lost_leaves_its_rows_to_the_audit() {
    let sim = Sim::new(17);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
    web.register(&sim, "q", Limits::default());
    sim.advance(2 * SECOND);
    web.probe.fault("queue_claim", Fault::Lose, u32::MAX);
    web.enqueue(&sim, "q", ids("w", 1));
    sim.advance(SECOND);
    sim.block_on(web.dispatch.stop_claiming());
    sim.advance(10 * SECOND);
    assert_eq!(web.status(&sim, "w-000"), Status::Enqueued);
    assert_eq!(web.dispatch.stats().given_back, 1);
}

#[test]
fn shutdown_waits_for_what_runs_and_returns_the_rest() {
    let sim = Sim::new(11);
    let web = launch(&sim, calm(&sim, "web"), 3 * SECOND, config());
    web.register(&sim, "q", Limits { worker_concurrency: Some(2), ..Limits::default() });
    web.enqueue(&sim, "q", ids("w", 4));
    sim.advance(SECOND);
    let drained = sim.block_on(web.dispatch.shutdown(10 * SECOND));
    assert!(drained.evicted.is_empty() && drained.ended, "{drained:?}");
    assert_eq!((web.started().len(), web.status(&sim, "w-001")), (2, Status::Success));
    assert_eq!(web.status(&sim, "w-002"), Status::Enqueued);
    let leases = sim.block_on(web.memory.lease_list(&"shop".into())).unwrap().leases;
    assert!(leases.is_empty(), "{leases:?}");
    assert!(sim.live().iter().all(|task| !task.contains("queue/")), "{:?}", sim.live());
}

#[test]
fn shutdown_returns_by_its_deadline_when_the_store_hangs() {
    let sim = Sim::new(12);
    let web = launch(&sim, calm(&sim, "web"), 3600 * SECOND, config());
    web.register(&sim, "q", Limits::default());
    web.enqueue(&sim, "q", ids("w", 2));
    sim.advance(SECOND);
    for op in ["queue_claim", "tick", "queue_probe", "lease_beat", "lease_take_over", "commit", "queue_audit"] {
        web.probe.fault(op, Fault::Hang, u32::MAX);
    }
    web.enqueue(&sim, "q", ids("x", 2));
    let before = sim.clock().clone();
    let began = mainstay_env::Clock::monotonic(&before);
    let drained = sim.block_on(web.dispatch.shutdown(4 * SECOND));
    assert!(mainstay_env::Clock::monotonic(&before).since(began) <= 6 * SECOND);
    assert_eq!((drained.evicted.len(), drained.ended), (2, false));
    web.probe.heal();
    let other = launch(&sim, web.memory.attach(sim.env("other")), MILLI, config());
    sim.advance(20 * SECOND);
    assert_eq!(other.started().len(), 4, "its lease expires");
}

#[test]
fn places_of_the_process_go_round_all_queues_that_wait() {
    let sim = Sim::new(13);
    let web = launch(&sim, calm(&sim, "web"), 20 * MILLI, config().max_running(1));
    for queue in ["a", "b", "c"] {
        web.register(&sim, queue, Limits::default());
        web.enqueue(&sim, queue, ids(queue, 30));
    }
    sim.advance(2 * SECOND);
    let started = web.started();
    assert!(started.len() > 40, "{}", started.len());
    for queue in ["a", "b", "c"] {
        let turns = started.iter().take(30).filter(|id| id.as_str().starts_with(queue)).count();
        assert!((9..=11).contains(&turns), "{queue} had {turns} of 30 turns: {started:?}");
    }
    assert_eq!(*web.bodies.most.lock().unwrap(), 1);
}

#[test]
fn after_an_outage_of_minutes_work_goes_on_within_seconds() {
    let sim = Sim::new(14);
    let web = launch(&sim, calm(&sim, "web"), 10 * MILLI, config());
    let other = launch(&sim, web.memory.attach(sim.env("other")), 10 * MILLI, config().listen([]));
    web.register(&sim, "q", Limits::default());
    sim.advance(2 * SECOND);
    for op in ["queue_claim", "tick", "queue_probe", "lease_beat", "commit", "queue_audit"] {
        web.probe.fault(op, Fault::Fail, u32::MAX);
        other.probe.fault(op, Fault::Fail, u32::MAX);
    }
    web.enqueue(&sim, "q", ids("w", 3));
    sim.advance(600 * SECOND);
    web.probe.heal();
    other.probe.heal();
    sim.advance(3 * SECOND);
    assert_eq!(web.started().len(), 3);
    assert_eq!(web.dispatch.stats().renewals + other.dispatch.stats().taken_over, 0, "an outage kills nobody");
}
