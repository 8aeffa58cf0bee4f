//! Installations in schemas whose names need quoting.

use mainstay::postgres::{self, Config};
use mainstay_env::block_on;

use super::suite;
use super::support::{self, fresh_database};

/// Runs the facade in a schema of this name, beside another one, and looks where its rows are.
fn runs_in(schema: &str) {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    block_on(async {
        let store = support::open(&database.url(), |config| config.schema(schema)).await;
        suite::run(&store, "shop").await;
        let mut client = database.client();
        let quoted = format!("\"{}\"", schema.replace('"', "\"\""));
        let ended = client.value(&format!("SELECT count(*) FROM {quoted}.workflow_status WHERE status = 'SUCCESS'"));
        assert!(ended.parse::<u32>().expect("a number") > 60, "{ended}");
        let literal = schema.replace('\'', "''");
        let ours =
            client.value(&format!("SELECT count(DISTINCT system) FROM mainstay.starts WHERE system = '{literal}'"));
        assert_eq!(ours, "1", "our own rows go by the whole name");
        // Another program calls the function of the schema, by which anybody enqueues.
        let made = client.value(&format!(
            "SELECT {quoted}.enqueue_workflow('double', 'nobody', positional_args => ARRAY['4'::json], \
             workflow_id => 'by-sql')"
        ));
        assert_eq!(made, "by-sql");
        // A second opening finds the schema as it is.
        drop(support::open(&database.url(), |config| config.schema(schema).verify_only()).await);
    });
}

#[test]
fn case_o47_a_schema_with_capitals_and_a_dash() {
    runs_in("My-Schema");
}

#[test]
fn case_o47_a_schema_named_by_a_keyword() {
    runs_in("user");
}

#[test]
fn case_o47_a_schema_that_begins_with_a_digit() {
    runs_in("1abc");
}

#[test]
fn case_o47_a_schema_with_an_accent() {
    runs_in("sch\u{e9}ma");
}

#[test]
fn case_o47_a_schema_with_spaces_and_quotes() {
    runs_in("a schema's \"name\"");
}

#[test]
fn case_o47_a_schema_of_63_bytes() {
    runs_in(&"s".repeat(63));
}

#[test]
fn case_o47_a_schema_of_64_bytes_is_refused_and_not_cut() {
    let Some(database) = fresh_database() else { return };
    for name in ["s".repeat(64), "\u{e9}".repeat(32)] {
        let error = block_on(postgres::open(Config::new(database.url()).schema(&name))).expect_err("too long");
        assert_eq!(error.kind(), mainstay::ErrorKind::Refused);
        assert!(error.message().contains("schema") && error.message().contains("63"), "{}", error.message());
    }
    let made =
        database.client().value("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'sss%' OR nspname LIKE 'éé%'");
    assert_eq!(made, "0");
}
