//! Rows that are given back unstarted keep their attempts, whatever becomes of the call that says so.

use std::time::Duration;

use mainstay_env::Sim;
use mainstay_store::{Limits, Status, WorkflowRow, WorkflowStore};

use super::support::{Fault, Process, calm, config, ids, launch};

const SECOND: Duration = Duration::from_secs(1);

/// A process that stops while a claim is out: the row that it brings is to be given back unstarted.
fn stopped(sim: &Sim, fault: Fault, times: u32) -> Process {
    let web = launch(sim, calm(sim, "web"), Duration::from_millis(10), config());
    web.register(sim, "q", Limits::default());
    sim.advance(2 * SECOND);
    web.probe.fault("queue_claim", Fault::Late, 1);
    web.enqueue(sim, "q", ids("w", 1));
    sim.advance(SECOND);
    assert_eq!(row(sim, &web).attempts, 1, "the claim has counted one");
    web.probe.fault("commit", fault, times);
    web
}

fn row(sim: &Sim, web: &Process) -> WorkflowRow {
    sim.block_on(web.memory.workflow_rows(&["w-000".into()])).expect("read").remove(0).expect("a row")
}

fn assert_unbegun(sim: &Sim, web: &Process, what: &str) {
    let row = row(sim, web);
    assert_eq!((row.status, row.attempts), (Status::Enqueued, 0), "{what}");
    assert!(web.started().is_empty(), "{what}");
}

#[test]
fn a_row_that_never_began_keeps_its_attempts_when_its_give_back_fails_at_first() {
    for (fault, times) in [(Fault::Fail, 1), (Fault::Fail, 40), (Fault::Lose, 3), (Fault::Hang, 2), (Fault::Panic, 1)] {
        let sim = Sim::new(1);
        let web = stopped(&sim, fault, times);
        sim.block_on(web.dispatch.stop_claiming());
        sim.advance(300 * SECOND);
        assert_unbegun(&sim, &web, &format!("{fault:?} {times} times"));
        assert_eq!(web.dispatch.stats().renewals, 0);
    }
}

#[test]
fn a_row_that_never_began_keeps_its_attempts_when_its_process_shuts_down_while_the_give_back_hangs() {
    let sim = Sim::new(2);
    let web = stopped(&sim, Fault::Hang, 1);
    sim.block_on(web.dispatch.stop_claiming());
    sim.advance(SECOND);
    assert_eq!(row(&sim, &web).status, Status::Pending, "its give-back hangs");
    sim.block_on(web.dispatch.shutdown(SECOND));
    assert_unbegun(&sim, &web, "shut down");
}

#[test]
fn give_backs_that_fail_for_ever_stop_neither_the_audit_nor_themselves() {
    let sim = Sim::new(3);
    let web = stopped(&sim, Fault::Fail, u32::MAX);
    sim.block_on(web.dispatch.stop_claiming());
    sim.advance(60 * SECOND);
    let audits = web.dispatch.stats().audits;
    let commits = web.probe.count("commit");
    sim.advance(60 * SECOND);
    assert!(web.dispatch.stats().audits > audits);
    let more = web.probe.count("commit") - commits;
    assert!((5..=20).contains(&more), "{more} commits a minute");
    sim.advance(1_200 * SECOND);
    web.probe.heal();
    sim.advance(60 * SECOND);
    assert_eq!(row(&sim, &web).status, Status::Enqueued, "the audit has found it");
    assert!(web.dispatch.shared.returns().is_empty());
}
