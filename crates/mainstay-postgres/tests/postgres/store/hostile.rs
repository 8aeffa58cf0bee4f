//! What others do to a database that the store works on: odd names, locks held for long, rows that move under a claim.

use std::time::Duration;

use futures_util::future::join;
use mainstay_env::block_on;
use mainstay_store::{
    ErrorKind, ExecutorStore, Limits, Place, Probe, QueueStore, Registered, Steps, Stop, Store, Submit, TakeOver,
    TakenOver, Unit, UnitReply, WriteStore,
};

use crate::store::claim::{APP, E1, Q, V1, WORK, claim, lease, register};
use crate::store::support::{self, until, until_waiting, with_store};

fn job(id: &str) -> Unit {
    Unit::new().effect(Submit::new(id, WORK, format!("t-{id}"), Place::queue(Q)).app(APP).input("[1]"))
}

#[test]
fn a_schema_whose_name_looks_like_a_place_of_a_statement_is_worked_on() {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    block_on(async {
        let store = support::open(&database, |config| config.schema("a{m}b{s}\"{fence w}--$1'")).await;
        lease(&store, E1).await;
        register(&store, Limits::default()).await;
        let committed = store.commit(&[job("a")]).await.expect("committed");
        assert!(matches!(committed.units[..], [Ok(UnitReply::Done { .. })]), "{committed:?}");
        assert_eq!(store.queue_claim(claim(&store, E1)).await.expect("a claim").rows.len(), 1);
    });
}

#[test]
fn a_submit_that_the_database_swallows_fails_alone() {
    with_store(|store, database| async move {
        database.client().run(
            "CREATE FUNCTION dbos.swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
            CREATE TRIGGER swallow BEFORE INSERT ON dbos.workflow_status FOR EACH ROW
                WHEN (new.workflow_uuid = 'swallowed') EXECUTE FUNCTION dbos.swallow()",
        );
        let units: Vec<Unit> = ["a", "b", "swallowed", "c"].map(job).into();
        let committed = store.commit(&units).await.expect("the others are committed");
        let kinds: Vec<Option<ErrorKind>> =
            committed.units.iter().map(|unit| unit.as_ref().err().map(mainstay_store::StoreError::kind)).collect();
        assert_eq!(kinds, [None, None, Some(ErrorKind::Contended), None], "{committed:?}");
        assert_eq!(database.client().value("SELECT count(*) FROM dbos.workflow_status"), "3");
    });
}

#[test]
fn calls_that_were_given_up_leave_no_connection_behind_a_lock() {
    let Some(database) = support::database() else { return };
    block_on(async {
        let limit = Duration::from_secs(1);
        let store = support::open(&database, |config| config.silent().pool(1).call_timeout(limit)).await;
        let mut holder = database.client();
        holder.run("BEGIN; LOCK TABLE dbos.workflow_status IN ACCESS EXCLUSIVE MODE");
        for _ in 0..3 {
            let error = store.commit(&[job("a")]).await.expect_err("a lock");
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        }
        until_waiting(&store, &mut database.client(), 0).await;
        holder.run("ROLLBACK");
        store.commit(&[job("a")]).await.expect("the lock is gone");
    });
}

/// A list of versions that whoever reads it waits for, with the snapshot of his statement taken: what moves meanwhile
/// moves under it.
const GATE: &str = "ALTER TABLE dbos.application_versions RENAME TO kept_versions;
    CREATE VIEW dbos.application_versions AS
        SELECT * FROM dbos.kept_versions WHERE pg_advisory_xact_lock_shared(77) IS NOT NULL;
    INSERT INTO dbos.kept_versions (version_id, version_name, version_timestamp, created_at, application_name)
        VALUES ('1', 'v1', 1, 1, 'shop');";

