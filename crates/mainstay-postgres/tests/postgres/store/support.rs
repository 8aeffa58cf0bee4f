//! Databases with the whole schema, and stores on them.

use std::future::Future;
use std::time::Duration;

use mainstay_env::{Env, block_on};
use mainstay_pgkit::{Client, Database, Server, Template};
use mainstay_postgres::{Config, Postgres};
use mainstay_store::{Store, StoreClock};

/// What a template is made of, as the key of it.
fn key() -> String {
    let steps = mainstay_migrations::POSTGRES.iter().chain(mainstay_migrations::OWN);
    mainstay_pgkit::template_key("ladder125", steps.map(|step| step.checksum))
}

/// The environment of a test.
pub(crate) fn env() -> Env {
    Env::system("test").expect("a thread")
}

/// A database with the whole schema; nothing where there is no server.
pub(crate) fn database() -> Option<Database> {
    Some(database_on(&mainstay_pgkit::server()?))
}

/// The same on a given server.
pub(crate) fn database_on(server: &Server) -> Database {
    if let Template::Build(build) = server.template(&key()).expect("a template") {
        let url = build.url();
        block_on(async {
            let opened = Postgres::open(&env(), Config::new(url), StoreClock::Server).await.expect("a schema");
            drop(opened);
        });
        build.finish().expect("a template");
    }
    server.database_like(&key())
}

/// Runs a test on a store of its own.
pub(crate) fn with_store<F: Future<Output = ()>>(body: impl FnOnce(Postgres, Database) -> F) {
    let Some(database) = database() else { return };
    block_on(async {
        let store = open(&database, |config| config).await;
        body(store, database).await;
    });
}

/// A store on a database.
pub(crate) async fn open(database: &Database, set: impl FnOnce(Config) -> Config) -> Postgres {
    open_at(database.url(), set).await
}

/// A store by an address, such as that of a proxy.
pub(crate) async fn open_at(url: String, set: impl FnOnce(Config) -> Config) -> Postgres {
    Postgres::open(&env(), set(Config::new(url)), StoreClock::Server).await.expect("a store")
}

/// Waits until a question has this answer.
pub(crate) async fn until(store: &Postgres, client: &mut Client, ask: &str, answer: &str) {
    let end = store.env().deadline(Duration::from_secs(20));
    while client.value(ask) != answer {
        assert!(store.env().monotonic() < end, "{ask} is {}", client.value(ask));
        store.env().sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until so many sessions wait for a lock that another holds.
pub(crate) async fn until_waiting(store: &Postgres, client: &mut Client, sessions: usize) {
    let ask = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until(store, client, ask, &sessions.to_string()).await;
}
