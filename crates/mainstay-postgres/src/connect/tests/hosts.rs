//! Which server of several is taken, and what a server that does not answer costs.

use std::io::Write;
use std::net::{IpAddr, TcpListener};
use std::time::Duration;

use mainstay_pgkit::Options;
use mainstay_store::{ErrorKind, StoreError};

use super::super::settings::SessionKind;
use super::{ask, block, connector, env, start, value};
use crate::config::Config;

const PORT: &str = "SHOW port";

#[test]
fn case_o49_sockets_ports_and_names_reach_the_server() {
    let Some(server) = start(Options::new()) else { return };
    let env = env();
    let port = server.port().to_string();
    let folder = server.socket_folder().display().to_string();
    let encoded = folder.replace('/', "%2F");
    for url in [
        format!("postgres://postgres@127.0.0.1:{port}/postgres"),
        format!("postgresql://postgres@{encoded}:{port}/postgres"),
        format!("postgres:///postgres?host={folder}&port={port}&user=postgres"),
        format!("host={folder} port={port} user=postgres"),
        format!("host = nowhere.invalid hostaddr=127.0.0.1 port={port}"),
        format!("postgres://nowhere.invalid:1,127.0.0.1:{port}/postgres"),
    ] {
        assert_eq!(value(&env, &url, PORT).unwrap_or_else(|error| panic!("{url}: {error}")), port);
    }
    let config = Config::new("").application_name("from config");
    let variables =
        [("PGHOST", folder.as_str()), ("PGPORT", &port), ("PGAPPNAME", "x"), ("PGOPTIONS", "-c work_mem=7MB")];
    let connector = connector(&env, &config, &variables).expect("read");
    let query = "SELECT concat_ws(' ', current_setting('application_name'), current_setting('work_mem'))";
    let answer = block(&env, async move { super::ask(connector.connect().await.expect("connected"), query).await });
    assert_eq!(answer, "from config 7MB");
}

#[test]
fn case_o49_an_address_in_brackets_reaches_the_server_by_ipv6() {
    if let Err(error) = TcpListener::bind("[::1]:0") {
        let _ = writeln!(std::io::stderr(), "skipped: this machine has no IPv6: {error}");
        return;
    }
    let Some(server) = start(Options::new().setting("listen_addresses", "127.0.0.1,::1")) else { return };
    let (env, port) = (env(), server.port());
    for url in [
        format!("postgres://postgres@[::1]:{port}/postgres"),
        format!("postgres://postgres@127.0.0.1:1,[::1]:{port}/postgres"),
        format!("host=::1 port={port} user=postgres"),
        format!("host=nowhere.invalid hostaddr=::1 port={port} user=postgres"),
    ] {
        let peer = value(&env, &url, "SELECT host(inet_server_addr())");
        assert_eq!(peer.unwrap_or_else(|error| panic!("{url}: {error}")), "::1", "{url}");
    }
}

#[test]
fn case_o49_a_password_of_odd_characters_is_sent_as_it_is() {
    const PASSWORD: &str = "a!b@c$d()e*_,/:;=?@ff[]22";
    // Before 14 a password is kept in a form that SCRAM cannot check, unless this is set.
    let options = Options::new().setting("password_encryption", "scram-sha-256");
    let Some(server) = start(options.hba("host all all all scram-sha-256")) else { return };
    server.client().run(&format!("CREATE ROLE odd LOGIN PASSWORD '{PASSWORD}'"));
    let env = env();
    let port = server.port();
    let encoded: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for url in [
        format!("postgres://odd:{encoded}@127.0.0.1:{port}/postgres"),
        format!("host=127.0.0.1 port={port} user=odd dbname=postgres password={PASSWORD}"),
        format!("postgres://odd@127.0.0.1:{port}/postgres?password={encoded}"),
    ] {
        assert_eq!(value(&env, &url, "SELECT current_user").expect("connected"), "odd");
    }
    let error = value(&env, &format!("postgres://odd:wrong@127.0.0.1:{port}/postgres"), PORT).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(error.to_string(), "open: denied: 28P01: password authentication failed for user \"***\"");
    let error = value(&env, &format!("postgres://odd@127.0.0.1:{port}/postgres"), PORT).expect_err("refused");
    assert!(error.kind() == ErrorKind::Denied && error.to_string().contains("password missing"), "{error}");
}

#[test]
fn case_o15_a_session_of_the_kind_asked_for_is_found_among_several_servers() {
    let Some(writes) = start(Options::new()) else { return };
    let reads = start(Options::new().setting("default_transaction_read_only", "on")).expect("started");
    let env = env();
    let of = |servers: [&mainstay_pgkit::Server; 2], wanted: &str| {
        let [first, second] = servers.map(mainstay_pgkit::Server::port);
        value(
            &env,
            &format!("postgres://127.0.0.1:{first},127.0.0.1:{second}/postgres?target_session_attrs={wanted}"),
            PORT,
        )
    };
    let (w, r) = (writes.port().to_string(), reads.port().to_string());
    assert_eq!(of([&reads, &writes], "any").expect("connected"), r);
    assert_eq!(of([&reads, &writes], "read-write").expect("connected"), w);
    assert_eq!(of([&writes, &reads], "read-only").expect("connected"), r);
    assert_eq!(of([&writes, &reads], "primary").expect("connected"), w);
    assert_eq!(of([&writes, &reads], "prefer-standby").expect("connected"), w);
    let error = of([&writes, &reads], "standby").expect_err("none");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("host 2 of 2: its session is not standby"), "{error}");
}

