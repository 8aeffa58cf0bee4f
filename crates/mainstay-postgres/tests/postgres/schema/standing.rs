//! What stands in a database when a schema is made or brought up: settings of the session, rows and names of others, an
//! encoding.

use mainstay_env::{Env, block_on};
use mainstay_postgres::schema_testing::{self as runner, How};
use mainstay_postgres::{Config, PayloadLayout, Postgres};
use mainstay_store::{ErrorKind, Place, StoreClock, Submit, UnitReply, WriteExt};

use crate::schema::races::until;
use crate::schema::support::{Lab, assert_at, rows, text, value, with_database};

async fn open(lab: &Lab, set: impl FnOnce(Config) -> Config) -> mainstay_store::Result<Postgres> {
    Postgres::open(&lab.env, set(Config::new(lab.database.url())), StoreClock::Server).await
}

/// Opens a schema at `number` under limits of the role that are shorter than what `held` holds it up for.
async fn under_limits(lab: &Lab, number: u32, held: &str, end: u32) {
    let schema = format!("limits_{number}");
    let blocker = lab.schema_at(number, &schema).await;
    let lock = format!("BEGIN; LOCK TABLE {schema}.operation_outputs IN {held} MODE");
    blocker.batch_execute(&lock).await.expect("held");
    let mut client = lab.client().await;
    let limits = "SET statement_timeout = '150ms'; SET lock_timeout = '150ms'";
    client.batch_execute(limits).await.expect("limits");
    let pid = value(&client, "SELECT pg_backend_pid()").await;
    let (env, name) = (lab.env.clone(), schema.clone());
    let opening = lab.env.tasks().spawn("opener", async move {
        if end == 125 {
            runner::ready(&mut client, &name, How::Up, &env).await.map(drop)
        } else {
            runner::climb_to(&mut client, &name, end, &env).await
        }
    });
    let control = lab.client().await;
    let waits = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND clock_timestamp() - query_start > '400 ms'";
    until(lab, &control, &format!("SELECT {waits} AND pid = {pid}")).await;
    blocker.batch_execute("COMMIT").await.expect("let go");
    opening.await.expect("no panic").unwrap_or_else(|error| panic!("from {number}: {error}"));
    assert_at(&control, &schema, end, "under limits").await;
}

#[test]
fn a_limit_of_the_role_on_statements_and_locks_ends_no_build_of_an_index() {
    with_database(|lab| async move { under_limits(&lab, 110, "ROW EXCLUSIVE", 125).await });
}

#[test]
fn a_limit_of_the_role_on_statements_ends_no_step_in_a_transaction_where_the_session_cannot_be_set() {
    with_database(|lab| async move { under_limits(&lab, 109, "ROW EXCLUSIVE", 110).await });
}

#[test]
fn a_role_that_quotes_all_identifiers_opens_a_good_schema() {
    with_database(|lab| async move {
        let mut client = lab.client().await;
        client.batch_execute("SET quote_all_identifiers = on").await.expect("set");
        for how in [How::Up, How::Up, How::Verify] {
            let opened = runner::ready(&mut client, "quoted", how, &lab.env).await;
            assert_eq!(opened.unwrap_or_else(|error| panic!("{how:?}: {error}")).0, 125);
        }
        assert_at(&client, "quoted", 125, "quoted").await;
    });
}

#[test]
fn of_several_recorded_numbers_the_highest_counts_and_one_is_left() {
    with_database(|lab| async move {
        for (schema, made, also) in [("seven", 108, 107), ("typescript", 108, 47), ("later", 124, 3)] {
            let client = lab.schema_at(made, schema).await;
            let add = format!("INSERT INTO {schema}.dbos_migrations VALUES ({also})");
            client.batch_execute(&add).await.expect("a second row");
            lab.ready(schema, How::Up).await.unwrap_or_else(|error| panic!("{made} and {also}: {error}"));
            assert_at(&client, schema, 125, "two rows").await;
        }
        for number in [0, -5] {
            let client = lab.client().await;
            let schema = format!("nothing_{}", i32::abs(number));
            let made = format!(
                "CREATE SCHEMA {schema}; CREATE TABLE {schema}.dbos_migrations (version bigint NOT NULL PRIMARY KEY);
                INSERT INTO {schema}.dbos_migrations VALUES ({number})"
            );
            client.batch_execute(&made).await.expect("made");
            lab.ready(&schema, How::UpTo108).await.unwrap_or_else(|error| panic!("{number}: {error}"));
            assert_at(&client, &schema, 108, "a row that counts nothing").await;
        }
    });
}

