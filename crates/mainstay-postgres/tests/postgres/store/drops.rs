//! Calls whose futures are dropped at any moment: no connection is lost, and none is handed on inside a transaction.

use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt;
use mainstay_env::{Env, Rng, block_on};
use mainstay_pgkit::{Client, Database};
use mainstay_postgres::Postgres;
use mainstay_store::{
    Audit, Beat, Claim, Collect, Effect, ErrorKind, ExecutorStore, Maintenance, OnConflict, Outcome, Payload, Place,
    Probe, QueueStore, ReadSteps, RegisterQueue, Registered, Registry, Result, StepOutput, StepRow, Store, Submit,
    TakeOver, Tick, Unit, UnitReply, WorkflowStore, WriteStore,
};

use crate::store::support;

const APP: &str = "shop";
const VERSION: &str = "v1";
const QUEUE: &str = "orders";
/// The calls that a round takes its one from.
const CALLS: u64 = 22;

/// One call of the store, by number; a call may fail only in ways that are the request's.
async fn call(store: &Postgres, number: u64, round: u64) -> Result<()> {
    let id = format!("w{}", round % 50);
    let app = || APP.into();
    match number {
        0..=3 => {
            let place = if number == 0 { Place::Run("one~1".into()) } else { Place::queue(QUEUE) };
            let submit =
                Submit::new(id.as_str(), "job", format!("t{round}"), place).input("1").app(APP).version(VERSION);
            store.commit(&[Unit::new().effect(submit)]).await.map(drop)
        }
        4..=6 => {
            let claim =
                Claim::new(QUEUE, "one~1", APP, VERSION, format!("c{round}")).names(vec![Registered::new("job")]);
            let claimed = store.queue_claim(claim).await?;
            let units: Vec<Unit> = claimed
                .rows
                .iter()
                .map(|row| {
                    Unit::by(&row.fence)
                        .step(StepRow::new(0, "s", StepOutput::Value("1".into())))
                        .outcome(Outcome::Success("2".into()))
                })
                .collect();
            store.commit(&units).await.map(drop)
        }
        7 => {
            store.commit(&[Unit::new().effect(Effect::Cancel { ids: vec![id.into()], children: true })]).await.map(drop)
        }
        8 => store
            .commit(&[Unit::new().effect(Effect::Delete { ids: vec![id.into()], children: false })])
            .await
            .map(drop),
        9 => {
            let resume = Effect::Resume { ids: vec![id.into()], queue: Some(QUEUE.into()), force: true };
            store.commit(&[Unit::new().effect(resume)]).await.map(drop)
        }
        10 => store.workflow_standing(&[id.into()]).await.map(drop),
        11 => store.workflow_rows(&[id.into()]).await.map(drop),
        12 => not_found(store.workflow_steps(ReadSteps::new(id)).await),
        13 => not_found(store.workflow_input(&id.into()).await),
        14 => store.workflow_holder(&QUEUE.into(), &"k".into()).await.map(drop),
        15 => store.queue_probe(Probe::new(APP, VERSION).queues(vec![QUEUE.into()])).await.map(drop),
        16 => store.queue_audit(Audit::new("one~1")).await.map(drop),
        17 => {
            let limits = mainstay_store::Limits::default();
            let queue = RegisterQueue::new(QUEUE, APP).limits(limits).on_conflict(OnConflict::Update);
            store.queue_register(queue).await?;
            store.queue_list(&app()).await?;
            store.version_register(&app(), &VERSION.into()).await?;
            store.version_list(&app()).await.map(drop)
        }
        18 => store.lease_beat(Beat::new("one~1", APP, round + 1)).await.map(drop),
        19 => {
            store.lease_list(&app()).await?;
            store.lease_beat(Beat::new(format!("dead~{round}"), APP, 1_u64)).await?;
            store.lease_take_over(TakeOver::new(format!("dead~{round}"), 1_u64)).await.map(drop)
        }
        20 => store.tick(Tick::new(APP)).await.map(drop),
        _ => store.collect(Collect::new(APP, Duration::from_secs(3_600))).await.map(drop),
    }
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

#[test]
fn case_o14_calls_dropped_at_any_moment_leave_no_connection_lost_or_in_a_transaction() {
    let Some(database) = support::database() else { return };
    let rounds = if std::env::var_os("MAINSTAY_FULL").is_some() { 10_000 } else { 1_000 };
    let rng = Rng::seeded(14);
    block_on(async {
        let store = support::open(&database, |config| config.pool(1).application_name("drops")).await;
        let env = store.env().clone();
        let mut watch = database.client();
        store.lease_beat(Beat::new("one~1", APP, 1_u64)).await.expect("a lease");
        store.queue_register(RegisterQueue::new(QUEUE, APP)).await.expect("a queue");
        let before = sessions(&mut watch, &database);
        let (mut dropped, mut seen) = (0_u64, std::collections::BTreeSet::new());
        for round in 0..rounds {
            let number = rng.below(CALLS);
            // Most calls are over long before 5 ms, and some before 1.
            let most = [1, 300, 1_000, 5_000][rng.index(4)];
            let limit = Duration::from_micros(rng.below(most));
            if raced(&env, limit, call(&store, number, round)).await {
                dropped += 1;
                seen.insert(number);
            }
            if round % 20 == 0 {
                let read = store.workflow_standing(&["none".into()]).await.expect("the connection is there");
                assert_eq!(read.len(), 1);
                at_rest(&env, &mut watch, &database).await;
            }
        }
        at_rest(&env, &mut watch, &database).await;
        let after = sessions(&mut watch, &database);
        assert_eq!(
            before.iter().map(|one| &one.0).collect::<Vec<_>>(),
            after.iter().map(|one| &one.0).collect::<Vec<_>>()
        );
        // A fast machine is done with most calls in time.
        assert!(seen.len() as u64 == CALLS && dropped * 5 > rounds, "dropped {dropped} of {rounds}, of {seen:?}");
        let unit =
            Unit::new().effect(Submit::new("last", "job", "last", Place::queue(QUEUE)).input(Payload::from("1")));
        let reply = store.commit(&[unit]).await.expect("a commit").units.remove(0).expect("a unit");
        assert!(matches!(reply, UnitReply::Done { .. }), "{reply:?}");
    });
}
