//! Plans of the statements of leases, upkeep and registry: on an empty database and on a large one with old statistics, no
//! statement reads a table of workflows as a whole, and none more rows than its limit allows.

use mainstay_pgkit::Client;
use serde_json::Value;

use crate::plans::{self, Scan};
use crate::session::settings;
use crate::text::{Text, Texts};
use crate::{executor, maintenance, registry};

/// Most rows that one scan may read, where the limits below are 1,000.
const MOST: f64 = 1_100.0;

/// Tables with a row for each queue, version or step of the schema.
const SMALL: [&str; 4] = ["queues", "application_versions", "dbos_migrations", "leases"];

/// Statistics from when a thousand rows waited; then 40,000 ended, 5,000 run, 5,000 wait and 5,000 are delayed.
const LARGE: &str = "
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, created_at, updated_at, queue_name)
        SELECT 'first-' || n, 'ENQUEUED', 'work', 'shop', n, n, 'q' FROM generate_series(1, 1000) n;
    INSERT INTO dbos.workflow_input (workflow_uuid, inputs, retention_timestamp)
        SELECT 'first-' || n, '[]', n FROM generate_series(1, 1000) n;
    ANALYZE;
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, executor_id, created_at, updated_at,
            completed_at, queue_name, started_at_epoch_ms)
        SELECT 'done-' || n, 'SUCCESS', 'work', 'shop', 'one~1', n, n, 1000000 + n, 'q', n FROM generate_series(1, 40000) n;
    INSERT INTO dbos.workflow_input (workflow_uuid, inputs, retention_timestamp)
        SELECT 'done-' || n, '[]', n FROM generate_series(1, 40000) n;
    INSERT INTO dbos.workflow_output (workflow_uuid, output, retention_timestamp)
        SELECT 'done-' || n, '1', n FROM generate_series(1, 40000) n;
    INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output, retention_timestamp)
        SELECT 'done-' || n, 0, 's', '1', n FROM generate_series(1, 40000) n;
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, executor_id, created_at, updated_at,
            queue_name, started_at_epoch_ms, owner_xid, workflow_deadline_epoch_ms)
        SELECT 'running-' || n, 'PENDING', 'work', 'shop', CASE WHEN n % 2 = 0 THEN 'one~1' ELSE 'two~1' END, n, n, 'q', n,
            't', CASE WHEN n % 10 = 0 THEN 9000000000000 + n ELSE n END FROM generate_series(1, 5000) n;
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, created_at, updated_at, queue_name)
        SELECT 'waiting-' || n, 'ENQUEUED', 'work', 'shop', n, n, 'q' FROM generate_series(1, 5000) n;
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, created_at, updated_at, queue_name,
            delay_until_epoch_ms)
        SELECT 'delayed-' || n, 'DELAYED', 'work', 'shop', n, n, 'q', 1000 + n FROM generate_series(1, 5000) n;
    INSERT INTO mainstay.leases (system, executor, app, beat)
        VALUES ('dbos', 'one~1', 'shop', 1), ('dbos', 'two~1', 'shop', 1);
    INSERT INTO dbos.queues (name, application_name) SELECT 'q' || n, 'shop' FROM generate_series(1, 30) n;
    INSERT INTO dbos.application_versions (version_id, version_name, application_name)
        SELECT n, 'v' || n, 'shop' FROM generate_series(1, 30) n;";

/// Each statement with its parameters as they stand in SQL. Those that go by the one before them come after it.
const CASES: &[(&str, &str)] = &[
    ("lease_open", "'dbos', 'three~1', 'shop'"),
    ("lease_beat", "'dbos', 'one~1', 2"),
    ("lease_list", "NULL, 'dbos', 'shop'"),
    ("lease_over", "'dbos', 'one~1', 2"),
    ("lease_rows", "NULL, 'dbos', 'one~1', 'i', 1000"),
    ("tick_sweep", "NULL, 'shop', 'i', 1000"),
    ("tick_read", "NULL, 'dbos', 'shop', NULL"),
    ("collect_rows", "1020000, 'shop', 0, 999"),
    ("collect_pick", "NULL, 0, 1000, 500, 7"),
    ("collect_orphans", ""),
    ("queue_list", "'shop'"),
    ("queue_insert", "NULL, 'new', 'shop', 1, 1, 1, 1.5, NULL, NULL, NULL, NULL, false, 1"),
    ("queue_lock", "'q1', 'shop'"),
    ("queue_write", "NULL, 'q1', 'shop', 1, 1, 1, 1.5, NULL, NULL, NULL, NULL, false, 1"),
    ("queue_delete", "'q1', 'shop'"),
    ("version_turn", "'dbos'"),
    ("version_insert", "NULL, 'new', 'shop'"),
    ("version_owner", "'v1', 'shop'"),
    ("version_promote", "NULL, 'v1', 'shop'"),
    ("version_list", "'shop'"),
];

fn all() -> impl Iterator<Item = &'static Text> {
    [executor::ALL, maintenance::ALL, registry::ALL].into_iter().flatten().copied()
}

/// Rows that a scan reads in all its loops and should not.
fn judge(scan: &Scan<'_>) -> Option<f64> {
    let read = scan.rows * scan.loops;
    let whole = scan.node == "Seq Scan" || (!scan.seeks && read > 1.0);
    ((whole || read > MOST) && !SMALL.contains(&scan.table)).then_some(read)
}

/// Runs all statements, in one transaction that is undone, and says what is wrong with their plans.
fn explained(client: &mut Client, texts: &Texts) -> Vec<String> {
    let mut wrong = Vec::new();
    client.run(&format!("{} BEGIN", settings(false)));
    for (name, params) in CASES {
        let rendered = texts.get(plans::named(all(), name));
        let (types, params) = match plans::types(&rendered) {
            none if none.is_empty() => (none, String::new()),
            some => (format!("({some})"), format!("({params})")),
        };
        client.run(&format!("PREPARE p{types} AS {}", rendered.sql));
        let plan = client.value(&format!("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE p{params}"));
        client.run("DEALLOCATE p");
        let plan: Value = serde_json::from_str(&plan).expect("a plan");
        let found = plans::faults(&plan[0]["Plan"], &judge);
        wrong.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    client.run("ROLLBACK");
    wrong
}

#[test]
fn every_statement_of_upkeep_has_its_plan_looked_at() {
    plans::assert_all_are_named(CASES.iter().map(|(name, _)| *name), all());
}

#[test]
fn upkeep_reads_no_table_as_a_whole_on_empty_and_on_large_stale_databases() {
    let Some(database) = plans::database() else { return };
    let mut client = database.client();
    assert_eq!(explained(&mut client, &plans::texts(true, true)), [""; 0], "empty");
    client.run(LARGE);
    assert_eq!(explained(&mut client, &plans::texts(true, true)), [""; 0], "large");
}

#[test]
fn without_an_index_by_deadline_a_tick_reads_open_rows_alone() {
    let Some(database) = plans::database() else { return };
    let mut client = database.client();
    client.run(LARGE);
    client.run("DROP INDEX dbos.idx_workflow_status_deadline");
    let wrong = explained(&mut client, &plans::texts(false, true));
    let beyond: Vec<&String> = wrong
        .iter()
        .filter(|fault| !fault.starts_with("tick_") || fault.contains("40000") || fault.contains("Seq Scan"))
        .collect();
    assert_eq!(beyond, [""; 0], "{wrong:?}");
    assert!(!wrong.is_empty(), "the walk over open rows is seen");
}
