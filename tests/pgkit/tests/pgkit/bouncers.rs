//! PgBouncer: that it pools by transaction, which is what the tests behind it rely on.

use mainstay_pgkit::{Client, PgBouncer, server};

#[test]
fn one_server_connection_serves_two_clients_between_their_transactions() {
    let Some(server) = server() else { return };
    let Some(_) = PgBouncer::before(&server) else { return };
    let program = PgBouncer::program().expect("it is installed");
    let pooler = PgBouncer::start(&program, &server, &[("default_pool_size", "1")]).expect("a pool of one");
    let database = server.database();
    let connect =
        || Client::connect(&pooler.url(&database)).unwrap_or_else(|error| panic!("{error}: {}", pooler.log()));
    let (mut one, mut two) = (connect(), connect());
    let pid = one.value("SELECT pg_backend_pid()");
    assert_eq!(two.value("SELECT pg_backend_pid()"), pid);
    one.run("BEGIN; CREATE TABLE t (a int); COMMIT");
    assert_eq!(two.value("SELECT count(*) FROM t"), "0");
    assert!(!pooler.console().rows("SHOW POOLS").is_empty());
}

#[test]
fn a_pooler_that_cannot_start_says_why() {
    let Some(server) = server() else { return };
    let Some(_) = PgBouncer::before(&server) else { return };
    let program = PgBouncer::program().expect("it is installed");
    let error = PgBouncer::start(&program, &server, &[("pool_mode", "never")]).expect_err("no such mode");
    assert!(error.to_string().contains("pool_mode"), "{error}");
}
