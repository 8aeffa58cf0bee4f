//! A lease that is lost and replaced, while workers come and answers of the old one are late.

use std::time::Duration;

use mainstay_env::Sim;
use mainstay_store::{ExecutorStore, Limits, Status, TakeOver};

use crate::lane::LaneInput;
use crate::renewal;
use crate::shared::Note;
use crate::{Begun, Room};

use super::support::{Fault, Process, calm, config, ids, launch};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

/// A process with three long bodies.
fn busy(sim: &Sim) -> Process {
    let web = launch(sim, calm(sim, "web"), 3600 * SECOND, config());
    web.register(sim, "q", Limits::default());
    web.enqueue(sim, "q", ids("w", 3));
    sim.advance(2 * SECOND);
    assert_eq!(web.started().len(), 3);
    web
}

/// Takes the lease away, and returns once the process has noticed; the next one takes some tries to open.
fn lose(sim: &Sim, web: &Process) {
    let first = web.dispatch.executor();
    let beat = sim.block_on(web.memory.lease_list(&"shop".into())).unwrap().leases[0].beat;
    web.probe.fault("lease_beat", Fault::Fail, 4);
    sim.block_on(web.memory.lease_take_over(TakeOver::new(first, beat))).unwrap();
    for _ in 0..600 {
        if web.dispatch.stats().renewals == 1 {
            return;
        }
        sim.advance(10 * MILLI);
    }
    panic!("the lost lease is not noticed");
}

#[test]
fn a_queue_that_comes_while_there_is_no_lease_waits_for_the_next_one() {
    let sim = Sim::new(77);
    let web = busy(&sim);
    let first = web.dispatch.executor();
    lose(&sim, &web);
    let before = web.probe.claims.lock().unwrap().len();
    web.probe.fault("queue_claim", Fault::Late, 1);
    web.enqueue(&sim, "new", ids("x", 1));
    web.register(&sim, "new", Limits::default());
    sim.advance(6 * SECOND);
    let stats = web.dispatch.stats();
    assert_eq!((stats.renewals, stats.evicted), (1, 3), "one lease was lost, and what ran under it");
    let claims = web.probe.claims.lock().unwrap();
    let late: Vec<_> = claims[before..].iter().filter(|claim| claim.executor == first).collect();
    assert!(claims.len() > before && late.is_empty(), "claims without a lease: {late:?}");
    drop(claims);
    assert_eq!(web.status(&sim, "x-000"), Status::Pending);
    assert_eq!((stats.running, web.started().len()), (4, 7));
}

#[test]
fn what_is_heard_of_the_time_between_two_leases_does_not_cost_the_new_one() {
    let sim = Sim::new(82);
    let web = busy(&sim);
    let shared = &web.dispatch.shared;
    let first = shared.identity(|identity| identity.epoch);
    lose(&sim, &web);
    let between = shared.identity(|identity| identity.epoch);
    sim.advance(6 * SECOND);
    let present = shared.identity(|identity| (identity.leased, identity.epoch));
    for old in [first, between] {
        assert!(!renewal::lose(shared, old), "a word of lease {old}, now {present:?}");
    }
    assert!(renewal::lose(shared, present.1), "a word of the present lease counts");
}

#[test]
fn a_lane_that_stopped_for_an_older_lease_goes_on_under_the_present_one() {
    let sim = Sim::new(83);
    let web = busy(&sim);
    let shared = &web.dispatch.shared;
    let room = Room { process: 0, running: 0 };
    let cell = shared.lanes.get(&"q".into()).unwrap();
    cell.lock().lane.step(shared.env.monotonic(), room, 0.5, LaneInput::Lost);
    shared.notes.post(Note::Unleased(99));
    web.enqueue(&sim, "q", ids("x", 1));
    sim.advance(SECOND);
    assert_eq!((web.started().len(), web.dispatch.stats().renewals), (4, 0));
}

#[test]
fn a_row_whose_claim_was_answered_without_a_lease_is_not_started() {
    let sim = Sim::new(84);
    let web = busy(&sim);
    web.probe.fault("queue_claim", Fault::Late, 1);
    web.enqueue(&sim, "q", ids("x", 1));
    sim.advance(SECOND);
    assert_eq!(web.status(&sim, "x-000"), Status::Pending, "claimed, and not yet answered");
    // The loss as the supervisor marks it, before its word has reached the worker.
    web.dispatch.shared.identity(|identity| identity.leased = false);
    sim.advance(2 * SECOND);
    assert_eq!(web.started().len(), 3);
    assert!(matches!(web.dispatch.begin(&"direct".into()), Begun::Full));
}

#[test]
fn a_body_whose_lease_is_lost_in_the_middle_of_its_launch_does_not_run_on() {
    let sim = Sim::new(85);
    let web = busy(&sim);
    web.bodies.loses.set(web.dispatch.clone()).unwrap();
    web.enqueue(&sim, "q", ids("x", 2));
    sim.advance(SECOND);
    assert_eq!(web.started().len(), 4, "the second row is not started");
    assert!(web.dispatch.running().is_empty(), "no body of the lost lease runs");
}
