//! Calls whose futures are dropped at any moment: no connection is lost, and none is handed on inside a transaction.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt;
use mainstay_env::{Env, Rng, block_on};
use mainstay_pgkit::{Client, Database, Options};
use mainstay_postgres::Postgres;
use mainstay_store::{
    AppName, Audit, Beat, Capabilities, Capability, Claim, Collect, Effect, EffectReply, ErrorKind, ExecutorStore,
    Fence, Fork, Limits, Maintenance, Outcome, Place, Probe, QueueChange, QueueStore, ReadSteps, RegisterQueue,
    Registered, Registry, Result, StepOutput, StepRow, Store, Submit, TakeOver, Tick, Unit, UnitReply, UpdateQueue,
    VersionName, When, WorkflowId, WorkflowStore, WriteStore,
};

use crate::store::support;

const APP: &str = "shop";
const VERSION: &str = "v1";
const ME: &str = "one~1";
const QUEUE: &str = "orders";
/// A queue with a limit over all processes: its claim takes two trips.
const LIMITED: &str = "limited";
/// A workflow that stays.
const SOURCE: &str = "source";
/// The calls, each with the method of the contract that it is, and what kind of write where there are several.
const CALLS: [&str; 31] = [
    "commit Submit and run",
    "commit Submit",
    "commit step and outcome",
    "commit Cancel",
    "commit Delete",
    "commit Resume",
    "commit GiveBack",
    "commit Fork",
    "commit SetDelay",
    "commit Attributes",
    "queue_claim",
    "queue_claim with a limit",
    "queue_probe",
    "queue_audit",
    "workflow_standing",
    "workflow_rows",
    "workflow_steps",
    "workflow_input",
    "workflow_holder",
    "queue_register",
    "queue_update",
    "queue_delete",
    "queue_list",
    "version_register",
    "version_promote",
    "version_list",
    "lease_beat",
    "lease_list",
    "lease_take_over",
    "tick",
    "collect",
];

fn submit(id: impl Into<WorkflowId>, token: String, place: Place) -> Unit {
    Unit::new().effect(Submit::new(id, "job", token, place).input("1").app(APP).version(VERSION))
}

/// Something to be called.
struct Calling<'a> {
    store: &'a Postgres,
    round: u64,
}

