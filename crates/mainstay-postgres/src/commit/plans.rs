//! Plans of the statements of a commit: on an empty database, and on a large one with statistics of when it was small, each
//! scan of a table of workflows seeks what it reads, and a batch of 256 costs what its rows cost.

use mainstay_pgkit::Client;
use serde_json::Value;

use super::texts::ALL;
use crate::plans::{self, Scan};
use crate::session::settings;
use crate::text::Texts;

/// Statistics from when a thousand rows waited; then 50,000 have ended and 5,000 run, each a parent of nobody.
const LARGE: &str = "
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, created_at, updated_at, queue_name)
        SELECT 'first-' || n, 'ENQUEUED', 'work', 'shop', n, n, 'q' FROM generate_series(1, 1000) n;
    ANALYZE;
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, created_at, updated_at, completed_at,
            queue_name, started_at_epoch_ms, parent_workflow_id)
        SELECT 'done-' || n, 'SUCCESS', 'work', 'shop', n, n, n, 'q', n, 'first-' || n FROM generate_series(1, 50000) n;
    INSERT INTO dbos.workflow_input (workflow_uuid, inputs) SELECT 'done-' || n, '[]' FROM generate_series(1, 50000) n;
    INSERT INTO dbos.workflow_output (workflow_uuid, output) SELECT 'done-' || n, '1' FROM generate_series(1, 50000) n;
    INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output)
        SELECT 'done-' || n, 0, 's', '1' FROM generate_series(1, 50000) n;
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, executor_id, created_at, updated_at,
            queue_name, started_at_epoch_ms, owner_xid)
        SELECT 'running-' || n, 'PENDING', 'work', 'shop', 'one~1', n, n, 'q', n, 't' FROM generate_series(1, 5000) n;
    INSERT INTO dbos.workflow_input (workflow_uuid, inputs) SELECT 'running-' || n, '[]' FROM generate_series(1, 5000) n";

/// Units of a batch.
const UNITS: usize = 256;

/// Most rows that one scan may read.
const MOST: f64 = 300.0;

fn array(kind: &str, value: impl Fn(usize) -> String) -> String {
    let values: Vec<String> = (0..UNITS).map(value).collect();
    format!("ARRAY[{}]::{kind}[]", values.join(","))
}

/// The parameters of a submit for each of the new workflows.
fn submit(ords: &str, fresh: &str) -> String {
    let same = |kind: &str, value: &str| array(kind, |_| value.to_owned());
    let (none, nothing, zeros) = (same("text", "NULL"), same("bigint", "NULL"), same("int", "0"));
    let (q, work) = (same("text", "'q'"), same("text", "'work'"));
    let (none, nothing, zeros, q, work) = (&*none, &*nothing, &*zeros, &*q, &*work);
    [
        "NULL",
        ords,
        fresh,
        fresh,
        work,
        none,
        none,
        none,
        none,
        q,
        none,
        nothing,
        nothing,
        zeros,
        none,
        none,
        none,
        none,
        nothing,
        nothing,
        nothing,
        none,
        none,
        none,
        none,
        none,
        work,
        &same("bool", "true"),
    ]
    .join(", ")
}

