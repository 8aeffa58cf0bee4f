//! What an outage writes to a log: that it began and that it is over.

use std::time::Duration;

use mainstay_env::{LogLine, Sim};
use mainstay_store::Limits;
use tracing::Level;

use super::support::{Fault, calm, config, ids, launch};

const SECOND: Duration = Duration::from_secs(1);

/// The lines that were written while `work` ran.
fn logged(work: impl FnOnce()) -> Vec<LogLine> {
    mainstay_env::logged("mainstay_queue", Level::INFO, work).1
}

#[test]
fn an_outage_is_told_of_once_for_each_kind_of_call_however_many_queues_meet_it() {
    let sim = Sim::new(1);
    let web = launch(&sim, calm(&sim, "web"), Duration::from_millis(10), config());
    let queues: Vec<_> = (0..20).map(|queue| format!("q{queue}")).collect();
    for queue in &queues {
        web.register(&sim, queue, Limits::default());
    }
    sim.advance(2 * SECOND);
    let ops = ["queue_claim", "tick", "queue_probe", "lease_beat", "commit", "queue_audit"];
    for op in ops {
        web.probe.fault(op, Fault::Fail, u32::MAX);
    }
    let outage = logged(|| {
        for queue in &queues {
            web.enqueue(&sim, queue, ids(queue, 1));
        }
        sim.advance(120 * SECOND);
    });
    assert!(web.probe.count("queue_claim") > 100 && web.dispatch.stats().failed_ticks > 20, "it fails often");
    let warned = outage.iter().filter(|line| line.level == Level::WARN).count();
    assert!((2..=ops.len()).contains(&warned), "{outage:#?}");
    for op in ["queue_claim", "tick"] {
        let lines = outage.iter().filter(|line| line.text.contains(&format!("op={op:?}"))).count();
        assert_eq!(lines, 1, "{op}: {outage:#?}");
    }
    web.probe.heal();
    let after = logged(|| sim.advance(60 * SECOND));
    let again = |op: &str| after.iter().filter(|line| line.text.contains("again") && line.text.contains(op)).count();
    assert_eq!((again("queue_claim"), again("tick")), (1, 1), "{after:#?}");
    assert_eq!(web.started().len(), 20);
    let second = logged(|| {
        web.probe.fault("tick", Fault::Fail, 3);
        sim.advance(30 * SECOND);
    });
    assert_eq!(second.iter().filter(|line| line.level == Level::WARN).count(), 1, "the next is told of: {second:#?}");
}

#[test]
fn a_queue_that_cannot_be_read_is_told_of_beside_an_outage_and_by_its_name() {
    let sim = Sim::new(2);
    let web = launch(&sim, calm(&sim, "web"), Duration::from_millis(10), config());
    for queue in ["bad", "good"] {
        web.register(&sim, queue, Limits::default());
    }
    sim.advance(2 * SECOND);
    web.memory.damage_queue("bad");
    let lines = logged(|| {
        web.probe.fault("queue_claim", Fault::Fail, 1);
        for round in 0..10 {
            web.enqueue(&sim, "bad", ids(&format!("b{round}"), 1));
            web.enqueue(&sim, "good", ids(&format!("g{round}"), 1));
            sim.advance(5 * SECOND);
        }
    });
    let told = |text: &str| lines.iter().filter(|line| line.level == Level::WARN && line.text.contains(text)).count();
    assert_eq!(told("op=\"queue_claim\" queue=bad"), 1, "{lines:#?}");
    assert_eq!(told("queue_claim"), 2, "{lines:#?}");
}
