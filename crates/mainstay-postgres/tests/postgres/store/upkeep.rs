//! What upkeep does beside other programs on the same tables: payloads of gone workflows, dead letters, deadlines that a peer
//! enforces, and a take-over that a restart of the server interrupts.

use std::collections::BTreeSet;
use std::time::Duration;

use mainstay_pgkit::{Client, Options};
use mainstay_postgres::Postgres;
use mainstay_store::{
    Beat, Claim, Collect, Collected, Created, Effect, EffectReply, ExecutorStore, Fence, Maintenance, Outcome, Place,
    QueueStore, RegisterQueue, Registered, Registry, Standing, Status, StepOutput, StepRow, Submit, TakeOver,
    TakenOver, Tick, Unit, UnitReply, WorkflowId, WorkflowStore, WriteExt,
};

use crate::store::support::{database_on, open, with_store};

const APP: &str = "shop";
const EXECUTOR: &str = "one~1";
const HOUR: i64 = 3_600_000;

/// A running workflow and its fence.
async fn started(store: &Postgres, id: &str) -> Fence {
    store.lease_beat(Beat::new(EXECUTOR, APP, 1_u64)).await.expect("a lease");
    let submit = Submit::new(id, "work", format!("of {id}"), Place::Run(EXECUTOR.into())).app(APP).input("[1]");
    created(store, submit).await.fence.expect("a fence")
}

async fn created(store: &Postgres, submit: Submit) -> Created {
    match store.unit(Unit::new().effect(submit)).await.expect("judged") {
        UnitReply::Done { mut effects } => match effects.pop() {
            Some(EffectReply::Created(created)) => created,
            other => panic!("nothing was made: {other:?}"),
        },
        other => panic!("not done: {other:?}"),
    }
}

async fn collected(store: &Postgres, age: Duration) -> Collected {
    store.collect(Collect::new(APP, age)).await.expect("collected")
}

/// The ids of a table, without repeats.
fn ids(client: &mut Client, table: &str) -> BTreeSet<String> {
    let rows = client.rows(&format!("SELECT DISTINCT workflow_uuid FROM dbos.{table}"));
    rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
}

/// A payload and a step of each table, with a stamp so many milliseconds ago and perhaps without a workflow.
fn plant(client: &mut Client, id: &str, ago: i64) {
    let stamp = format!("floor(extract(epoch FROM now()) * 1000)::bigint - {ago}");
    client.run(&format!(
        "INSERT INTO dbos.workflow_input VALUES ('{id}', '[]', {stamp});
         INSERT INTO dbos.workflow_output VALUES ('{id}', '1', NULL, {stamp});
         INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, retention_timestamp) VALUES ('{id}', 0, {stamp})"
    ));
}

const PAYLOADS: [&str; 3] = ["workflow_input", "workflow_output", "operation_outputs"];

/// Every workflow has a payload that is older, younger or as old as itself, whatever clock wrote which stamp.
#[test]
fn a_collection_never_removes_a_payload_of_an_existing_workflow() {
    with_store(async |store, database| {
        let mut client = database.client();
        let (mut living, mut gone, mut young) = (BTreeSet::new(), 0, BTreeSet::new());
        for seed in 0..200_i64 {
            // Stamps within a week, spread by a fixed rule: no two rounds are alike, and every run is.
            let (ago, made) = ((seed * 7_919) % 168 * HOUR, (seed * 104_729) % 168 * HOUR);
            let id = format!("w{seed}");
            plant(&mut client, &id, ago);
            if seed % 2 == 0 {
                client.run(&format!(
                    "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, created_at)
                     VALUES ('{id}', 'ENQUEUED', 'work', 'other',
                         floor(extract(epoch FROM now()) * 1000)::bigint - {made})"
                ));
                living.insert(id);
            } else if ago <= 24 * HOUR {
                young.insert(id);
            } else {
                gone += 1;
            }
        }
        // Young ones are kept by a margin of an hour, so that the test does not race the clock.
        collected(&store, Duration::from_secs(25 * 3_600)).await;
        let kept: BTreeSet<String> = living.union(&young).cloned().collect();
        assert!(gone > 50 && young.len() > 5, "{gone} {}", young.len());
        for table in PAYLOADS {
            let left = ids(&mut client, table);
            assert!(living.is_subset(&left), "{table} lost {:?}", living.difference(&left));
            assert_eq!(left, kept, "{table}");
        }
    });
}

