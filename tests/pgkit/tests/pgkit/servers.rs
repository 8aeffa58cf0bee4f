//! Private servers: what they forget, what they keep, and that none outlives its owner.

use mainstay_pgkit::{Client, Options, Server, own_server as private};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// In a process that a test starts in order to kill it.
const VICTIM: &str = "MAINSTAY_PGKIT_VICTIM";

fn await_true(what: &str, mut test: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !test() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_restarted_at_once_keeps_its_port_and_what_was_committed() {
    let Some(server) = private(Options::new().durable()) else { return };
    let database = server.database();
    database.client().run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    let mut open = database.client();
    open.run("BEGIN; INSERT INTO t VALUES (2)");
    let port = server.port();
    server.restart_immediate();
    assert_eq!(server.port(), port);
    assert!(open.query("COMMIT").is_err(), "the session is gone");
    assert_eq!(Client::connect(&database.url()).expect("by TCP").value("SELECT string_agg(a::text, ',') FROM t"), "1");
    assert!(server.log().contains("was not properly shut down"), "{}", server.log());
}

#[test]
fn a_stopped_server_refuses_connections_until_it_is_started_again() {
    let Some(server) = private(Options::new()) else { return };
    server.stop();
    assert!(Client::connect(server.url()).is_err() && server.try_client("postgres").is_err());
    server.start_again().expect("again");
    assert_eq!(server.client().value("SELECT 1"), "1");
    assert!(server.start_again().is_err(), "it runs already");
}

#[test]
fn settings_files_and_access_rules_reach_the_server() {
    let options = Options::new()
        .setting("work_mem", "7MB")
        .file("extra.conf", "note")
        .hba("host all postgres 127.0.0.1/32 reject");
    let Some(server) = private(options) else { return };
    assert_eq!(server.client().value("SHOW work_mem"), "7MB");
    assert_eq!(server.client().value("SHOW fsync"), "off");
    assert_eq!(server.client().value("SELECT pg_read_file('extra.conf')"), "note");
    let error = Client::connect(server.url()).expect_err("TCP is refused");
    assert_eq!(error.sqlstate(), Some("28000"));
}

#[test]
fn a_server_that_cannot_start_says_what_its_log_says() {
    let Some(_) = private(Options::new()) else { return };
    let error = Server::start(Options::new().setting("shared_buffers", "none")).expect_err("no such size");
    assert!(error.to_string().contains("shared_buffers"), "{error}");
}

#[test]
fn a_dropped_server_leaves_neither_process_nor_folder() {
    let Some(server) = private(Options::new()) else { return };
    let (folder, url) = (server.data_folder(), server.url().to_owned());
    let clone = server.clone();
    drop(server);
    assert_eq!(clone.client().value("SELECT 1"), "1");
    drop(clone);
    assert!(Client::connect(&url).is_err() && !folder.parent().expect("a folder").exists());
}

#[test]
fn a_killed_process_leaves_neither_server_nor_folder() {
    if std::env::var_os(VICTIM).is_some() {
        let server = Server::start(Options::new()).expect("a private server");
        println!("{VICTIM} {} {}", server.url(), server.data_folder().display());
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    if private(Options::new()).is_none() {
        return;
    }
    let this = std::env::current_exe().expect("this program");
    let test = "servers::a_killed_process_leaves_neither_server_nor_folder";
    let mut command = Command::new(this);
    let mut victim = command
        .args(["--exact", test, "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let lines = BufReader::new(victim.stdout.take().expect("its output")).lines().map_while(Result::ok);
    let told = lines.into_iter().find_map(|line| line.split_once(VICTIM).map(|(_, rest)| rest.trim().to_owned()));
    let told = told.expect("a URL and a folder");
    let (url, folder) = told.split_once(' ').expect("two words");
    assert!(Client::connect(url).is_ok(), "it serves while its owner lives");
    victim.kill().expect("a kill");
    victim.wait().expect("its end");
    await_true("the folder stays", || !Path::new(folder).parent().expect("a folder").exists());
    assert!(Client::connect(url).is_err());
}

#[test]
fn a_standby_follows_refuses_writes_and_takes_over() {
    let Some(primary) = private(Options::new()) else { return };
    let standby = primary.standby().expect("a standby");
    primary.client().run("CREATE TABLE t (a int)");
    await_true("the table arrives", || standby.client().query("SELECT * FROM t").is_ok());
    let refused = standby.client().query("INSERT INTO t VALUES (1)").expect_err("it only reads");
    assert_eq!(refused.sqlstate(), Some("25006"));
    standby.promote().expect("a promotion");
    standby.client().run("INSERT INTO t VALUES (1)");
}