#[test]
fn a_row_that_was_run_and_given_back_while_a_claim_looked_comes_with_what_it_recorded() {
    with_store(|store, database| async move {
        lease(&store, E1).await;
        register(&store, Limits::default()).await;
        store.commit(&[job("a"), job("b")]).await.expect("committed");
        let mut other = database.client();
        other.run(GATE);
        other.run("SELECT pg_advisory_lock(77)");
        let moves = async {
            let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND NOT granted";
            until(&store, &mut database.client(), waits, "1").await;
            other.run(
                "UPDATE dbos.workflow_status SET status = 'PENDING' WHERE workflow_uuid = 'a';
                INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output)
                    VALUES ('a', 0, 'paid', '1');
                UPDATE dbos.workflow_status SET status = 'ENQUEUED' WHERE workflow_uuid = 'a'",
            );
            // After the commit: the claim would pass over a row that is still locked.
            other.run("SELECT pg_advisory_unlock(77)");
        };
        let (claimed, ()) = join(store.queue_claim(claim(&store, E1)), moves).await;
        let rows = claimed.expect("a claim").rows;
        let [a, b] = &rows[..] else { panic!("two rows: {rows:?}") };
        assert_eq!(a.steps, Steps::Partial { first: vec![], next: 0.into() }, "its steps are to be read");
        assert_eq!(b.steps, Steps::Complete(vec![]));
    });
}

#[test]
fn a_row_that_comes_into_a_retired_stretch_is_found_by_probes_alone() {
    with_store(|store, database| async move {
        lease(&store, E1).await;
        register(&store, Limits::default()).await;
        let mut client = database.client();
        client.run(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, application_name,
                application_version, created_at, updated_at)
            SELECT 'r' || n, 'ENQUEUED', 'work', 'q', 'shop', 'v0', n + 10, n FROM generate_series(1, 100000) n",
        );
        let claimed = store.queue_claim(claim(&store, E1)).await.expect("a claim");
        assert_eq!((claimed.rows.len(), claimed.stop), (0, Stop::Drained));
        let looks = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'";
        store.env().sleep(Duration::from_millis(1_000)).await;
        until(&store, &mut client, looks, "1").await;
        client.run(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, application_name,
                application_version, created_at, updated_at) VALUES ('back', 'ENQUEUED', 'work', 'q', 'shop', 'v1', 1, 1)",
        );
        let probe = || Probe::new(APP, V1).queues(vec![Q.into()]).names(vec![Registered::new(WORK)]);
        let first = store.queue_probe(probe()).await.expect("a probe");
        assert!(first.due.is_empty(), "the stretch is known by now, and hides the row");
        let end = store.env().deadline(Duration::from_secs(20));
        while store.queue_probe(probe()).await.expect("a probe").due.is_empty() {
            assert!(store.env().monotonic() < end, "the row is hidden for as long as nothing else is claimed");
            store.env().sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(store.queue_claim(claim(&store, E1)).await.expect("a claim").rows.len(), 1);
    });
}

#[test]
fn a_take_over_sees_what_it_waited_for_whatever_isolation_the_database_sets() {
    let Some(database) = support::database() else { return };
    let mut other = database.client();
    other.run(&format!("ALTER DATABASE \"{}\" SET default_transaction_isolation = 'repeatable read'", database.name()));
    block_on(async {
        let store = support::open(&database, |config| config).await;
        lease(&store, E1).await;
        register(&store, Limits::default()).await;
        store.commit(&[job("a")]).await.expect("committed");
        other.run(
            "BEGIN ISOLATION LEVEL READ COMMITTED;
            SELECT 1 FROM mainstay.leases WHERE executor = 'one~1' FOR KEY SHARE;
            UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = 'one~1', owner_xid = 't',
                started_at_epoch_ms = 1 WHERE workflow_uuid = 'a'",
        );
        let claims = async {
            until_waiting(&store, &mut database.client(), 1).await;
            other.run("COMMIT");
        };
        let over = TakeOver::new(E1, 1_u64);
        let (taken, ()) = join(store.lease_take_over(over), claims).await;
        let taken = taken.expect("taken over");
        assert_eq!(taken, TakenOver::Rows { ids: vec!["a".into()], more: false });
    });
}