/// Beginning anywhere in the order of age, in calls of few rows each, all are found.
#[test]
fn orphans_are_removed_in_calls_of_few_rows() {
    with_store(async |store, database| {
        let mut client = database.client();
        for n in 0..20 {
            plant(&mut client, &format!("w{n}"), HOUR + n);
        }
        let mut calls = 0;
        while PAYLOADS.iter().any(|table| !ids(&mut client, table).is_empty()) {
            store.collect(Collect::new(APP, Duration::from_secs(60)).limit(5)).await.expect("collected");
            calls += 1;
            assert!(calls <= 100, "{:?} are left", PAYLOADS.map(|table| ids(&mut client, table).len()));
        }
        assert!(calls >= 4, "{calls} calls of 5 rows");
    });
}

#[test]
fn orphans_wait_while_a_peer_looks_for_them() {
    with_store(async |store, database| {
        let (mut client, mut peer) = (database.client(), database.client());
        plant(&mut client, "w", HOUR);
        // The key of a collection by the other SDKs, for the schema `dbos`.
        peer.run("SELECT pg_advisory_lock(7208852302618897048)");
        collected(&store, Duration::ZERO).await;
        assert_eq!(ids(&mut client, "workflow_input").len(), 1);
        peer.run("SELECT pg_advisory_unlock_all()");
        collected(&store, Duration::ZERO).await;
        assert_eq!(ids(&mut client, "workflow_input").len(), 0);
    });
}

/// A start under the id of orphans is committed between the look for them and their removal.
#[test]
fn a_payload_that_a_start_has_written_over_an_orphan_stays() {
    with_store(async |store, database| {
        let (mut client, mut starter) = (database.client(), database.client());
        plant(&mut client, "w", HOUR);
        starter.run(
            "BEGIN;
             INSERT INTO dbos.workflow_status (workflow_uuid, status, name) VALUES ('w', 'ENQUEUED', 'work');
             UPDATE dbos.workflow_input SET inputs = '[2]' WHERE workflow_uuid = 'w'",
        );
        collected(&store, Duration::ZERO).await;
        starter.run("COMMIT");
        assert_eq!(client.value("SELECT inputs FROM dbos.workflow_input WHERE workflow_uuid = 'w'"), "[2]");
        collected(&store, Duration::ZERO).await;
        assert_eq!(client.value("SELECT inputs FROM dbos.workflow_input WHERE workflow_uuid = 'w'"), "[2]");
    });
}

#[test]
fn acceptance_21_a_dead_letter_has_an_end_and_is_collected() {
    with_store(async |store, database| {
        let mut client = database.client();
        created(&store, Submit::new("w", "work", "t", Place::queue("q")).app(APP).input("[1]")).await;
        store.lease_beat(Beat::new(EXECUTOR, APP, 1_u64)).await.expect("a lease");
        store.queue_register(RegisterQueue::new("q", APP)).await.expect("a queue");
        let none = vec![Registered { max_attempts: 0, ..Registered::new("work") }];
        let claim = Claim::new("q", EXECUTOR, APP, "v1", "the claim").names(none);
        let claimed = store.queue_claim(claim).await.expect("claimed");
        assert_eq!(claimed.parked, ["w"]);
        let row =
            "SELECT status || ' ' || (completed_at = updated_at) FROM dbos.workflow_status WHERE workflow_uuid = 'w'";
        assert_eq!(client.value(row), "MAX_RECOVERY_ATTEMPTS_EXCEEDED true");
        assert_eq!(collected(&store, Duration::from_secs(3_600)).await.removed, 0);
        assert_eq!(collected(&store, Duration::ZERO).await.removed, 1);
        for table in PAYLOADS.into_iter().chain(["workflow_status"]) {
            assert_eq!(ids(&mut client, table).len(), 0, "{table}");
        }
    });
}

/// The sweep of the other SDKs, in their words: every open row past its deadline.
#[test]
fn a_deadline_that_a_peer_has_enforced_ends_our_execution() {
    with_store(async |store, database| {
        let fence = started(&store, "w").await;
        database.client().run(
            "UPDATE dbos.workflow_status SET status = 'CANCELLED', queue_name = NULL, deduplication_id = NULL,
                 started_at_epoch_ms = NULL, owner_xid = NULL,
                 updated_at = floor(extract(epoch FROM now()) * 1000)::bigint,
                 completed_at = floor(extract(epoch FROM now()) * 1000)::bigint
             WHERE workflow_uuid = 'w'",
        );
        let last = StepRow::new(0, "s", StepOutput::Value("1".into()));
        let unit = Unit::by(&fence).step(last).outcome(Outcome::Success("\"end\"".into()));
        match store.unit(unit).await.expect("judged") {
            UnitReply::Superseded { by: Standing::Ended(Outcome::Cancelled) } => {}
            other => panic!("not cancelled: {other:?}"),
        }
        let standing = store.workflow_standing(&["w".into()]).await.expect("read").remove(0);
        assert_eq!(standing, Standing::Ended(Outcome::Cancelled));
        for table in ["workflow_output", "operation_outputs"] {
            assert_eq!(ids(&mut database.client(), table).len(), 0, "{table}");
        }
    });
}

