//! Plans of the statements of claims and reads: on an empty database, never analysed, and on a large one with old statistics
//! no table of workflows is read as a whole, and the blocks looked at stay within a bound.

use mainstay_pgkit::{Client, Database};
use serde_json::Value;

use crate::plans::{self, Scan};
use crate::session::settings;
use crate::text::{Text, Texts};
use crate::{claim, queues_read, workflows};

/// Tables with a row for each queue, version or executor.
const SMALL: [&str; 4] = ["queues", "application_versions", "leases", "claims"];

/// Most rows that one scan may read, where limits are 1,000.
const MOST: f64 = 1_100.0;

/// Statistics from when a thousand rows waited; then 100,000 have ended, 5,000 run and 5,000 wait.
const LARGE: &str = "
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, created_at, updated_at, queue_name)
        SELECT 'first-' || n, 'ENQUEUED', 'work', 'shop', n, n, 'q' FROM generate_series(1, 1000) n;
    ANALYZE;
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, executor_id, created_at, updated_at,
            completed_at, queue_name, started_at_epoch_ms)
        SELECT 'done-' || n, 'SUCCESS', 'work', 'shop', 'one~1', n, n, n, 'q', n FROM generate_series(1, 100000) n;
    INSERT INTO dbos.workflow_input (workflow_uuid, inputs) SELECT 'done-' || n, '[]' FROM generate_series(1, 100000) n;
    INSERT INTO dbos.workflow_output (workflow_uuid, output) SELECT 'done-' || n, '1' FROM generate_series(1, 100000) n;
    INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output)
        SELECT 'done-' || n, 0, 's', '1' FROM generate_series(1, 100000) n;
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, executor_id, created_at, updated_at,
            queue_name, started_at_epoch_ms, owner_xid)
        SELECT 'running-' || n, 'PENDING', 'work', 'shop', 'two~1', n, n, 'q' || n % 10, n, 't'
        FROM generate_series(1, 5000) n;
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, created_at, updated_at, queue_name)
        SELECT 'waiting-' || n, 'ENQUEUED', 'work', 'shop', n, n, 'q' FROM generate_series(1, 5000) n;
    INSERT INTO dbos.workflow_input (workflow_uuid, inputs) SELECT 'waiting-' || n, '[]' FROM generate_series(1, 5000) n;
    INSERT INTO mainstay.starts (system, queue, key, at, token, n)
        SELECT 'dbos', 'q', '', n, 't' || n, 1 FROM generate_series(1, 20000) n";

/// The queue, the lease and the claim's lock, on both databases.
const BASICS: &str = "INSERT INTO mainstay.leases (system, executor, app, beat) VALUES ('dbos', 'one~1', 'shop', 1);
    INSERT INTO dbos.queues (name, rate_limit_max, rate_limit_period_sec) VALUES ('q', 100, 1);";

/// Statement, parameters as they stand in SQL, and most blocks looked at. `REVISION` is that of the queue.
const CASES: &[(&str, &str, f64)] = &[
    ("claim_queue", "NULL, 'dbos', 'one~1', 'q'", 50.0),
    ("claim_plain", TAKING, 5_000.0),
    ("claim_lock", "'dbos', 'q', 'one~1'", 50.0),
    ("claim_counts", "20000, 'dbos', 'q', 'shop', REVISION, 100, 100, 500", 1_500.0),
    ("claim_take", TAKING, 5_000.0),
    ("claim_repeat", "NULL, 'dbos', 4194304, 262144, 'q', 'one~1', 't'", 3_000.0),
    ("claim_aside", "NULL, ARRAY['running-1'], ARRAY['t/1'], ARRAY['bad']", 200.0),
    ("claim_inputs", "ARRAY['waiting-1', 'waiting-2'], 1000", 100.0),
    ("claim_refence", "ARRAY['running-2'], ARRAY['2/0/two~1'], 'u'", 200.0),
    ("claim_trim", "NULL, 'dbos', 600000", 50.0),
    ("claim_front", "'q', 'v1', ARRAY['work'], ARRAY[''], ARRAY[''], 1000, 'shop'", 1_500.0),
    (
        "probe",
        "NULL, 'v1', ARRAY['q', 'q1'], ARRAY['work'], ARRAY[''], ARRAY[''], 'shop', ARRAY[NULL::int, NULL],
        ARRAY[NULL::bigint, NULL], ARRAY[NULL::boolean, NULL], '_dbos_internal_queue'",
        200.0,
    ),
    ("audit", "NULL, 'dbos', 'two~1', -9223372036854775808, '', 1000", 1_500.0),
    ("read_standing", "ARRAY['done-1', 'waiting-1', 'none']", 100.0),
    ("read_rows", "ARRAY['done-1', 'waiting-1', 'none']", 100.0),
    ("read_steps", "'done-1', 0, 4194304", 50.0),
    ("read_input", "'done-1'", 50.0),
    ("read_holder", "'q', 'key'", 50.0),
];

const TAKING: &str = "NULL, 'dbos', 4194304, 262144, 'q', 'one~1', 'shop', 'v1', 'token', REVISION, 64, ARRAY['work'],
    ARRAY[''], ARRAY[''], ARRAY[100], '', NULL, NULL, NULL";

fn all() -> impl Iterator<Item = &'static Text> {
    [claim::ALL, queues_read::ALL, workflows::ALL].into_iter().flatten().copied()
}