/// The parameters of each statement as they stand in SQL, and most blocks that it may look at.
fn cases() -> Vec<(&'static str, String, f64)> {
    let ords = array("int", |n| n.to_string());
    let same = |kind: &str, value: &str| array(kind, |_| value.to_owned());
    let running = array("text", |n| format!("'running-{}'", n + 1));
    let fences = array("text", |n| format!("'t/{}'", n + 1));
    let fresh = array("text", |n| format!("'new-{n}'"));
    let (none, nothing, zero) = (same("text", "NULL"), same("bigint", "NULL"), same("bigint", "0"));
    let (q, work, no) = (same("text", "'q'"), same("text", "'work'"), same("bool", "false"));
    let zeros = same("int", "0");
    let submit = submit(&ords, &fresh);
    let judge = [&*ords, &zeros, &fresh, &fresh, &work, &none, &none, &none, &q, &fresh, &no].join(", ");
    let few = "ARRAY['running-1', 'done-1', 'none']";
    vec![
        ("commit_leases", "'dbos', ARRAY['one~1']".to_owned(), 50.0),
        ("commit_lock", format!("NULL, {running}, {ords}, {running}, {fences}, ARRAY[]::int[]"), 4_000.0),
        ("commit_probe", format!("{ords}, {running}, {ords}, {running}, {zeros}"), 2_500.0),
        ("commit_submit", submit, 14_000.0),
        ("commit_judge", judge, 4_000.0),
        (
            "commit_outcomes",
            format!("NULL, {ords}, {running}, {}, {work}, {none}", same("text", "'SUCCESS'")),
            16_000.0,
        ),
        ("commit_cancels", format!("NULL, {ords}, {zeros}, {running}"), 14_000.0),
        ("commit_give_back", format!("NULL, {ords}, {running}, {nothing}, {no}, 'i'"), 14_000.0),
        (
            "commit_steps",
            format!(
                "NULL, {ords}, {running}, {zeros}, {work}, {work}, {none}, {nothing}, {none}, {none}, {zero}, {none}"
            ),
            9_000.0,
        ),
        ("commit_family", "ARRAY['first-1', 'first-2']".to_owned(), 200.0),
        ("commit_states", few.to_owned(), 100.0),
        ("commit_resume", format!("NULL, {few}, 'q'"), 400.0),
        ("commit_delete", few.to_owned(), 400.0),
        ("commit_fork_row", "NULL, 'done-1', 'copy', NULL, 'q', NULL".to_owned(), 200.0),
        ("commit_fork_clean", "'done-2'".to_owned(), 100.0),
        ("commit_fork_copy", "NULL, 'done-1', 'copy-2', 5".to_owned(), 300.0),
        ("commit_set_delay", "NULL, 'running-1', 5, NULL".to_owned(), 100.0),
        ("commit_attributes", "'running-1', '{}'".to_owned(), 200.0),
    ]
}

/// Rows that a scan reads and should not.
fn judge(scan: &Scan<'_>) -> Option<f64> {
    let wrong = !scan.seeks || scan.rows > MOST;
    (wrong && !["queues", "leases"].contains(&scan.table)).then_some(scan.rows)
}

/// Runs all statements, each in a transaction that is undone, and says what is wrong with their plans.
fn explained(client: &mut Client, texts: &Texts) -> Vec<String> {
    let mut wrong = Vec::new();
    client.run(&settings(false));
    let good: Vec<String> = (0..UNITS).map(|n| n.to_string()).collect();
    let begin = format!(
        "BEGIN; SELECT set_config('mainstay.good', '{{{}}}', true), set_config('mainstay.made', '{{}}', true)",
        good.join(",")
    );
    for (name, params, most) in cases() {
        let rendered = texts.get(plans::named(ALL.iter().copied(), name));
        client.run(&begin);
        // A judge needs what it judges: a submit that is nowhere divides by zero.
        let first = if name == "commit_judge" {
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, creator_xid, owner_xid)
                SELECT 'new-' || n, 'ENQUEUED', 'work', 'new-' || n, 'new-' || n FROM generate_series(0, 255) n"
        } else {
            "SELECT 1"
        };
        client.run(first);
        client.run(&format!("PREPARE p ({}) AS {}", plans::types(&rendered), rendered.sql));
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE p({params})");
        let plan: Value = serde_json::from_str(&client.value(&explain)).expect("a plan");
        client.run("ROLLBACK; DEALLOCATE p");
        let plan = &plan[0]["Plan"];
        let mut found = plans::faults(plan, &judge);
        found.extend(plans::too_many_blocks(plan, most));
        wrong.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    wrong
}

#[test]
fn every_statement_of_a_commit_has_its_plan_looked_at() {
    plans::assert_all_are_named(cases().iter().map(|(name, ..)| *name), ALL.iter().copied());
}

#[test]
fn a_commit_seeks_all_it_reads_on_empty_and_on_large_stale_databases() {
    let Some(database) = plans::database() else { return };
    let mut client = database.client();
    let all = [(true, true), (true, false), (false, true)].map(|(owner, split)| plans::texts(owner, split));
    for texts in &all {
        assert_eq!(explained(&mut client, texts), [""; 0], "empty, {:?}", texts.layout);
    }
    client.run(LARGE);
    for texts in &all {
        assert_eq!(explained(&mut client, texts), [""; 0], "large, {:?}", texts.layout);
    }
}
