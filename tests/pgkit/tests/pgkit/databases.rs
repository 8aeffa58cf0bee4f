//! Databases of one test, templates, and the client that looks at tables.

use mainstay_pgkit::{Client, Database, Server, Template, server};

fn exists(server: &Server, database: &str) -> bool {
    !server.client().rows(&format!("SELECT 1 FROM pg_database WHERE datname = '{database}'")).is_empty()
}

#[test]
fn two_databases_are_apart_and_go_with_their_last_handle() {
    let Some(server) = server() else { return };
    let (one, two) = (server.database(), server.database());
    one.client().run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    let error = two.client().query("SELECT * FROM t").expect_err("the table is in the other database");
    assert_eq!(error.sqlstate(), Some("42P01"));
    let names = [one.name().to_owned(), two.name().to_owned()];
    let clone: Database = one.clone();
    drop(one);
    assert_eq!(clone.client().value("SELECT a FROM t"), "1");
    let connected = clone.client();
    drop((clone, two));
    assert!(!names.iter().any(|name| exists(&server, name)), "dropped, although somebody was connected");
    drop(connected);
}

#[test]
fn the_client_reads_text_nulls_and_errors_and_goes_on_after_one() {
    let Some(server) = server() else { return };
    let database = server.database();
    let mut client = Client::connect(&database.url()).expect("by TCP");
    let rows = client.rows("SELECT 1, NULL, 'ä'; SELECT true");
    assert_eq!(rows, [vec![Some("1".into()), None, Some("ä".into())], vec![Some("t".into())]]);
    assert_eq!(client.query("SELECT 1/0").expect_err("a division").sqlstate(), Some("22012"));
    assert_eq!(client.value("SELECT pg_backend_pid()"), client.backend_pid().to_string());
    let error = Client::connect(&server.url_of("nobody_made_this")).expect_err("no such database");
    assert_eq!(error.sqlstate(), Some("3D000"));
}

#[test]
fn terminated_sessions_are_counted_and_told() {
    let Some(server) = server() else { return };
    let database = server.database();
    let mut session = database.client();
    assert_eq!(database.terminate_sessions(), 1);
    assert_eq!(session.query("SELECT 1").expect_err("it was ended").sqlstate(), Some("57P01"));
}

#[test]
fn a_template_is_built_once_and_copied_with_its_rows() {
    let Some(server) = server() else { return };
    let key = format!("kit_{}", std::process::id());
    let Ok(Template::Build(abandoned)) = server.template(&key) else { panic!("nobody built it") };
    drop(abandoned);
    let Ok(Template::Build(build)) = server.template(&key) else { panic!("an abandoned one is begun anew") };
    let mut filling = Client::connect(&build.url()).expect("to fill it");
    filling.run("CREATE TABLE t (a int); INSERT INTO t VALUES (7)");
    build.finish().expect("although somebody is connected");
    assert!(matches!(server.template(&key), Ok(Template::Ready)));
    let (one, two) = (server.database_like(&key), server.database_like(&key));
    one.client().run("DELETE FROM t");
    assert_eq!(two.client().value("SELECT a FROM t"), "7");
    server.client().run(&format!("DROP DATABASE mainstay_template_{key}"));
}

#[test]
fn the_key_of_a_template_cannot_carry_sql() {
    let Some(server) = server() else { return };
    for key in ["", "A", "x; DROP", "x'"] {
        assert!(server.template(key).is_err(), "{key}");
    }
}
