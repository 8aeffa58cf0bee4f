//! Codes that a real server can be brought to answer, and faults of the transport.

use mainstay_env::Env;
use mainstay_pgkit::Options;
use mainstay_store::ErrorKind;
use tokio_postgres::{Client, Error};

use super::{Connected, block, connector, env, start, value};
use crate::config::Config;
use crate::error::{failed, is_connection, is_undefined, kind};

/// A session whose connection is polled by a task.
fn session(env: &Env, url: &str) -> Client {
    let connector = connector(env, &Config::new(url), &[]).expect("read");
    let Connected { client, mut messages } = block(env, async move { connector.connect().await.expect("connected") });
    let polled = async move { while let Some(Ok(_)) = futures_util::StreamExt::next(&mut messages).await {} };
    drop(env.tasks().spawn("connection", polled));
    client
}

fn run(env: &Env, client: &std::sync::Arc<Client>, sql: &str) -> Result<(), Error> {
    let (client, sql) = (client.clone(), sql.to_owned());
    block(env, async move { client.batch_execute(&sql).await })
}

#[test]
fn codes_of_a_real_server_have_their_kinds() {
    let Some(server) = start(Options::new()) else { return };
    let url = server.url();
    let env = env();
    let client = std::sync::Arc::new(session(&env, url));
    run(
        &env,
        &client,
        "CREATE ROLE app; CREATE TABLE t (id text PRIMARY KEY, r text REFERENCES t); INSERT INTO t VALUES ('a')",
    )
    .expect("a table");
    // Code, statements, kind, the connection goes, the transaction is worth another try.
    for (code, sql, expected, drops) in [
        ("57014", "SET statement_timeout = 20; SELECT pg_sleep(5)", ErrorKind::Timeout, false),
        ("25006", "BEGIN READ ONLY; DELETE FROM t", ErrorKind::Unavailable, true),
        ("25P02", "BEGIN; SELECT 1/0", ErrorKind::Bug, true),
        ("42501", "SET ROLE app; SELECT * FROM t", ErrorKind::Denied, false),
        ("22021", "SELECT convert_from('\\x00'::bytea, 'UTF8')", ErrorKind::Invalid, false),
        ("22P05", "SELECT '\"\\u0000\"'::jsonb ->> 0", ErrorKind::Invalid, false),
        ("22P02", "SELECT '{'::jsonb", ErrorKind::Invalid, false),
        (
            "54000",
            "INSERT INTO t SELECT string_agg(md5(n::text), '') FROM generate_series(1, 500) n",
            ErrorKind::Invalid,
            false,
        ),
        ("23505", "INSERT INTO t VALUES ('a')", ErrorKind::Contended, false),
        ("23503", "INSERT INTO t VALUES ('b', 'none')", ErrorKind::Contended, false),
        ("23502", "INSERT INTO t VALUES (NULL)", ErrorKind::Invalid, false),
        ("42P01", "SELECT * FROM nothing", ErrorKind::Corrupt, false),
        ("42703", "SELECT nothing FROM t", ErrorKind::Corrupt, false),
        ("42883", "SELECT nothing()", ErrorKind::Corrupt, false),
        ("3F000", "CREATE TABLE nothing.t ()", ErrorKind::Corrupt, false),
        ("42601", "SELEC", ErrorKind::Bug, false),
        ("26000", "EXECUTE nothing", ErrorKind::Unsupported, true),
        ("0A000", "SELECT id FROM t UNION SELECT '2' FOR UPDATE", ErrorKind::Unsupported, false),
    ] {
        let mut result = run(&env, &client, sql);
        if code == "25P02" {
            assert!(result.is_err());
            result = run(&env, &client, "SELECT 1");
        }
        let error = result.expect_err(code);
        drop(run(&env, &client, "ROLLBACK"));
        drop(run(&env, &client, "RESET ALL"));
        drop(run(&env, &client, "RESET ROLE"));
        assert_eq!(error.code().map(|code| code.code()), Some(code), "{sql}: {error:?}");
        assert_eq!((kind(&error), is_connection(&error)), (expected, drops), "{code}");
        assert_eq!(is_undefined(&error), ["42P01", "42703", "42883", "3F000"].contains(&code), "{code}");
        let shown = failed("commit", error).to_string();
        assert!(shown.starts_with(&format!("commit: {expected}: {code}: ")), "{shown}");
        assert!(!shown.contains("(a)") && !shown.contains("Key"), "DETAIL is shown: {shown}");
    }
}