#[test]
fn what_others_have_made_under_a_name_of_the_schema_is_named_and_nothing_is_written() {
    with_database(|lab| async move {
        let client = lab.client().await;
        for (n, (made, named)) in [
            ("TABLE s.queues (id int)", "table queues"),
            ("TABLE s.\"streams\" (id int)", "table streams"),
            ("VIEW s.workflow_status AS SELECT 1 AS x", "view workflow_status"),
            ("VIEW s.dbos_migrations AS SELECT 1 AS x", "view dbos_migrations"),
            ("SEQUENCE s.workflow_input", "sequence workflow_input"),
            ("TYPE s.notifications AS ENUM ('a')", "type notifications"),
            ("FUNCTION s.send_message() RETURNS int LANGUAGE sql AS 'SELECT 1'", "function send_message"),
        ]
        .into_iter()
        .enumerate()
        {
            let schema = format!("own_{n}");
            let made = format!("CREATE SCHEMA {schema}; CREATE {}", made.replace("s.", &format!("{schema}.")));
            client.batch_execute(&made).await.expect("made");
            let count = format!("SELECT count(*) FROM pg_class WHERE relnamespace = '{schema}'::regnamespace");
            let before = value(&client, &count).await;
            let refused = lab.ready(&schema, How::Up).await.expect_err(named);
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
            assert!(text(&refused).contains(named) && text(&refused).contains(&schema), "{refused}");
            assert_eq!(value(&client, &count).await, before, "{named}");
        }
        client.batch_execute("CREATE SCHEMA own; CREATE TABLE own.orders (id int)").await.expect("made");
        lab.ready("own", How::Up).await.expect("another name is in nobody's way");
    });
}

#[test]
fn inputs_go_to_their_own_table_where_a_later_number_has_taken_the_columns_of_the_row() {
    with_database(|lab| async move {
        lab.ready("dbos", How::Up).await.expect("made");
        let client = lab.client().await;
        let later = "ALTER TABLE dbos.workflow_status DROP COLUMN inputs, DROP COLUMN output, DROP COLUMN error;
            UPDATE dbos.dbos_migrations SET version = 126";
        client.batch_execute(later).await.expect("dropped");
        let store = open(&lab, |config| config.payload_layout(PayloadLayout::Inline)).await.expect("opened");
        let submit = Submit::new("w", "work", "of w", Place::queue("q")).app("shop").input("[1]");
        let reply = store.submit(submit).await.expect("submitted");
        assert!(matches!(reply, UnitReply::Done { .. }), "{reply:?}");
        let input = "SELECT inputs FROM dbos.workflow_input WHERE workflow_uuid = 'w'";
        assert_eq!(value(&client, input).await, "[1]");
    });
}

/// Opens a database of some encoding, and demands to be refused where that cannot hold every text.
async fn of_encoding(lab: &Lab, encoding: &str, is_opened: bool) {
    let Err(refused) = open(lab, |config| config).await else {
        assert!(is_opened, "{encoding} was opened");
        return;
    };
    assert!(!is_opened && refused.kind() == ErrorKind::Unsupported, "{encoding}: {refused}");
    assert!(text(&refused).contains(encoding) && text(&refused).contains("UTF8"), "{refused}");
    let made = "SELECT FROM pg_namespace WHERE nspname IN ('dbos', 'mainstay')";
    assert!(rows(&lab.client().await, made).await.is_empty(), "{encoding}");
}

#[test]
fn a_database_of_an_encoding_that_cannot_hold_every_text_is_refused() {
    let Some(server) = mainstay_pgkit::server() else { return };
    let env = Env::system("schema").expect("a thread");
    for (encoding, is_opened) in [("LATIN1", false), ("EUC_JP", false), ("SQL_ASCII", true), ("UTF8", true)] {
        let clause = format!("TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'");
        let lab = Lab { env: env.clone(), database: server.database_with(&clause).expect("a database") };
        let opening = env.tasks().spawn("test", async move { of_encoding(&lab, encoding, is_opened).await });
        block_on(opening).expect("the test to end well");
    }
}
