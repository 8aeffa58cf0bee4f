//! The acceptance list of the shared schema, as far as the schema itself goes.

use mainstay_postgres::schema_testing::{self as runner, How};
use mainstay_store::ErrorKind;

use crate::schema::support::{assert_at, rows, text, value, with_database};
use crate::schema::{logs, races};

const SOME_ROWS: &str = "
    INSERT INTO old.workflow_status (workflow_uuid, status, name, inputs, output) VALUES ('w', 'SUCCESS', 'f', '[1]', '2');
    INSERT INTO old.operation_outputs (workflow_uuid, function_id, output)
        SELECT 'w', n, 'step' FROM generate_series(0, 999) n";

#[test]
fn acceptance_01_a_fresh_database_has_the_catalog_of_125() {
    with_database(|lab| async move {
        let seen = lab.ready("dbos", How::Up).await.expect("opened");
        assert_eq!(seen, (125, true, true, true, true));
        let client = lab.client().await;
        assert_at(&client, "dbos", 125, "fresh").await;
        let facts = runner::facts_of(&client, "dbos").await.expect("a catalog");
        let count = |kind: &str| facts.iter().filter(|fact| fact.starts_with(kind)).count();
        assert_eq!((count("table "), count("function "), count("trigger ")), (13, 3, 1));
    });
}

#[test]
fn acceptance_02_an_older_database_with_rows_gets_the_same_catalog_and_its_steps_are_not_written_anew() {
    with_database(|lab| async move {
        let client = lab.schema_at(108, "old").await;
        client.batch_execute(SOME_ROWS).await.expect("rows");
        let file = "SELECT relfilenode FROM pg_class WHERE oid = 'old.operation_outputs'::regclass";
        let before = value(&client, file).await;
        lab.ready("old", How::Up).await.expect("opened");
        assert_at(&client, "old", 125, "with rows").await;
        assert_eq!(value(&client, file).await, before);
        let kept = "SELECT w.inputs || w.output || count(*) || count(DISTINCT o.retention_timestamp)
            FROM old.workflow_status w JOIN old.operation_outputs o USING (workflow_uuid) GROUP BY w.inputs, w.output";
        assert_eq!(value(&client, kept).await, "[1]210001");
    });
}

#[test]
fn acceptance_03_two_runners_at_once_and_one_killed_inside_each_online_step_end_in_one_good_schema() {
    with_database(|lab| async move {
        races::at_once(&lab, "twice", 2, None).await;
        for number in races::online_numbers() {
            races::killed_inside(&lab, number).await;
        }
    });
}

#[test]
fn acceptance_04_a_hold_at_108_stops_there_and_leaves_125_alone() {
    with_database(|lab| async move {
        assert_eq!(lab.ready("fresh", How::UpTo108).await.expect("fresh"), (108, false, false, false, true));
        let client = lab.schema_at(100, "older").await;
        lab.ready("older", How::UpTo108).await.expect("older");
        assert_at(&client, "fresh", 108, "fresh").await;
        assert_at(&client, "older", 108, "older").await;
        lab.ready("newer", How::Up).await.expect("newer");
        assert_eq!(lab.ready("newer", How::UpTo108).await.expect("held"), (125, true, true, true, true));
        assert_at(&client, "newer", 125, "newer").await;
    });
}

#[test]
fn acceptance_05_a_higher_number_is_opened_and_left_alone() {
    logs::collect();
    with_database(|lab| async move {
        let client = lab.client().await;
        for number in [126, 999] {
            let schema = format!("later_{number}");
            lab.ready(&schema, How::Up).await.expect("made");
            let set = format!(
                "UPDATE {schema}.dbos_migrations SET version = {number}; DROP INDEX {schema}.idx_workflow_topic"
            );
            client.batch_execute(&set).await.expect("set");
            for how in [How::Up, How::UpTo108, How::Verify] {
                assert_eq!(lab.ready(&schema, how).await.expect("opened").0, number);
            }
            assert_eq!(
                value(&client, &format!("SELECT version FROM {schema}.dbos_migrations")).await,
                number.to_string()
            );
            let index = format!("SELECT to_regclass('{schema}.idx_workflow_topic')");
            assert_eq!(value(&client, &index).await, "NULL");
            assert_eq!(logs::with(&["INFO", "newer schema", &schema]).len(), 3);
        }
    });
}

