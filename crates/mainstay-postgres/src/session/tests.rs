//! Tests of sessions on a server.

use std::io::{Read, Write, copy};
use std::net::{Shutdown, TcpListener, TcpStream};

use mainstay_env::{Env, block_on};
use mainstay_store::ErrorKind;

use super::*;
use crate::Config;
use crate::connect::Connector;
use crate::identifier::Schema;
use crate::layout::Layout;
use crate::pool::drive;

static MAKE: Text = Text::new("test_make", "CREATE TABLE made (n int)");
static MORE: Text = Text::new("test_more", "CREATE TABLE more (n int)");
static WRONG: Text = Text::new("test_wrong", "-- params: n int\nSELECT $1");

async fn session(env: &Env, url: &str, pooler: bool) -> Session {
    let connected = Connector::new(&Config::new(url), env).expect("a place").connect().await.expect("a connection");
    let driver = drive(env.tasks(), connected.messages, |_| {});
    let layout = Layout { number: 125, split: true, owner: true, consumed_by: true, inline: true };
    let texts = Texts::new(Schema::new("schema", "dbos").expect("a name"), layout, true);
    Session::new(connected.client, driver, Arc::new(texts), pooler, Duration::from_secs(30))
}

#[test]
fn a_statement_that_cannot_be_sent_undoes_those_before_it() {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    block_on(async {
        let env = Env::system("session").expect("a thread");
        for pooler in [false, true] {
            let (place, url) = (env.clone(), database.url());
            let connecting = env.tasks().spawn("connecting", async move { session(&place, &url, pooler).await });
            let mut session = connecting.await.expect("a session");
            let asks = [Ask::new(&MAKE, &[]), Ask::new(&WRONG, &[&"no number"])];
            let fault = session.transaction(&asks).await.expect_err("a text is no number");
            assert_eq!(fault.of("test").kind(), ErrorKind::Bug);
            assert_eq!(database.client().value("SELECT to_regclass('made') IS NULL"), "t", "pooler: {pooler}");
            assert!(!session.is_broken());
            session.transaction(&[Ask::new(&MAKE, &[])]).await.expect("the connection is as it was");
            database.client().run("DROP TABLE made");
        }
    });
}

#[test]
fn lower_limits_of_the_role_stay_and_higher_ones_do_not() {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    for (own, found) in [("200ms", "200ms"), ("1min", "5s"), ("0", "5s")] {
        let mut client = database.client();
        for name in [IDLE, STATEMENT] {
            client.run(&format!("SET {name} = '{own}'"));
        }
        client.run(&limits(Duration::from_secs(5), false));
        for name in [IDLE, STATEMENT] {
            assert_eq!(client.value(&format!("SHOW {name}")), found, "{name} of {own}");
        }
    }
}

/// A line to a server on which a word of the client is another one while that is wanted; answers its port.
fn garbled(env: &Env, port: u16, word: &'static str, other: &'static str, wanted: &Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let here = listener.local_addr().expect("bound").port();
    let (tasks, wanted) = (env.tasks().clone(), wanted.clone());
    let up = move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut server = TcpStream::connect(("127.0.0.1", port)).expect("the server");
        let (mut from, mut to) = (server.try_clone().expect("a line"), client.try_clone().expect("a line"));
        let down = move || copy(&mut from, &mut to).and_then(|_| to.shutdown(Shutdown::Both));
        drop(tasks.thread("down", down).expect("a thread"));
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = client.read(&mut buffer) {
            let said = &mut buffer[..length];
            let found = said.windows(word.len()).position(|part| part == word.as_bytes());
            if let Some(at) = found.filter(|_| wanted.load(Ordering::Relaxed)) {
                said[at..at + word.len()].copy_from_slice(other.as_bytes());
            }
            server.write_all(said).expect("sent");
        }
        server.shutdown(Shutdown::Both)
    };
    drop(env.tasks().thread("up", up).expect("a thread"));
    here
}

#[test]
fn nothing_is_done_where_the_begin_of_a_transaction_is_refused() {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    let made = "SELECT concat(to_regclass('made'), to_regclass('more'))";
    block_on(async {
        let env = Env::system("session").expect("a thread");
        let begin = ("BEGIN ISOLATION", "BEGUN ISOLATION");
        let setting = ("enable_seqscan", "enable_nothing");
        for (pooler, (word, other)) in [(false, begin), (true, begin), (true, setting)] {
            let wanted = Arc::new(AtomicBool::new(false));
            let port = garbled(&env, server.port(), word, other, &wanted);
            let url = format!("postgres://postgres@127.0.0.1:{port}/{}?sslmode=disable", database.name());
            let place = env.clone();
            let connecting = env.tasks().spawn("connecting", async move { session(&place, &url, pooler).await });
            let mut session = connecting.await.expect("a session");
            wanted.store(true, Ordering::Relaxed);
            let asks = [Ask::new(&MAKE, &[]), Ask::new(&MORE, &[])];
            let fault = session.transaction(&asks).await.expect_err("no transaction");
            assert_eq!(fault.of("test").kind(), ErrorKind::Bug, "the server's answer to the BEGIN is told");
            assert_eq!(database.client().value(made), "", "{other}, pooler: {pooler}");
            // On a line of its own the rest was kept from writing, so it is not used again; behind a pooler nothing was sent.
            assert_eq!(session.is_broken(), !pooler);
            if pooler {
                wanted.store(false, Ordering::Relaxed);
                session.transaction(&asks).await.expect("the connection is as it was");
                assert_eq!(database.client().value(made), "mademore");
                database.client().run("DROP TABLE made, more");
            }
        }
    });
}

#[test]
fn a_session_may_still_write_after_a_transaction_that_began() {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    block_on(async {
        let env = Env::system("session").expect("a thread");
        let (place, url) = (env.clone(), database.url());
        let connecting = env.tasks().spawn("connecting", async move { session(&place, &url, false).await });
        let mut session = connecting.await.expect("a session");
        session.begin(&[Ask::new(&MAKE, &[])]).await.expect("begun");
        session.finish(&[]).await.expect("ended");
        session.one(&MORE, &[]).await.expect("a statement of its own");
        database.client().run("DROP TABLE made, more");
    });
}
