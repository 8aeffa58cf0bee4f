//! The plan of every statement: none reads a table that grows with the work from end to end.

use rusqlite::Connection;

use crate::sql;

/// Tables that stay small whatever the work: reading one whole is right.
const SMALL: &[&str] =
    &["queues", "application_versions", "mainstay_state", "mainstay_leases", "dbos_migrations", "mainstay_hints"];

/// Statements that sort what an index has found, and what bounds it.
const SORTS: &[(&str, &str)] = &[
    ("TAKE", "the rows of one executor"),
    ("CLAIMED", "the rows of one executor"),
    ("VERSIONS", "the versions of an application"),
];

fn schema() -> Connection {
    let conn = Connection::open_in_memory().expect("a database");
    for migration in mainstay_migrations::SQLITE {
        conn.execute_batch(migration.sql).expect("the schema");
    }
    conn
}

fn plan(conn: &Connection, statement: &str) -> Vec<String> {
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).expect(statement);
    // Parameters stay NULL: the plan of a prepared statement must not hang on their values.
    let rows = explain.raw_query().mapped(|row| row.get::<_, String>(3));
    rows.collect::<Result<_, _>>().expect(statement)
}

fn is_plain(statement: &str) -> bool {
    let first = statement.split_whitespace().next().unwrap_or_default();
    !matches!(first, "BEGIN" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "PRAGMA")
}

#[test]
fn no_statement_scans_a_table_that_grows() {
    let conn = schema();
    let mut seen = 0;
    for (name, statement) in sql::ALL.iter().filter(|(_, statement)| is_plain(statement)) {
        for line in plan(&conn, statement) {
            seen += 1;
            let small = SMALL.iter().any(|table| line.split_whitespace().nth(1) == Some(table));
            let scans =
                line.starts_with("SCAN ") && !small && !line.starts_with("SCAN (") && line != "SCAN CONSTANT ROW";
            assert!(!scans, "{name}: {line}");
        }
    }
    assert!(seen > 60, "{seen} lines of plans");
}

#[test]
fn an_order_comes_from_an_index() {
    let conn = schema();
    for (name, statement) in sql::ALL.iter().filter(|(_, statement)| is_plain(statement)) {
        let sorts = plan(&conn, statement).iter().any(|line| line.contains("TEMP B-TREE"));
        assert_eq!(sorts, SORTS.iter().any(|(known, _)| known == name), "{name}");
    }
}

#[test]
fn each_question_has_its_index() {
    let conn = schema();
    for (name, statement, index) in [
        ("KIND_AFTER", sql::KIND_AFTER, "INDEX workflow_enqueued (queue_name=? AND kind>?)"),
        ("KIND_ROWS", sql::KIND_ROWS, "INDEX workflow_enqueued (queue_name=? AND kind=?)"),
        ("RUNNING", sql::RUNNING, "COVERING INDEX workflow_running (queue_name=? AND application_name=?)"),
        ("STARTS", sql::STARTS, "COVERING INDEX mainstay_starts_queue (queue=? AND started_at>?)"),
        ("HELD", sql::HELD, "INDEX workflow_held (executor_id=? AND (created_at,workflow_uuid)>(?,?))"),
        ("TAKE", sql::TAKE, "INDEX workflow_held (executor_id=?)"),
        ("CLAIMED", sql::CLAIMED, "INDEX workflow_held (executor_id=?)"),
        ("HOLDER", sql::HOLDER, "INDEX workflow_dedup (queue_name=? AND deduplication_id=?)"),
        ("CHILDREN", sql::CHILDREN, "INDEX workflow_parent (parent_workflow_id=?)"),
        ("DUE", sql::DUE, "COVERING INDEX workflow_delayed (application_name=? AND delay_until_epoch_ms<?)"),
        ("LATE", sql::LATE, "INDEX workflow_deadline (application_name=? AND workflow_deadline_epoch_ms<?)"),
        ("OLD", sql::OLD, "COVERING INDEX workflow_completed (application_name=? AND completed_at<?)"),
        ("STEPS", sql::STEPS, "PRIMARY KEY (workflow_uuid=? AND function_id>?)"),
    ] {
        let plan = plan(&conn, statement);
        assert!(plan.iter().any(|line| line.contains(index)), "{name}: {plan:?}");
    }
}
