//! Settings that an engine refuses to run by.

use std::sync::Arc;
use std::time::Duration;

use mainstay_env::Sim;
use mainstay_store::{ErrorKind, ExecutorStore, Limits};

use crate::{Config, Dispatch};

use super::support::{calm, config, ids, launch};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

fn with(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = config();
    change(&mut config);
    config
}

/// Settings that are refused, by the field that is at fault.
fn refused() -> Vec<(&'static str, Config)> {
    let least = Duration::from_micros(999);
    vec![
        ("config.app", with(|config| config.app = "".into())),
        ("config.app", with(|config| config.app = "x".repeat(513).into())),
        ("config.version", with(|config| config.version = "a\0b".into())),
        ("config.executor", with(|config| config.executor.clear())),
        ("config.executor", with(|config| config.executor = "web~1".into())),
        ("config.executor", with(|config| config.executor = "x".repeat(500))),
        ("config.max_running", with(|config| config.max_running = 0)),
        ("config.batch", with(|config| config.batch = 0)),
        ("config.tick", config().tick(Duration::ZERO)),
        ("config.tick", config().tick(least)),
        ("config.beat", config().beat(Duration::ZERO)),
        ("config.beat", config().beat(least)),
        ("config.ttl", config().ttl(Duration::ZERO)),
        ("config.ttl", config().beat(30 * SECOND)),
        ("config.ttl", config().beat(5 * SECOND + MILLI)),
        ("config.ttl", config().tick(5 * SECOND + MILLI)),
        ("config.ttl", config().beat(Duration::MAX)),
        ("config.audit", config().audit(Duration::ZERO)),
        ("config.audit", config().audit(least)),
    ]
}

#[test]
fn settings_that_cannot_work_are_refused_by_field_before_anything_is_written() {
    let sim = Sim::new(79);
    let web = launch(&sim, calm(&sim, "web"), MILLI, config());
    let leases = || sim.block_on(web.memory.lease_list(&"shop".into())).unwrap().leases;
    let before = leases();
    for (field, config) in refused() {
        let says = format!("{config:?}");
        let answer = sim.block_on(Dispatch::launch(web.probe.clone(), Arc::clone(&web.bodies) as _, config));
        let error = answer.expect_err(&says);
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)), "{says}: {error}");
    }
    assert_eq!(web.probe.count("lease_beat"), 1, "that of the engine which runs");
    assert_eq!(leases(), before);
}

#[test]
fn settings_at_their_least_run() {
    let sim = Sim::new(80);
    let least = || {
        let config = config().max_running(1).batch(1).cooldown(Duration::ZERO).audit(MILLI);
        with(|shortest| *shortest = config.tick(MILLI).beat(MILLI).ttl(2 * MILLI))
    };
    let longest = with(|config| config.executor = "x".repeat(499)).beat(5 * SECOND).tick(5 * SECOND);
    for config in [least(), longest] {
        let web = launch(&sim, calm(&sim, "web"), MILLI, config);
        web.register(&sim, "q", Limits::default());
        web.enqueue(&sim, "q", ids("w", 3));
        sim.advance(20 * SECOND);
        assert_eq!(web.started().len(), 3);
        sim.kill("web");
    }
}