fn database() -> Option<Database> {
    let database = plans::database()?;
    database.client().run(BASICS);
    Some(database)
}

/// Rows that a scan reads and should not.
fn judge(scan: &Scan<'_>) -> Option<f64> {
    let is_sought = scan.seeks || scan.node == "Tid Scan";
    let wrong = scan.node == "Seq Scan" || (!is_sought && scan.rows > 1.0) || scan.rows > MOST;
    (wrong && !SMALL.contains(&scan.table)).then_some(scan.rows)
}

/// Runs all statements, each in a transaction that is undone, and says what is wrong with their plans.
fn explained(client: &mut Client, texts: &Texts, cases: &[(&str, &str, f64)]) -> Vec<String> {
    let mut wrong = Vec::new();
    client.run(&settings(false));
    let revision = client.value("SELECT xmin FROM dbos.queues WHERE name = 'q'");
    for (name, params, most) in cases {
        let rendered = texts.get(plans::named(all(), name));
        client.run("BEGIN");
        client.run("SELECT set_config('mainstay.claim', 'open', true)");
        client.run(&format!("PREPARE p ({}) AS {}", plans::types(&rendered), rendered.sql));
        let explain =
            format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE p({})", params.replace("REVISION", &revision));
        // The first run reads the catalog too.
        client.value(&explain);
        client.run("ROLLBACK; BEGIN; SELECT set_config('mainstay.claim', 'open', true)");
        let plan: Value = serde_json::from_str(&client.value(&explain)).expect("a plan");
        client.run("ROLLBACK; DEALLOCATE p");
        let plan = &plan[0]["Plan"];
        let mut found = plans::faults(plan, &judge);
        found.extend(plans::too_many_blocks(plan, *most));
        wrong.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    wrong
}

fn texts(owner: bool) -> Texts {
    plans::texts(owner, true)
}

#[test]
fn every_statement_of_claims_and_reads_has_its_plan_looked_at() {
    plans::assert_all_are_named(CASES.iter().map(|(name, ..)| *name), all());
}

#[test]
fn claims_and_reads_read_no_table_as_a_whole_on_empty_and_on_large_stale_databases() {
    let Some(database) = database() else { return };
    let mut client = database.client();
    assert_eq!(explained(&mut client, &texts(true), CASES), [""; 0], "empty");
    assert_eq!(explained(&mut client, &texts(false), CASES), [""; 0], "empty, without owners");
    client.run(LARGE);
    assert_eq!(explained(&mut client, &texts(true), CASES), [""; 0], "large");
    assert_eq!(explained(&mut client, &texts(false), CASES), [""; 0], "large, without owners");
}

/// Rows that all nodes of a plan have handled.
fn handled(plan: &Value) -> f64 {
    let number = |key: &str| plan[key].as_f64().unwrap_or_default();
    let own = (number("Actual Rows") + number("Rows Removed by Filter")) * number("Actual Loops");
    own + plan["Plans"].as_array().into_iter().flatten().map(handled).sum::<f64>()
}

/// What a page of an audit handles where no column holds a token, after claims of one row each.
fn audited(client: &mut Client, notes: u32) -> f64 {
    client.run(&format!(
        "TRUNCATE mainstay.claims;
        INSERT INTO mainstay.claims (system, token, at, fences)
            SELECT 'dbos', 't' || n, n, jsonb_build_array(jsonb_build_array('running-' || n, n || '/0/two~1'))
            FROM generate_series(1, {notes}) n"
    ));
    let rendered = texts(false).get(plans::named(all(), "audit"));
    client.run(&format!("PREPARE p ({}) AS {}", plans::types(&rendered), rendered.sql));
    let page = "EXECUTE p(NULL, 'dbos', 'two~1', -9223372036854775808, '', 1000)";
    let tokens = client.rows(page).into_iter().filter(|row| row.last().is_some_and(Option::is_some)).count();
    assert_eq!(tokens, 1000, "each row of the page has its token");
    let plan: Value =
        serde_json::from_str(&client.value(&format!("EXPLAIN (ANALYZE, FORMAT JSON) {page}"))).expect("a plan");
    client.run("DEALLOCATE p");
    handled(&plan[0]["Plan"])
}

#[test]
fn a_page_of_an_audit_reads_each_note_of_a_claim_once_not_once_for_each_row() {
    let Some(database) = database() else { return };
    let mut client = database.client();
    client.run(LARGE);
    client.run(&settings(false));
    let (few, many) = (audited(&mut client, 2_000), audited(&mut client, 12_000));
    // A note is a row of `claims`, one of its array, and one of their join.
    assert!(many - few <= 10_000.0 * 4.0, "{few} and {many} rows");
    assert!(many >= 12_000.0, "the notes are counted: {many}");
}

/// The check of plans can fail: with the settings of the server itself a claim's count walks what it should not.
#[test]
fn a_scan_of_a_whole_table_is_seen() {
    let Some(database) = database() else { return };
    let mut client = database.client();
    client.run(LARGE);
    let plan = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM dbos.workflow_status WHERE name = 'work'";
    let plan: Value = serde_json::from_str(&client.value(plan)).expect("a plan");
    let found = plans::faults(&plan[0]["Plan"], &judge);
    assert!(!found.is_empty(), "{plan}");
}
