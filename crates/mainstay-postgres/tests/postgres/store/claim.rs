//! Claims beyond the contract: on databases that other SDKs write to and migrate, and what a claim reads.

use mainstay_pgkit::Client;
use mainstay_postgres::Postgres;
use mainstay_store::{
    Beat, Claim, ClaimedRow, ErrorKind, ExecutorStore, Input, Limits, Outcome, Place, QueueStore, RegisterQueue,
    Registered, Registry, Standing, Steps, Store, Submit, Unit, UnitReply, WorkflowStore, WriteStore,
};

use crate::store::support::{self, with_store};

pub(crate) const APP: &str = "shop";
pub(crate) const Q: &str = "q";
pub(crate) const V1: &str = "v1";
pub(crate) const WORK: &str = "work";
pub(crate) const E1: &str = "one~1";

pub(crate) async fn lease(store: &Postgres, executor: &str) {
    store.lease_beat(Beat::new(executor, APP, 1_u64)).await.expect("a lease");
}

pub(crate) async fn register(store: &Postgres, limits: Limits) {
    store.queue_register(RegisterQueue::new(Q, APP).limits(limits)).await.expect("a queue");
}

pub(crate) fn claim(store: &Postgres, executor: &str) -> Claim {
    Claim::new(Q, executor, APP, V1, store.env().ids().uuid()).names(vec![Registered::new(WORK)])
}

async fn take(store: &Postgres) -> Vec<ClaimedRow> {
    store.queue_claim(claim(store, E1)).await.expect("a claim").rows
}

/// The row's execution records an outcome, which shows that its fence holds.
async fn ends(store: &Postgres, row: &ClaimedRow) {
    let unit = Unit::by(&row.fence).outcome(Outcome::Success("\"done\"".into()));
    let committed = store.commit(&[unit]).await.expect("committed");
    assert!(matches!(committed.units[..], [Ok(UnitReply::Done { .. })]), "{committed:?}");
    let standing = store.workflow_standing(std::slice::from_ref(&row.row.id)).await.expect("read");
    assert_eq!(standing, [Standing::Ended(Outcome::Success("\"done\"".into()))]);
}

/// What a program in another language enqueues by the function of the schema.
const BY_FUNCTION: &str = "SELECT dbos.enqueue_workflow('work', 'q', ARRAY['1', '\"two\"']::json[], '{\"c\": [3]}'::json, \
    workflow_id => 'sql', application_name => 'shop')";

async fn arguments(store: &Postgres, client: &mut Client) -> Vec<(String, Option<String>, serde_json::Value)> {
    lease(store, E1).await;
    register(store, Limits::default()).await;
    client.run(BY_FUNCTION);
    let mut found = Vec::new();
    for row in take(store).await {
        let Input::Inline(input) = &row.input else { panic!("no input: {row:?}") };
        let input = serde_json::from_str(input.as_str()).expect("JSON");
        found.push((row.row.id.as_str().to_owned(), row.row.codec.as_ref().map(ToString::to_string), input));
        ends(store, &row).await;
    }
    found
}

fn delivered(id: &str) -> (String, Option<String>, serde_json::Value) {
    let input = serde_json::json!({ "positionalArgs": [1, "two"], "namedArgs": { "c": [3] } });
    (id.to_owned(), Some("portable_json".to_owned()), input)
}

#[test]
fn acceptance_10_rows_of_the_sql_function_and_portable_rows_are_claimed_with_their_arguments() {
    with_store(|store, database| async move {
        let mut client = database.client();
        client.run(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, application_name, serialization,
                class_name, authenticated_roles, inputs, created_at, updated_at) VALUES ('inline', 'ENQUEUED', 'work', 'q',
                'shop', 'portable_json', '', '[]', '{\"positionalArgs\":[1,\"two\"],\"namedArgs\":{\"c\":[3]}}', 1, 1),
                ('split', 'ENQUEUED', 'work', 'q', NULL, 'portable_json', NULL, NULL, NULL, 2, 2);
            INSERT INTO dbos.workflow_input (workflow_uuid, inputs) VALUES
                ('split', '{\"positionalArgs\":[1,\"two\"],\"namedArgs\":{\"c\":[3]}}')",
        );
        let found = arguments(&store, &mut client).await;
        assert_eq!(found, [delivered("inline"), delivered("split"), delivered("sql")]);
    });
}