#[test]
fn locks_and_deadlocks_are_contended_and_worth_another_try() {
    let Some(server) = start(Options::new().setting("deadlock_timeout", "20ms")) else { return };
    let env = env();
    let [first, second] = [0, 1].map(|_| std::sync::Arc::new(session(&env, server.url())));
    run(&env, &first, "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)")
        .expect("a table");
    run(&env, &first, "BEGIN; UPDATE t SET n = 1 WHERE id = 1").expect("locked");
    let error = run(&env, &second, "SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT").expect_err("locked");
    assert_eq!((error.code().map(|code| code.code()), kind(&error)), (Some("55P03"), ErrorKind::Contended));
    assert!(!is_connection(&error));
    run(&env, &second, "BEGIN; UPDATE t SET n = 1 WHERE id = 2").expect("locked");
    let (sender, receiver) = std::sync::mpsc::channel();
    let waiting = first.clone();
    drop(
        env.tasks()
            .spawn("waits", async move { sender.send(waiting.batch_execute("UPDATE t SET n = 1 WHERE id = 2").await) }),
    );
    let mine = run(&env, &second, "UPDATE t SET n = 1 WHERE id = 1");
    if mine.is_err() {
        drop(run(&env, &second, "ROLLBACK"));
    }
    let theirs = receiver.recv().expect("ended");
    let error = mine.err().or(theirs.err()).expect("one of them is the victim");
    assert_eq!((error.code().map(|code| code.code()), kind(&error)), (Some("40P01"), ErrorKind::Contended));
    drop(run(&env, &first, "ROLLBACK"));
    drop(run(&env, &second, "ROLLBACK"));
    run(&env, &first, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM t").expect("a snapshot");
    run(&env, &second, "UPDATE t SET n = 5").expect("changed");
    let error = run(&env, &first, "UPDATE t SET n = 6").expect_err("a stale snapshot");
    assert_eq!((error.code().map(|code| code.code()), kind(&error)), (Some("40001"), ErrorKind::Contended));
}

#[test]
fn case_o07_a_session_that_is_ended_is_not_used_again() {
    let Some(server) = start(Options::new()) else { return };
    let env = env();
    let client = std::sync::Arc::new(session(&env, server.url()));
    let error = run(&env, &client, "SELECT pg_terminate_backend(pg_backend_pid())").expect_err("ended");
    assert_eq!((kind(&error), is_connection(&error)), (ErrorKind::Unavailable, true), "{error:?}");
    let error = run(&env, &client, "SELECT 1").expect_err("closed");
    assert!(kind(&error) == ErrorKind::Unavailable && is_connection(&error) && error.code().is_none());
    server.stop_immediate();
    let error = value(&env, server.url(), "SELECT 1").expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn a_server_without_a_free_connection_is_unavailable() {
    let options = Options::new().setting("max_connections", "5").setting("superuser_reserved_connections", "0");
    let Some(server) = start(options.setting("max_wal_senders", "0")) else { return };
    let env = env();
    let mut held = Vec::new();
    let error = loop {
        let connector = connector(&env, &Config::new(server.url()), &[]).expect("read");
        match block(&env, async move { connector.connect().await }) {
            Ok(connected) => held.push(connected),
            Err(error) => break error,
        }
        assert!(held.len() < 10);
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("53300"), "{error}");
}

#[test]
fn a_prepared_statement_that_a_change_of_its_table_outlived_is_prepared_anew_elsewhere() {
    let Some(server) = start(Options::new()) else { return };
    let env = env();
    let client = std::sync::Arc::new(session(&env, server.url()));
    run(&env, &client, "CREATE TABLE t (id int); INSERT INTO t VALUES (1)").expect("a table");
    let shared = client.clone();
    let statement = block(&env, async move { shared.prepare("SELECT * FROM t").await }).expect("prepared");
    run(&env, &client, "ALTER TABLE t ADD COLUMN n int").expect("changed");
    let error = block(&env, async move { client.query(&statement, &[]).await }).expect_err("stale");
    assert_eq!(
        (kind(&error), is_connection(&error), is_undefined(&error)),
        (ErrorKind::Contended, true, true),
        "{error:?}"
    );
}