/// Our own sweep writes what that of the other SDKs does, and leaves the rows of another application alone.
#[test]
fn a_tick_ends_rows_past_their_deadline_as_the_other_sdks_do() {
    with_store(async |store, database| {
        let mut client = database.client();
        client.run(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, queue_name, executor_id,
                 deduplication_id, started_at_epoch_ms, owner_xid, workflow_deadline_epoch_ms)
             VALUES ('waits', 'ENQUEUED', 'work', NULL, 'q', NULL, 'key', NULL, NULL, 5),
                 ('runs', 'PENDING', 'work', 'shop', 'q', 'peer', NULL, 5, 'token', 5),
                 ('delayed', 'DELAYED', 'work', 'shop', 'q', NULL, NULL, NULL, NULL, 5),
                 ('theirs', 'PENDING', 'work', 'else', 'q', 'peer', NULL, 5, 'token', 5)",
        );
        let ticked = store.tick(Tick::new(APP)).await.expect("ticked");
        assert_eq!(ticked.cancelled, ["delayed", "runs", "waits"]);
        let ended = "SELECT string_agg(workflow_uuid, ' ' ORDER BY workflow_uuid) FROM dbos.workflow_status
             WHERE status = 'CANCELLED' AND queue_name IS NULL AND deduplication_id IS NULL AND owner_xid IS NULL
                 AND started_at_epoch_ms IS NULL AND completed_at = updated_at AND completed_at > 5";
        assert_eq!(client.value(ended), "delayed runs waits");
        assert_eq!(client.value("SELECT status FROM dbos.workflow_status WHERE workflow_uuid = 'theirs'"), "PENDING");
    });
}

/// Two take-overs of one executor at once: neither says that it lives, and together they bring each row once.
#[test]
fn two_take_overs_at_once_share_the_rows() {
    with_store(async |store, _| {
        for round in 0..20 {
            let executor = format!("x~{round}");
            store.lease_beat(Beat::new(executor.as_str(), APP, 1_u64)).await.expect("a lease");
            let place = || Place::Run(executor.as_str().into());
            for n in 0..3 {
                let submit = Submit::new(format!("w{round}-{n}"), "work", format!("{round}-{n}"), place()).app(APP);
                created(&store, submit).await;
            }
            let over = || store.lease_take_over(TakeOver::new(executor.as_str(), 1_u64));
            let (one, two) = futures_util::future::join(over(), over()).await;
            let mut all = Vec::new();
            for reply in [one, two] {
                match reply.expect("answered") {
                    TakenOver::Rows { ids, more: false } => all.extend(ids),
                    other => panic!("round {round}: {other:?}"),
                }
            }
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2].map(|n| WorkflowId::from(format!("w{round}-{n}"))), "round {round}");
        }
    });
}

#[test]
fn a_take_over_goes_on_after_a_restart_of_the_server() {
    let Some(server) = mainstay_pgkit::own_server(Options::new().durable()) else { return };
    let database = database_on(&server);
    mainstay_env::block_on(async {
        let store = open(&database, |config| config).await;
        for n in 0..10 {
            started(&store, &format!("w{n}")).await;
        }
        let over = || TakeOver::new(EXECUTOR, 1_u64).limit(3);
        let first = match store.lease_take_over(over()).await.expect("answered") {
            TakenOver::Rows { ids, more: true } => ids,
            other => panic!("a part was to be taken over: {other:?}"),
        };
        server.restart_immediate();
        let (mut all, mut failures) = (first, 0);
        loop {
            match store.lease_take_over(over()).await {
                Ok(TakenOver::Rows { ids, more }) => {
                    all.extend(ids);
                    if !more {
                        break;
                    }
                }
                Ok(other) => panic!("not taken over: {other:?}"),
                Err(error) => {
                    failures += 1;
                    assert!(error.kind() == mainstay_store::ErrorKind::Unavailable && failures < 50, "{error}");
                }
            }
        }
        all.sort_unstable();
        assert_eq!(all, (0..10).map(|n| WorkflowId::from(format!("w{n}"))).collect::<Vec<_>>());
        let leases = store.lease_list(&APP.into()).await.expect("listed").leases;
        assert!(leases.is_empty(), "{leases:?}");
        let rows = store.workflow_rows(&["w9".into()]).await.expect("read");
        assert_eq!(rows[0].as_ref().map(|row| row.status), Some(Status::Enqueued));
        // It can be claimed and run by another.
        let cancel = Effect::Cancel { ids: vec!["w9".into()], children: false };
        assert!(matches!(store.unit(Unit::new().effect(cancel)).await, Ok(UnitReply::Done { .. })));
    });
}