#[test]
fn acceptance_11_a_claim_sees_that_a_peer_has_migrated_the_database() {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    mainstay_env::block_on(async {
        let held = support::open(&database, mainstay_postgres::Config::hold_at_108).await;
        lease(&held, E1).await;
        register(&held, Limits::default()).await;
        let submit = Submit::new("before", WORK, "t1", Place::queue(Q)).app(APP).input("[1]");
        held.commit(&[Unit::new().effect(submit)]).await.expect("enqueued");
        let before = take(&held).await;
        assert_eq!(before.len(), 1);
        ends(&held, &before[0]).await;
        drop(support::open(&database, |config| config).await);
        let mut client = database.client();
        assert_eq!(client.value("SELECT max(version) FROM dbos.dbos_migrations"), "125");
        client.run(BY_FUNCTION);
        let after = take(&held).await;
        assert_eq!(after.len(), 1);
        let Input::Inline(input) = &after[0].input else { panic!("it would run without its input: {after:?}") };
        assert_eq!(serde_json::from_str::<serde_json::Value>(input.as_str()).expect("JSON"), delivered("sql").2);
        ends(&held, &after[0]).await;
    });
}

#[test]
fn acceptance_25_a_flag_of_an_older_peer_without_limits_partitions_nothing() {
    with_store(|store, database| async move {
        lease(&store, E1).await;
        register(&store, Limits::default()).await;
        let mut client = database.client();
        client.run("UPDATE dbos.queues SET partition_queue = true WHERE name = 'q'");
        for (id, key) in [("keyed", Some("k")), ("plain", None)] {
            let place = Place::Queue { name: Q.into(), key: key.map(Into::into), delay: None };
            let submit = Submit::new(id, WORK, format!("t-{id}"), place).app(APP);
            store.commit(&[Unit::new().effect(submit)]).await.expect("enqueued");
        }
        let taken: Vec<String> = take(&store).await.iter().map(|row| row.row.id.to_string()).collect();
        assert_eq!(taken, ["keyed", "plain"]);
        client.run("UPDATE dbos.queues SET concurrency = 1 WHERE name = 'q'");
        let refused = store.queue_claim(claim(&store, E1)).await.expect_err("a limit for each key");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
    });
}

/// Blocks of payloads kept out of line that were looked at, when all other sessions are over.
fn payload_blocks(client: &mut Client) -> u64 {
    while client.value(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
    ) != "0"
    {
        std::thread::yield_now();
    }
    client.run("SELECT pg_stat_clear_snapshot()");
    let read = "SELECT coalesce(sum(toast_blks_hit + toast_blks_read), 0) FROM pg_statio_user_tables
        WHERE relname IN ('workflow_input', 'operation_outputs', 'workflow_status')";
    client.value(read).parse().expect("a number")
}

/// Whether there come to be more than `before`: up to PostgreSQL 14 what a session did is counted some time after its end.
fn payload_blocks_exceed(client: &mut Client, before: u64) -> bool {
    (0..500).any(|_| {
        client.run("SELECT pg_sleep(0.02)");
        payload_blocks(client) > before
    })
}

#[test]
fn case_o38_a_claim_reads_no_payload_that_it_does_not_hand_out() {
    let Some(database) = support::database() else { return };
    // Random text, so that it is not compressed into the row. A session of its own: what it touched is counted when it ends.
    database.client().run(
        "INSERT INTO dbos.queues (name) VALUES ('q');
        INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, created_at, updated_at)
            SELECT 'w' || n, 'ENQUEUED', 'work', 'q', n, n FROM generate_series(1, 5) n;
        INSERT INTO dbos.workflow_input (workflow_uuid, inputs) SELECT 'w' || n,
            (SELECT string_agg(md5(n::text || i), '') FROM generate_series(1, 20000) i) FROM generate_series(1, 4) n;
        INSERT INTO dbos.workflow_input (workflow_uuid, inputs) VALUES ('w5', '[1]');
        INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output) SELECT 'w5', 0, 's',
            (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 20000) i)",
    );
    let mut client = database.client();
    assert!(payload_blocks_exceed(&mut client, 0), "writing them is seen");
    let before = payload_blocks(&mut client);
    mainstay_env::block_on(async {
        let store = support::open(&database, |config| config.silent()).await;
        lease(&store, E1).await;
        let rows = take(&store).await;
        let whole = |row: &ClaimedRow| matches!(row.input, Input::Inline(_));
        assert_eq!(rows.iter().map(whole).collect::<Vec<_>>(), [false, false, false, false, true]);
        assert_eq!(rows[0].input, Input::Deferred { bytes: 640_000 });
        assert_eq!(rows[4].steps, Steps::Partial { first: vec![], next: 0.into() });
    });
    let claimed = payload_blocks(&mut client);
    assert_eq!(claimed - before, 0, "blocks of payloads read by a claim that hands out none of them");
    mainstay_env::block_on(async {
        let store = support::open(&database, |config| config.silent()).await;
        let input = store.workflow_input(&"w1".into()).await.expect("read").expect("an input");
        assert_eq!(input.bytes(), 640_000);
    });
    assert!(payload_blocks_exceed(&mut client, claimed), "reading one is seen");
}