impl Calling<'_> {
    /// Brings about what the call works on, so that it finds rows; what a claim's fence and a start's is for, it hands on.
    async fn prepared(&self, what: &str) -> Option<Fence> {
        let (store, round) = (self.store, self.round);
        let token = format!("p{round}");
        match what {
            "commit step and outcome" | "commit GiveBack" => {
                let unit = submit(format!("own{round}"), token, Place::Run(ME.into()));
                let reply = store.commit(&[unit]).await.expect("a commit").units.remove(0).expect("a unit");
                let UnitReply::Done { effects } = reply else { panic!("not started: {reply:?}") };
                let [EffectReply::Created(created)] = &effects[..] else { panic!("not created: {effects:?}") };
                return created.fence.clone();
            }
            "commit SetDelay" => {
                let delay = Some(When::In(Duration::from_secs(3_600)));
                let place = Place::Queue { name: QUEUE.into(), key: None, delay };
                store.commit(&[submit(format!("late{round}"), token, place)]).await.expect("a commit");
            }
            "queue_claim with a limit" => {
                store.commit(&[submit(format!("few{round}"), token, Place::queue(LIMITED))]).await.expect("a commit");
            }
            "queue_delete" => {
                store.queue_register(RegisterQueue::new("gone", APP)).await.expect("a queue");
            }
            "lease_take_over" => {
                let dead = format!("dead~{round}");
                store.lease_beat(Beat::new(dead.as_str(), APP, 1_u64)).await.expect("a lease");
                let unit = submit(format!("left{round}"), token, Place::Run(dead.into()));
                store.commit(&[unit]).await.expect("a commit");
            }
            _ => {}
        }
        None
    }

    /// The call itself; it may fail only in ways that are the request's.
    async fn called(&self, what: &str, fence: Option<Fence>) -> Result<()> {
        let (store, round) = (self.store, self.round);
        let id = WorkflowId::from(format!("w{}", round % 50));
        let (app, version) = (AppName::from(APP), VersionName::from(VERSION));
        if let Some(("commit", kind)) = what.split_once(' ') {
            return store.commit(&[self.unit(kind, id, fence)]).await.map(drop);
        }
        let names = || vec![Registered::new("job")];
        match what {
            "queue_claim" | "queue_claim with a limit" => {
                let queue = if what == "queue_claim" { QUEUE } else { LIMITED };
                store
                    .queue_claim(Claim::new(queue, ME, APP, VERSION, format!("c{round}")).names(names()))
                    .await
                    .map(drop)
            }
            "queue_probe" => {
                store.queue_probe(Probe::new(APP, VERSION).queues(vec![QUEUE.into()]).names(names())).await.map(drop)
            }
            "queue_audit" => store.queue_audit(Audit::new(ME)).await.map(drop),
            "workflow_standing" => store.workflow_standing(&[id]).await.map(drop),
            "workflow_rows" => store.workflow_rows(&[id]).await.map(drop),
            "workflow_steps" => not_found(store.workflow_steps(ReadSteps::new(id)).await),
            "workflow_input" => not_found(store.workflow_input(&id).await),
            "workflow_holder" => store.workflow_holder(&QUEUE.into(), &"k".into()).await.map(drop),
            "queue_register" => store.queue_register(RegisterQueue::new(QUEUE, APP)).await.map(drop),
            "queue_update" => {
                let polling = Some(Duration::from_millis(1_000 + round));
                let change = QueueChange { polling, ..QueueChange::default() };
                store.queue_update(UpdateQueue::new(QUEUE, APP, change)).await.map(drop)
            }
            "queue_delete" => store.queue_delete(&app, &"gone".into()).await.map(drop),
            "queue_list" => store.queue_list(&app).await.map(drop),
            "version_register" => store.version_register(&app, &format!("v{}", round % 5).into()).await.map(drop),
            "version_promote" => store.version_promote(&app, &version).await.map(drop),
            "version_list" => store.version_list(&app).await.map(drop),
            "lease_beat" => store.lease_beat(Beat::new(ME, APP, round + 1)).await.map(drop),
            "lease_list" => store.lease_list(&app).await.map(drop),
            "lease_take_over" => store.lease_take_over(TakeOver::new(format!("dead~{round}"), 1_u64)).await.map(drop),
            "tick" => store.tick(Tick::new(APP)).await.map(drop),
            "collect" => store.collect(Collect::new(APP, Duration::from_secs(3_600))).await.map(drop),
            other => panic!("nobody calls {other}"),
        }
    }

    fn unit(&self, kind: &str, id: WorkflowId, fence: Option<Fence>) -> Unit {
        let round = self.round;
        let token = format!("t{round}");
        let fenced = || Unit::by(fence.as_ref().expect("a fence"));
        match kind {
            "Submit and run" => submit(id, token, Place::Run(ME.into())),
            "Submit" => submit(id, token, Place::queue(QUEUE)),
            "step and outcome" => {
                fenced().step(StepRow::new(0, "s", StepOutput::Value("1".into()))).outcome(Outcome::Success("2".into()))
            }
            "Cancel" => Unit::new().effect(Effect::Cancel { ids: vec![id], children: true }),
            "Delete" => Unit::new().effect(Effect::Delete { ids: vec![id], children: false }),
            "Resume" => Unit::new().effect(Effect::Resume { ids: vec![id], queue: Some(QUEUE.into()), force: true }),
            "GiveBack" => fenced().effect(Effect::GiveBack { delay: None, begun: true }),
            "Fork" => Unit::new().effect(Fork::new(SOURCE, format!("fork{round}"), 1)),
            "SetDelay" => {
                let delay = When::In(Duration::from_secs(1_800));
                Unit::new().effect(Effect::SetDelay { id: format!("late{round}").into(), delay })
            }
            "Attributes" => {
                let json = Some(format!("{{\"round\": {round}}}").into());
                Unit::new().effect(Effect::Attributes { id: SOURCE.into(), json })
            }
            other => panic!("nobody writes {other}"),
        }
    }
}

/// A source file of the contract.
fn contract(file: &str) -> String {
    let path = format!("{}/../mainstay-store/src/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Methods without a default in the traits of the contract.
fn methods() -> Vec<String> {
    let files = ["write", "workflow", "queue", "registry", "executor", "maintenance", "signal", "schedule", "admin"];
    let texts = files.map(|file| contract(&format!("contract/{file}.rs")));
    let signatures = texts.iter().flat_map(|text| text.split("    async fn ").skip(1));
    let required =
        signatures.filter(|rest| rest.find(';').unwrap_or(usize::MAX) < rest.find('{').unwrap_or(usize::MAX));
    required.map(|rest| rest.split('(').next().expect("a name").to_owned()).collect()
}

/// Names of the effects that need no capability.
fn effects() -> Vec<String> {
    let under_capabilities =
        ["Mail", "RecvTake", "SetEvent", "StreamWrite", "StreamClose", "Rewind", "Debounce", "Schedule"];
    let text = contract("unit/effect.rs");
    let (_, variants) = text.split_once("pub enum Effect {").expect("the effects");
    let (variants, _) = variants.split_once("\n}").expect("their end");
    let names = variants.lines().filter_map(|line| line.strip_prefix("    "));
    let names = names.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    let names = names.map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()).next().expect("a name").to_owned());
    names.filter(|name| !under_capabilities.contains(&name.as_str())).collect()
}