#[test]
fn case_o15_a_standby_is_passed_over_until_it_is_promoted() {
    let Some(primary) = start(Options::new()) else { return };
    let standby = primary.standby().expect("a standby");
    let env = env();
    let (p, s) = (primary.port(), standby.port());
    let of = |wanted: &str| {
        let url = format!("postgres://127.0.0.1:{s},127.0.0.1:{p}/postgres?target_session_attrs={wanted}");
        value(&env, &url, PORT).map_err(|error| error.kind())
    };
    for (wanted, port) in [("read-write", p), ("primary", p), ("standby", s), ("prefer-standby", s), ("read-only", s)] {
        assert_eq!(of(wanted), Ok(port.to_string()), "{wanted}");
    }
    primary.stop_immediate();
    assert_eq!(of("read-write"), Err(ErrorKind::Unavailable));
    standby.promote().expect("promoted");
    assert_eq!(of("read-write"), Ok(s.to_string()));
}

#[test]
fn random_order_takes_each_server_and_falls_back_to_one_that_answers() {
    let Some(first) = start(Options::new()) else { return };
    let second = start(Options::new()).expect("started");
    let env = env();
    let url =
        format!("postgres://127.0.0.1:{},127.0.0.1:{}/postgres?load_balance_hosts=random", first.port(), second.port());
    let mut seen: Vec<String> = (0..40).map(|_| value(&env, &url, PORT).expect("connected")).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 2);
    second.stop_immediate();
    assert!((0..5).all(|_| value(&env, &url, PORT).expect("connected") == first.port().to_string()));
}

#[test]
fn an_address_that_never_answers_takes_nothing_from_the_next_one_of_its_name() {
    let Some(server) = start(Options::new()) else { return };
    let silent = TcpListener::bind(("127.0.0.2", server.port())).expect("the same port of another address");
    let env = env();
    let url = format!("postgres://postgres@localhost:{}/postgres?connect_timeout=2", server.port());
    let connector = connector(&env, &Config::new(url), &[]).expect("read");
    let began = env.monotonic();
    let answer = block(&env, async move {
        let target = &connector.settings.targets[0];
        let found = connector.addresses("localhost", 1).await.expect("addresses of this machine");
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
        let addresses = ["127.0.0.2", "127.0.0.1"].map(|address| address.parse().expect("an address"));
        let connected = connector.attempt_each(target, &addresses, "postgres", SessionKind::Any).await;
        ask(connected.expect("the second address answers"), PORT).await
    });
    let took = env.monotonic().0.saturating_sub(began.0);
    assert_eq!(answer, server.port().to_string());
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(4), "{took:?}");
    drop(silent);
}

#[test]
fn an_address_that_refuses_the_login_ends_the_search_and_one_that_refuses_the_line_does_not() {
    let Some(server) = start(Options::new()) else { return };
    let env = env();
    let url = format!("postgres://postgres@localhost:{}/none?connect_timeout=2", server.port());
    let connector = connector(&env, &Config::new(url), &[]).expect("read");
    let failures = block(&env, async move {
        let target = &connector.settings.targets[0];
        let addresses = ["127.0.0.2", "127.0.0.1", "127.0.0.3"].map(|address| address.parse().expect("an address"));
        let missing = connector.attempt_each(target, &addresses, "none", SessionKind::Any).await;
        let closed = connector.attempt_each(target, &addresses[..1], "none", SessionKind::Any).await;
        let none = connector.attempt_each(target, &[], "none", SessionKind::Any).await;
        [missing, closed, none].map(|result| result.expect_err("no connection").into_error())
    });
    let kinds = [ErrorKind::NotFound, ErrorKind::Unavailable, ErrorKind::Unavailable];
    assert_eq!(failures.each_ref().map(StoreError::kind), kinds, "{failures:?}");
    assert!(failures[1].to_string().contains("refused"), "{failures:?}");
}

#[test]
fn a_server_that_never_answers_ends_at_the_limit() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("bound").port();
    let env = env();
    for mode in ["disable", "require"] {
        let began = env.monotonic();
        let url = format!("postgres://127.0.0.1:{port}/d?connect_timeout=1&sslmode={mode}");
        let error = value(&env, &url, PORT).expect_err("silent");
        let took = env.monotonic().0.saturating_sub(began.0);
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Unavailable, "open: unavailable: no connection within 2 s")
        );
        assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(4), "{took:?}");
    }
}
