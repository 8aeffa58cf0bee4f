//! The proxy's line as a whole: refused, silent, reset, slow and healed.

use mainstay_pgkit::proxy::End;
use mainstay_pgkit::{Client, Database, Proxy, server};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(150);

fn stand() -> Option<(Database, Proxy)> {
    let server = server()?;
    let proxy = Proxy::before(&server).expect("a proxy");
    Some((server.database(), proxy))
}

fn await_true(what: &str, mut test: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !test() {
        assert!(begun.elapsed() < SOON, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A bare session, whose socket shows how it ends.
fn session(database: &Database, proxy: &Proxy) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).expect("the proxy");
    let words = format!("user\0postgres\0database\0{}\0\0", database.name());
    let length = u32::try_from(words.len() + 8).expect("short").to_be_bytes();
    stream.write_all(&[&length[..], &196_608_u32.to_be_bytes(), words.as_bytes()].concat()).expect("a greeting");
    let mut seen = Vec::new();
    while !seen.ends_with(b"Z\0\0\0\x05I") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        seen.push(byte[0]);
    }
    stream.set_read_timeout(Some(SHORT)).expect("a limit");
    stream
}

fn sessions(database: &Database) -> String {
    let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{}'", database.name());
    database.server().client().value(&sql)
}

#[test]
fn a_refused_connection_is_refused_by_the_system_and_open_ones_stay() {
    let Some((database, proxy)) = stand() else { return };
    let mut open = Client::connect(&proxy.url(&database)).expect("before");
    proxy.refuse();
    let refused = || TcpStream::connect(("127.0.0.1", proxy.port())).map_err(|error| error.kind());
    await_true("it is never refused", || matches!(refused(), Err(ErrorKind::ConnectionRefused)));
    assert_eq!(open.value("SELECT 1"), "1");
    proxy.heal();
    await_true("it is refused for ever", || Client::connect(&proxy.url(&database)).is_ok());
}

#[test]
fn a_black_hole_says_nothing_and_gives_up_what_it_held_when_healed() {
    let Some((database, proxy)) = stand() else { return };
    let url = proxy.url(&database);
    let mut open = Client::connect(&url).expect("before");
    proxy.blackhole();
    let (sender, answers) = mpsc::channel();
    let later = sender.clone();
    std::thread::spawn(move || sender.send(open.query("SELECT 'old'")));
    std::thread::spawn(move || later.send(Client::connect(&url).and_then(|mut new| new.query("SELECT 'new'"))));
    assert!(answers.recv_timeout(SHORT).is_err(), "neither answer nor error");
    // The server's end is held too.
    assert_eq!(database.terminate_sessions(), 1);
    assert!(answers.recv_timeout(SHORT).is_err(), "no end comes through");
    proxy.heal();
    let both = [answers.recv_timeout(SOON).expect("one"), answers.recv_timeout(SOON).expect("another")];
    assert_eq!(both.iter().filter(|answer| answer.is_ok()).count(), 1, "{both:?}");
}

#[test]
fn each_way_to_end_looks_to_the_client_as_it_says() {
    let Some((database, proxy)) = stand() else { return };
    for (end, seen) in
        [(End::Close, Ok(0)), (End::Reset, Err(ErrorKind::ConnectionReset)), (End::Silent, Err(ErrorKind::WouldBlock))]
    {
        let mut stream = session(&database, &proxy);
        assert_eq!(sessions(&database), "1");
        proxy.cut_all(end);
        await_true("the server keeps the session", || sessions(&database) == "0");
        assert_eq!(stream.read(&mut [0; 1]).map_err(|error| error.kind()), seen, "{end:?}");
        if end == End::Silent {
            stream.write_all(b"Q\0\0\0\x06;\0").expect("a write into the void");
            proxy.heal();
            stream.set_read_timeout(Some(SOON)).expect("a limit");
            let read = stream.read(&mut [0; 1]).map_err(|error| error.kind());
            assert_eq!(read, Err(ErrorKind::ConnectionReset), "healed, the other side knows of nothing");
        }
    }
    assert_eq!(proxy.open_connections(), 0);
}

#[test]
fn a_slow_line_delays_every_message_until_it_is_healed() {
    let Some((database, proxy)) = stand() else { return };
    let mut client = Client::connect(&proxy.url(&database)).expect("before");
    proxy.delay(Duration::from_millis(100));
    let begun = Instant::now();
    client.run("SELECT 1");
    assert!(begun.elapsed() >= Duration::from_millis(200), "there and back");
    proxy.heal();
    let begun = Instant::now();
    client.run("SELECT 1");
    assert!(begun.elapsed() < Duration::from_millis(100));
}

#[test]
fn a_dropped_proxy_ends_its_connections() {
    let Some((database, proxy)) = stand() else { return };
    let mut stream = session(&database, &proxy);
    drop(proxy);
    stream.set_read_timeout(Some(SOON)).expect("a limit");
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    await_true("the server keeps the session", || sessions(&database) == "0");
}
