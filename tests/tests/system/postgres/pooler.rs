//! PgBouncer between, which shares server connections between transactions.

use std::time::Duration;

use mainstay::postgres::{self, Config};
use mainstay_env::block_on;
use mainstay_pgkit::proxy::{End, Message, Rule};
use mainstay_pgkit::{Client, Options, PgBouncer, Proxy, Server};
use mainstay_store::Place;

use super::suite;
use super::support::{self, Marks, ORDERS, count, database_on, ids, launch, own_server, shop, submit, until};

/// Connections of the pooler to its server.
const SESSIONS: usize = 3;

/// A server and a pooler that has fewer connections to it than clients have to the pooler.
fn pooled() -> Option<(Server, PgBouncer)> {
    let server = own_server(Options::new())?;
    let bouncer = PgBouncer::before_with(&server, &[("default_pool_size", &SESSIONS.to_string())])?;
    Some((server, bouncer))
}

/// What a server says of prepared statements that are not there, or there already.
fn confusions(server: &Server) -> Vec<String> {
    let log = server.log();
    let is_one = |line: &&str| line.contains("prepared statement") && line.contains("exist");
    log.lines().filter(is_one).map(str::to_owned).collect()
}

#[test]
fn case_o17_the_facade_works_through_a_pooler_of_transactions() {
    let Some((server, bouncer)) = pooled() else { return };
    let database = server.database();
    block_on(async {
        // The schema is made through the pooler too, and another process works beside this one.
        let set = |config: Config| config.pooler(true).pool(8);
        let store = support::open(&bouncer.url(&database), set).await;
        let marks = Marks::default();
        let other = support::open(&bouncer.url(&database), set).await;
        let beside = launch(shop(&other, &marks, Duration::ZERO)).await;
        submit(&other, &ids("w", 100), || Place::queue(ORDERS)).await;
        suite::run(&store, "facade").await;
        let mut client = database.client();
        until(store.env(), "the other's rows", || count(&mut client, "name = 'job' AND status = 'SUCCESS'") == 100)
            .await;
        assert_eq!(marks.doubles(), Vec::new());
        beside.shutdown(Duration::from_secs(5)).await.expect("an end");
        let held = client.value("SELECT count(*) FROM pg_prepared_statements");
        assert_eq!(held, "0");
    });
    let sessions = bouncer.console().rows("SHOW SERVERS");
    assert!((1..=SESSIONS).contains(&sessions.len()), "the clients shared {} connections", sessions.len());
    assert_eq!(confusions(&server), [""; 0]);
}

/// A transaction that keeps from others the server's session in which statements are prepared.
fn take_session_with_statements(url: &str) -> Client {
    let mut others = Vec::new();
    loop {
        let mut client = Client::connect(url).expect("a client of the pooler");
        client.run("BEGIN");
        if client.value("SELECT count(*) FROM pg_prepared_statements") != "0" {
            return client;
        }
        others.push(client);
        assert!(others.len() < SESSIONS, "nothing is prepared anywhere");
    }
}

#[test]
fn case_o17_a_store_that_is_not_told_of_the_pooler_says_what_to_set() {
    let Some((server, bouncer)) = pooled() else { return };
    let database = database_on(&server);
    block_on(async {
        let opened = postgres::open(Config::new(bouncer.url(&database)).pool(1).silent()).await;
        let message = match opened {
            Err(error) => error.message().to_owned(),
            Ok(store) => {
                let ask = || async { store.workflow_rows(&["none".into()]).await };
                ask().await.expect("whatever it needs is prepared where it is asked");
                let taken = take_session_with_statements(&bouncer.url(&database));
                let error = ask().await.expect_err("nothing is prepared in another session");
                drop(taken);
                error.to_string()
            }
        };
        assert!(message.contains("pooler(true)"), "{message}");
    });
}

#[test]
fn case_o18_nothing_of_a_session_is_needed_and_hints_fall_back_to_polling() {
    let Some((server, bouncer)) = pooled() else { return };
    let database = database_on(&server);
    let proxy = Proxy::to_port(bouncer.port()).expect("a proxy");
    block_on(async {
        let marks = Marks::default();
        let store = support::open(&proxy.url(&database), |config| config.pooler(true)).await;
        let engine = launch(shop(&store, &marks, Duration::ZERO)).await;
        // Nobody tells this engine of them: another process put them there.
        let other = support::open(&bouncer.url(&database), |config| config.pooler(true).silent()).await;
        for round in 0..3 {
            submit(&other, &ids(&format!("w{round}-"), 10), || Place::queue(ORDERS)).await;
            let what = format!("round {round} is found by polling");
            support::within(store.env(), 3 * support::POLL, &what, || marks.len() == 10 * (round + 1)).await;
        }
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
    let of_a_session = |message: &&Message| {
        let sql = message.sql().trim_start().to_ascii_uppercase();
        let kept = ["LISTEN", "SET ENABLE", "SET JIT", "PREPARE", "DISCARD", "SELECT PG_ADVISORY_LOCK"];
        message.runs() && kept.iter().any(|word| sql.starts_with(word))
    };
    let sent = proxy.messages();
    let kept: Vec<&Message> = sent.iter().filter(of_a_session).collect();
    assert!(!sent.is_empty() && kept.is_empty(), "{kept:?}");
    assert!(!bouncer.log().contains("unsupported startup parameter"), "{}", bouncer.log());
}

#[test]
fn case_o18_a_migrator_that_dies_behind_a_pooler_is_in_nobodys_way() {
    let Some((server, bouncer)) = pooled() else { return };
    block_on(async {
        for number in [1, 2, 3, 5, 8, 13, 21] {
            let database = server.database();
            let proxy = Proxy::to_port(bouncer.port()).expect("a proxy");
            let rule = Rule::message(number, |message| message.runs()).cut_after(End::Close);
            let fired = proxy.script(rule);
            // It may come through, when the cut was at the very end, or of another connection.
            let died = postgres::open(Config::new(proxy.url(&database)).pooler(true)).await.is_err();
            if !fired.has_fired() {
                assert!(!died, "it failed without a cut");
                break;
            }
            let marks = Marks::default();
            let store = support::open(&bouncer.url(&database), |config| config.pooler(true)).await;
            let engine = launch(shop(&store, &marks, Duration::ZERO)).await;
            submit(&store, &ids("w", 5), || Place::queue(ORDERS)).await;
            until(store.env(), "they run", || marks.len() == 5).await;
            engine.shutdown(Duration::from_secs(5)).await.expect("an end");
            let version = database.client().value("SELECT string_agg(version::text, ',') FROM dbos.dbos_migrations");
            assert_eq!(version, "125", "after a death at message {number}");
        }
    });
}
