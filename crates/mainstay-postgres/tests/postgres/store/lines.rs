//! Lines to the server that go dead, are held up, or cannot be had.

use std::time::Duration;

use futures_util::future::{join, join3};
use mainstay_env::block_on;
use mainstay_pgkit::proxy::{End, Rule};
use mainstay_pgkit::{Database, Proxy};
use mainstay_postgres::{Config, Postgres};
use mainstay_store::{
    ErrorKind, Place, Result, Store, StoreClock, StoreError, Submit, Unit, WorkflowStore, WriteStore,
};

use crate::store::claim::{APP, Q, WORK};
use crate::store::support::{self, until_waiting};

/// Longer than any call of these tests may take.
const LONG: Duration = Duration::from_secs(20);
const SECOND: Duration = Duration::from_secs(1);

fn job(id: &str) -> Unit {
    Unit::new().effect(Submit::new(id, WORK, format!("t-{id}"), Place::queue(Q)).app(APP).input("[1]"))
}

async fn opened(config: Config) -> Result<Postgres> {
    let env = support::env();
    let opening = Postgres::open(&env, config, StoreClock::Server);
    env.timeout(LONG, opening).await.expect("opening ends")
}

/// A store by way of a proxy, with a limit of its calls.
async fn behind(proxy: &Proxy, database: &Database, pool: u32, limit: Duration) -> Postgres {
    let config = Config::new(proxy.url(database)).silent().pool(pool).call_timeout(limit);
    opened(config).await.expect("a store")
}

async fn read(store: &Postgres) -> Result<()> {
    let ids = ["none".into()];
    store.env().timeout(LONG, store.workflow_rows(&ids)).await.expect("a call ends").map(drop)
}

#[test]
fn a_call_time_of_zero_is_refused_by_name() {
    let Some(server) = mainstay_pgkit::server() else { return };
    block_on(async {
        let error = opened(Config::new(server.url()).call_timeout(Duration::ZERO)).await.expect_err("no time");
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("call_timeout")), "{error}");
    });
}

#[test]
fn a_call_waits_for_a_busy_connection_where_no_further_one_is_to_be_had() {
    let Some(database) = support::database() else { return };
    let role = format!("mainstay_two_{}", std::process::id());
    let mut admin = database.client();
    admin.run(&format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT 2; GRANT postgres TO {role}"));
    block_on(async {
        let url = database.url().replace("postgres@", &format!("{role}@"));
        let store = opened(Config::new(url).silent().pool(4)).await.expect("a store");
        admin.run("BEGIN; LOCK TABLE dbos.workflow_status IN ACCESS EXCLUSIVE MODE");
        let (a, b, c) = ([job("a")], [job("b")], [job("c")]);
        let calls = join3(store.commit(&a), store.commit(&b), store.commit(&c));
        let freed = async {
            // Longer than a call waits when there is no connection at all.
            store.env().sleep(Duration::from_secs(3)).await;
            admin.run("COMMIT");
        };
        let ((a, b, c), ()) = join(calls, freed).await;
        for committed in [a, b, c] {
            committed.expect("each of the three has had one of the two connections");
        }
    });
    database.terminate_sessions();
    database.server().client().run(&format!("DROP ROLE {role}"));
}

#[test]
fn opening_ends_when_its_line_has_gone_dead() {
    let Some(database) = support::database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    let config = || Config::new(proxy.url(&database)).silent().call_timeout(SECOND);
    block_on(async {
        // The first is the one that begins the watch.
        for (part, cut) in [("pg_backend_pid()", false), ("shard_key", false), ("shard_key", true)] {
            let rule = Rule::message(1, move |message| message.sql().contains(part));
            let rule = if cut { rule.cut_after(End::Silent) } else { rule.cut_before(End::Silent) };
            let fired = proxy.script(rule);
            let error = opened(config()).await.expect_err("no answer");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{part}: {error}");
            assert!(fired.has_fired(), "{part}");
            proxy.heal();
        }
        opened(config()).await.expect("a store");
    });
}

#[test]
fn opening_waits_for_as_long_as_the_server_works() {
    let Some(database) = support::database() else { return };
    block_on(async {
        let mut holder = database.client();
        holder.run("BEGIN; LOCK TABLE dbos.dbos_migrations IN ACCESS EXCLUSIVE MODE");
        let env = support::env();
        let freed = async {
            env.sleep(SECOND * 4).await;
            holder.run("COMMIT");
        };
        let (store, ()) = join(opened(Config::new(database.url()).silent().call_timeout(SECOND)), freed).await;
        store.expect("a store");
    });
}

#[test]
fn a_look_at_a_changed_schema_ends_with_the_limit_of_a_call() {
    let Some(database) = support::database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let store = behind(&proxy, &database, 1, SECOND).await;
        read(&store).await.expect("read");
        database.client().run("ALTER TABLE dbos.workflow_status RENAME TO gone");
        let look = proxy.script(Rule::message(1, |m| m.sql().contains("pg_attribute")).cut_before(End::Silent));
        let error: StoreError = read(&store).await.expect_err("no answer");
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(look.has_fired());
    });
}

#[test]
fn after_a_call_without_an_answer_no_line_of_before_is_used() {
    let Some(database) = support::database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let store = behind(&proxy, &database, 3, SECOND * 5).await;
        let mut holder = database.client();
        holder.run("BEGIN; LOCK TABLE dbos.workflow_status IN ACCESS EXCLUSIVE MODE");
        let freed = async {
            until_waiting(&store, &mut database.client(), 3).await;
            holder.run("COMMIT");
        };
        let ((a, b, c), ()) = join(join3(read(&store), read(&store), read(&store)), freed).await;
        a.and(b).and(c).expect("three lines");
        proxy.cut_all(End::Silent);
        let error = read(&store).await.expect_err("no answer");
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        read(&store).await.expect("a new line");
    });
}
