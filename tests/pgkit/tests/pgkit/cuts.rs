//! The proxy's script: cut before or after a message, and what the database has then.

use mainstay_pgkit::proxy::{End, Kind, Rule};
use mainstay_pgkit::{Client, Database, Proxy, server};
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;

const SOON: Duration = Duration::from_secs(10);

struct Stand {
    database: Database,
    proxy: Proxy,
}

impl Stand {
    fn new() -> Option<Self> {
        let server = server()?;
        let database = server.database();
        database.client().run("CREATE TABLE t (a int)");
        let proxy = Proxy::before(&server).expect("a proxy");
        Some(Self { database, proxy })
    }

    fn client(&self) -> Client {
        Client::connect(&self.proxy.url(&self.database)).expect("through the proxy")
    }

    fn rows(&self) -> String {
        self.database.client().value("SELECT coalesce(string_agg(a::text, ',' ORDER BY a), '') FROM t")
    }
}

#[test]
fn a_commit_that_is_cut_before_the_server_leaves_nothing() {
    let Some(stand) = Stand::new() else { return };
    let fired = stand.proxy.script(Rule::commit(2).cut_before(End::Close));
    let mut client = stand.client();
    client.run("BEGIN");
    client.run("INSERT INTO t VALUES (1)");
    client.run("COMMIT");
    assert!(!fired.has_fired());
    client.run("BEGIN; INSERT INTO t VALUES (2)");
    assert!(client.query("COMMIT").is_err());
    fired.wait_blocking(SOON);
    assert_eq!(stand.rows(), "1");
    assert_eq!(stand.proxy.counts().commits, 1);
}

#[test]
fn a_commit_that_is_cut_after_the_server_is_kept_and_not_answered() {
    let Some(stand) = Stand::new() else { return };
    let fired = stand.proxy.script(Rule::commit(1).cut_after(End::Close));
    let mut client = stand.client();
    client.run("BEGIN; INSERT INTO t VALUES (1)");
    assert!(client.query("COMMIT").is_err());
    fired.wait_blocking(SOON);
    assert_eq!(stand.rows(), "1");
    assert_eq!(stand.client().value("SELECT count(*) FROM t"), "1", "the next connection is whole");
}

#[tokio::test]
async fn a_prepared_statement_is_known_when_it_is_executed_and_cut_on_either_side() {
    let Some(stand) = Stand::new() else { return };
    for (end, kept) in [(true, ""), (false, "2")] {
        let (client, connection) = tokio_postgres::connect(&stand.proxy.url(&stand.database), NoTls).await.expect("it");
        let driven = tokio::task::spawn(connection);
        let insert = client.prepare("INSERT INTO t VALUES ($1)").await.expect("a statement");
        let runs = Rule::message(1, |message| message.kind() == Kind::Execute && message.sql().starts_with("INSERT"));
        let rule = if end { runs.cut_before(End::Reset) } else { runs.cut_after(End::Reset) };
        let mut fired = stand.proxy.script(rule);
        let error = client.execute(&insert, &[&2]).await.expect_err("the line is cut");
        assert!(error.as_db_error().is_none(), "the server said nothing: {error}");
        assert!(fired.wait().await);
        assert_eq!(stand.rows(), kept);
        assert!(driven.await.expect("the driver").is_err(), "a reset is an error of the connection");
    }
}

#[test]
fn a_delayed_message_comes_later_and_a_rule_that_is_taken_back_never_fires() {
    let Some(stand) = Stand::new() else { return };
    let mut client = stand.client();
    let fired = stand.proxy.script(Rule::commit(1).delay(Duration::from_millis(200)));
    let begun = Instant::now();
    client.run("BEGIN; COMMIT");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert!(fired.has_fired());
    let never = stand.proxy.script(Rule::commit(1).cut_before(End::Close));
    stand.proxy.clear_script();
    client.run("BEGIN; COMMIT");
    assert!(!never.has_fired());
}

#[tokio::test]
async fn round_trips_answers_and_transactions_are_counted_apart() {
    let Some(stand) = Stand::new() else { return };
    let (client, connection) = tokio_postgres::connect(&stand.proxy.url(&stand.database), NoTls).await.expect("it");
    let driven = tokio::task::spawn(connection);
    let insert = client.prepare("INSERT INTO t VALUES ($1)").await.expect("a statement");
    stand.proxy.reset_counts();
    client.execute(&insert, &[&1]).await.expect("a row");
    let counts = stand.proxy.counts();
    assert_eq!((counts.round_trips, counts.answers, counts.transactions), (1, 1, 1));
    assert_eq!((counts.of(Kind::Bind), counts.of(Kind::Execute), counts.of(Kind::Sync)), (1, 1, 1));
    client.batch_execute("BEGIN").await.expect("a block");
    client.execute(&insert, &[&2]).await.expect("a row");
    client.batch_execute("COMMIT").await.expect("its end");
    let counts = stand.proxy.counts();
    assert_eq!((counts.round_trips, counts.answers, counts.transactions, counts.commits), (4, 4, 2, 1));
    let names: Vec<String> = stand.proxy.messages().iter().map(|m| format!("{:?} {}", m.kind(), m.sql())).collect();
    assert_eq!(names.last().map(String::as_str), Some("Query COMMIT"), "{names:?}");
    stand.proxy.reset_counts();
    // The first write is held at the proxy, so that all three are on their way before the first answer.
    let held = stand.proxy.script(Rule::message(1, |message| message.runs()).delay(Duration::from_millis(100)));
    let (one, two, three) = tokio::join!(
        client.query_one("SELECT 1", &[]),
        client.batch_execute("SELECT 2"),
        client.batch_execute("SELECT 3")
    );
    assert!(one.is_ok() && two.is_ok() && three.is_ok() && held.has_fired());
    let counts = stand.proxy.counts();
    assert!(counts.round_trips < counts.answers && counts.answers >= 3, "{counts:?}");
    drop(client);
    driven.await.expect("the driver").expect("an end in order");
}

#[test]
fn an_error_of_the_server_passes_and_is_counted() {
    let Some(stand) = Stand::new() else { return };
    let error = stand.client().query("SELECT 1/0").expect_err("a division");
    assert_eq!(error.sqlstate(), Some("22012"));
    assert_eq!(stand.proxy.counts().errors, 1);
}