#[test]
fn every_method_and_effect_of_the_contract_is_among_the_calls_that_are_dropped() {
    let named = |name: &str| CALLS.iter().any(|call| call.split(' ').next() == Some(name));
    let (methods, effects) = (methods(), effects());
    assert!(methods.len() >= 21 && effects.len() >= 8, "{methods:?} {effects:?}");
    let missing: Vec<_> = methods.iter().filter(|method| !named(method)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let written = |name: &str| CALLS.iter().any(|call| call.split(' ').nth(1) == Some(name));
    let missing: Vec<_> = effects.iter().filter(|effect| !written(effect)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn not_found<T>(answer: Result<T>) -> Result<()> {
    match answer {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        answer => answer.map(drop),
    }
}

/// Sessions of the store: process, state, whether a transaction is open.
fn sessions(watch: &mut Client, database: &Database) -> Vec<(String, String)> {
    let rows = watch.rows(&format!(
        "SELECT pid, state FROM pg_stat_activity WHERE datname = '{}' AND application_name = 'drops' ORDER BY pid",
        database.name()
    ));
    rows.into_iter().map(|row| (row[0].clone().unwrap_or_default(), row[1].clone().unwrap_or_default())).collect()
}

/// Waits until what was left behind has ended: a connection inside a transaction would never come to rest.
async fn at_rest(env: &Env, watch: &mut Client, database: &Database) {
    let begun = env.monotonic();
    loop {
        let now = sessions(watch, database);
        if now.iter().all(|(_, state)| state == "idle") {
            return;
        }
        assert!(env.monotonic().since(begun) < Duration::from_secs(10), "{now:?}");
        env.sleep(Duration::from_millis(1)).await;
    }
}

/// Runs a call against a limit; says whether it was dropped.
async fn raced(env: &Env, limit: Duration, call: impl Future<Output = Result<()>>) -> bool {
    if limit.is_zero() {
        // Sent, and given up at once.
        return call.now_or_never().map(|answer| answer.expect("a call that is not dropped succeeds")).is_none();
    }
    match env.timeout(limit, call).await {
        Ok(answer) => {
            answer.expect("a call that is not dropped succeeds");
            false
        }
        Err(_) => true,
    }
}

/// What the calls work on.
async fn furnish(store: &Postgres) {
    let only = Capabilities::none().with(Capability::Durable).with(Capability::Shared);
    assert_eq!(store.capabilities(), only, "calls of another capability belong among those that are dropped");
    store.lease_beat(Beat::new(ME, APP, 1_u64)).await.expect("a lease");
    store.version_register(&APP.into(), &VERSION.into()).await.expect("a version");
    store.queue_register(RegisterQueue::new(QUEUE, APP)).await.expect("a queue");
    let limits = Limits { concurrency: Some(10_000), ..Limits::default() };
    store.queue_register(RegisterQueue::new(LIMITED, APP).limits(limits)).await.expect("a queue");
    store.commit(&[submit(SOURCE, "source".to_owned(), Place::queue("nobody's"))]).await.expect("a commit");
}

#[test]
fn case_o14_calls_dropped_at_any_moment_leave_no_connection_lost_or_in_a_transaction() {
    let Some(server) = mainstay_pgkit::own_server(Options::new()) else { return };
    let database = support::database_on(&server);
    let rounds = if std::env::var_os("MAINSTAY_FULL").is_some() { 10_000 } else { 1_000 };
    let rng = Rng::seeded(14);
    block_on(async {
        let store = support::open(&database, |config| config.pool(1).application_name("drops")).await;
        let env = store.env().clone();
        let mut watch = database.client();
        furnish(&store).await;
        let before = sessions(&mut watch, &database);
        let (mut dropped, mut seen) = (0_u64, BTreeSet::new());
        for round in 0..rounds {
            let what = CALLS[rng.index(CALLS.len())];
            // Most calls are over long before 5 ms, and some before 1.
            let most = [1, 300, 1_000, 5_000][rng.index(4)];
            let limit = Duration::from_micros(rng.below(most));
            let calling = Calling { store: &store, round };
            let fence = calling.prepared(what).await;
            if raced(&env, limit, calling.called(what, fence)).await {
                dropped += 1;
                seen.insert(what);
            }
            if round % 20 == 0 {
                let read = store.workflow_standing(&["none".into()]).await.expect("the connection is there");
                assert_eq!(read.len(), 1);
                at_rest(&env, &mut watch, &database).await;
            }
        }
        at_rest(&env, &mut watch, &database).await;
        let pids = |sessions: Vec<(String, String)>| sessions.into_iter().map(|one| one.0).collect::<Vec<_>>();
        assert_eq!(pids(before), pids(sessions(&mut watch, &database)));
        // A fast machine is done with most calls in time.
        assert!(seen.len() == CALLS.len() && dropped * 5 > rounds, "dropped {dropped} of {rounds}, of {seen:?}");
        let unit = submit("last", "last".to_owned(), Place::queue(QUEUE));
        let reply = store.commit(&[unit]).await.expect("a commit").units.remove(0).expect("a unit");
        assert!(matches!(reply, UnitReply::Done { .. }), "{reply:?}");
    });
    // A connection that was handed on inside a transaction would begin a second one.
    let log = server.log();
    assert!(!log.contains("already a transaction in progress"), "{log}");
}