#[test]
fn acceptance_06_verifying_names_both_numbers_tells_of_missing_indexes_and_accepts_125() {
    logs::collect();
    with_database(|lab| async move {
        lab.ready("verified", How::Up).await.expect("made, with our own schema");
        assert_eq!(lab.ready("verified", How::Verify).await.expect("125").0, 125);
        assert!(logs::with(&["WARN", "verified"]).is_empty());

        let client = lab.schema_at(108, "older").await;
        let error = lab.ready("older", How::Verify).await.expect_err("108");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(text(&error).contains("number 108") && text(&error).contains("125"), "{error}");
        assert_eq!(lab.ready("older", How::Verify108).await.expect("held").0, 108);
        assert_at(&client, "older", 108, "verified").await;

        let client = lab.schema_at(123, "nearly").await;
        assert_eq!(lab.ready("nearly", How::Verify).await.expect("123").0, 123);
        let told = logs::with(&["WARN", "schema=\"nearly\"", "idx_application_versions_"]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert_at(&client, "nearly", 123, "verified").await;

        let error = lab.ready("nowhere", How::Verify).await.expect_err("nothing");
        assert!(text(&error).contains("number 0"), "{error}");
        assert!(rows(&client, "SELECT FROM pg_namespace WHERE nspname = 'nowhere'").await.is_empty());
    });
}

#[test]
fn acceptance_07_a_number_of_the_typescript_sdk_is_refused_and_nothing_is_stamped() {
    with_database(|lab| async move {
        // What a TypeScript SDK has left at its 63 is the common 41, with the names that it gives to keys.
        let rename = "ALTER TABLE ts.operation_outputs RENAME CONSTRAINT operation_outputs_workflow_uuid_fkey
            TO operation_outputs_workflow_uuid_foreign";
        let client = lab.schema_at(41, "ts").await;
        client.batch_execute(rename).await.expect("renamed");
        for number in ["63", "48", "99", "41"] {
            client.batch_execute(&format!("UPDATE ts.dbos_migrations SET version = {number}")).await.expect("set");
            for how in [How::Up, How::UpTo108, How::Verify] {
                let error = lab.ready("ts", how).await.expect_err(number);
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(text(&error).contains("TypeScript") && text(&error).contains(number), "{error}");
            }
            assert_eq!(value(&client, "SELECT version FROM ts.dbos_migrations").await, number);
        }
        // One that an SDK has stamped on top of it lacks columns, whatever its number.
        client.batch_execute("UPDATE ts.dbos_migrations SET version = 100").await.expect("set");
        let error = lab.ready("ts", How::Up).await.expect_err("a wrong stamp");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(text(&error).contains("lacks column"), "{error}");
        assert_eq!(value(&client, "SELECT version FROM ts.dbos_migrations").await, "100");
    });
}

#[test]
fn acceptance_08_a_sharded_schema_is_refused() {
    with_database(|lab| async move {
        lab.ready("shards", How::Up).await.expect("made");
        let client = lab.client().await;
        client.batch_execute("ALTER TABLE shards.workflow_status ADD COLUMN shard_key text").await.expect("a column");
        for how in [How::Up, How::UpTo108, How::Verify] {
            let error = lab.ready("shards", how).await.expect_err("refused");
            assert!(error.kind() == ErrorKind::Unsupported && text(&error).contains("shard_key"), "{error}");
        }
    });
}

#[test]
fn tables_without_a_recorded_number_are_refused() {
    with_database(|lab| async move {
        let client = lab.schema_at(125, "lost").await;
        client.batch_execute("DELETE FROM lost.dbos_migrations").await.expect("deleted");
        let error = lab.ready("lost", How::Up).await.expect_err("refused");
        assert!(text(&error).contains("no recorded number"), "{error}");
    });
}
