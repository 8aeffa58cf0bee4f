//! Six modes against six kinds of servers, each cell as libpq has it: `psql` beside the server is asked the same.

use std::process::Command;

use mainstay_pgkit::{Options, Server};
use mainstay_store::ErrorKind;

use super::certificates::{Age, Authority, Pem, self_signed};
use super::{env, start, url, value};

const IS_ENCRYPTED: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

const MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// What comes of a cell: a plain session, an encrypted one, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Plain,
    Tls,
    Fails,
}

use End::{Fails, Plain, Tls};

fn end(answer: Option<&str>) -> End {
    match answer {
        Some("t") => Tls,
        Some("f") => Plain,
        Some(other) => panic!("{other}"),
        None => Fails,
    }
}

/// What libpq makes of the same address; `None` where there is no `psql`.
fn libpq(server: &Server, url: &str) -> Option<End> {
    let psql = server.binaries().program("psql");
    if !psql.exists() {
        return None;
    }
    let home = tempfile::tempdir().expect("home");
    let mut command = Command::new(psql);
    command.env_clear().env("HOME", home.path()).env("PGCONNECT_TIMEOUT", "10").args([
        "-AtX",
        "-d",
        url,
        "-c",
        IS_ENCRYPTED,
    ]);
    let output = command.output().expect("psql runs");
    let answer = String::from_utf8(output.stdout).expect("utf-8");
    Some(end(output.status.success().then_some(answer.trim())))
}

/// Tries every mode on a server, with what the address says beside it.
fn check(server: &Server, what: &str, beside: &dyn Fn(&str) -> String, expected: [End; 6]) {
    let env = env();
    for (mode, expected) in MODES.iter().zip(expected) {
        let url = url(server, "postgres", "postgres", &format!("sslmode={mode}{}", beside(mode)));
        let answer = value(&env, &url, IS_ENCRYPTED);
        let got = end(answer.as_ref().ok().map(String::as_str));
        assert_eq!(got, expected, "{mode}, {what}: {answer:?}");
        if let Err(error) = answer {
            assert!(matches!(error.kind(), ErrorKind::Denied | ErrorKind::Unavailable), "{mode}, {what}: {error}");
            assert!(!error.to_string().contains("127.0.0.1"), "{error}");
        }
        if let Some(libpq) = libpq(server, &url) {
            assert_eq!(libpq, expected, "libpq: {mode}, {what}");
        }
    }
}

#[test]
fn case_o49_each_mode_meets_each_kind_of_server_as_with_libpq() {
    let authority = Authority::new();
    let root = format!("&sslrootcert={}", authority.path("root.crt").display());
    let client = format!(
        "{root}&sslcert={}&sslkey={}",
        authority.path("client.crt").display(),
        authority.path("client.key").display()
    );
    // As users write it: a root where the mode asks for one. Then a root always, by which weaker modes verify too.
    let asked = |mode: &str| if mode.starts_with("verify") { root.clone() } else { String::new() };
    let always = |_: &str| root.clone();
    let nothing = |_: &str| root.clone();
    let with_client = |_: &str| client.clone();

    let Some(good) = start(authority.issue("db", &NAMES, Age::Current).options()) else { return };
    check(&good, "good", &asked, [Plain, Plain, Tls, Tls, Tls, Tls]);
    check(&good, "good, root", &always, [Plain, Plain, Tls, Tls, Tls, Tls]);

    let other = start(authority.issue("other", &["other.example"], Age::Current).options()).expect("started");
    check(&other, "wrong host", &asked, [Plain, Plain, Tls, Tls, Tls, Fails]);
    check(&other, "wrong host, root", &always, [Plain, Plain, Tls, Tls, Tls, Fails]);

    let own = start(self_signed("localhost", &NAMES, false).options()).expect("started");
    check(&own, "self-signed", &asked, [Plain, Plain, Tls, Tls, Fails, Fails]);
    check(&own, "self-signed, root", &always, [Plain, Plain, Plain, Fails, Fails, Fails]);

    let expired = start(authority.issue("db", &NAMES, Age::Expired).options()).expect("started");
    check(&expired, "expired", &asked, [Plain, Plain, Tls, Tls, Fails, Fails]);
    check(&expired, "expired, root", &always, [Plain, Plain, Plain, Fails, Fails, Fails]);

    let plain = start(Options::new()).expect("started");
    check(&plain, "plain only", &asked, [Plain, Plain, Plain, Fails, Fails, Fails]);

    let pem = authority.issue("db", &NAMES, Age::Current);
    let strict = pem.options().setting("ssl_ca_file", "ca.crt").file("ca.crt", authority.certificate.as_str());
    let strict = start(strict.hba("hostssl all all all cert")).expect("started");
    check(&strict, "client certificate missing", &nothing, [Fails; 6]);
    check(&strict, "client certificate", &with_client, [Fails, Tls, Tls, Tls, Tls, Tls]);
}

#[test]
fn a_host_whose_name_tls_cannot_carry_is_encrypted_but_not_checked_by_name() {
    let authority = Authority::new();
    let root = authority.path("root.crt");
    let pem = authority.issue("db", &NAMES, Age::Current);
    let Some(server) = start(pem.options().hba("hostssl all all all trust")) else { return };
    let env = env();
    let port = server.port();
    for name in ["db-", "-x", "db.1", "127.1", "fe80::1%eth0"] {
        let of = |mode: &str, root: &str| {
            let place = format!("host={name} hostaddr=127.0.0.1 port={port} user=postgres");
            value(&env, &format!("{place} sslmode={mode}{root}"), IS_ENCRYPTED)
        };
        let root = format!(" sslrootcert={}", root.display());
        for (mode, root) in [("allow", ""), ("prefer", ""), ("prefer", &root), ("require", ""), ("verify-ca", &root)] {
            assert_eq!(of(mode, root).unwrap_or_else(|error| panic!("{name}, {mode}: {error}")), "t");
        }
        let error = of("verify-full", &root).expect_err(name);
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("url.host")), "{name}: {error}");
        assert!(error.to_string().contains("verify-full") && !error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_host_whose_name_tls_cannot_carry_is_no_reason_for_a_plain_session() {
    let Some(server) = start(self_signed("localhost", &NAMES, false).options()) else { return };
    let place = format!("host=db- hostaddr=127.0.0.1 port={} user=postgres", server.port());
    assert_eq!(value(&env(), &place, IS_ENCRYPTED).expect("connected"), "t");
}

#[test]
fn the_server_s_own_certificate_may_be_the_root_even_as_an_authority_s() {
    for authority in [false, true] {
        let pem = self_signed("localhost", &NAMES, authority);
        let folder = Authority::new();
        folder.write("server.crt", &pem.certificate);
        let Some(server) = start(pem.options()) else { return };
        let root = format!("&sslrootcert={}", folder.path("server.crt").display());
        check(&server, "own root", &|_| root.clone(), [Plain, Plain, Tls, Tls, Tls, Tls]);
    }
}

#[test]
fn a_common_name_is_the_host_s_only_where_there_are_no_other_names_of_its_kind() {
    let authority = Authority::new();
    let root = format!("&sslrootcert={}", authority.path("root.crt").display());
    for (names, full) in [(&[][..], Tls), (&["other.example"][..], Tls), (&["127.0.0.2"][..], Fails)] {
        let Some(server) = start(authority.issue("127.0.0.1", names, Age::Current).options()) else { return };
        check(&server, "common name", &|_| root.clone(), [Plain, Plain, Tls, Tls, Tls, full]);
    }
}

#[test]
fn what_is_wrong_with_files_and_modes_is_said_before_connecting() {
    let authority = Authority::new();
    authority.write("empty", "");
    authority.write("open.key", &std::fs::read_to_string(authority.path("client.key")).expect("read"));
    std::fs::set_permissions(authority.path("open.key"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .expect("mode");
    let path = |name: &str| authority.path(name).display().to_string();
    let env = env();
    for (query, field) in [
        ("sslmode=verify-full".to_owned(), "url.sslrootcert"),
        ("sslmode=require&sslrootcert=system".to_owned(), "url.sslmode"),
        ("sslmode=prefer&sslnegotiation=direct".to_owned(), "url.sslnegotiation"),
        (format!("sslrootcert={}", path("none")), "url.sslrootcert"),
        (format!("sslrootcert={}", path("empty")), "url.sslrootcert"),
        (format!("sslcert={}", path("client.crt")), "url.sslkey"),
        (format!("sslcert={}&sslkey={}", path("client.crt"), path("open.key")), "url.sslkey"),
        (format!("sslcert={}&sslkey={}", path("client.crt"), path("empty")), "url.sslkey"),
        (format!("sslcert={}&sslkey={}", path("root.crt"), path("client.key")), "url.sslkey"),
        ("ssl_max_protocol_version=TLSv1.1".to_owned(), "url.ssl_max_protocol_version"),
    ] {
        let error = value(&env, &format!("postgres://h/d?{query}"), IS_ENCRYPTED).expect_err(&query);
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)), "{query}: {error}");
        assert!(!error.to_string().contains(&path("")), "{error}");
    }
}

/// A self-signed certificate of X.509 version 1, in force until 2126, as `openssl x509 -req` made them before 3.2.
const VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBJDCBywIUOTWk9tFnDAGRXnRjC+winKuQN1QwCgYIKoZIzj0EAwIwFDESMBAG\n\
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyOTIzNDMyN1oYDzIxMjYxMTA1MjM0MzI3\n\
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n\
AATcL9ujbpMM3z9Xa09+QvSzCrHIUiRMcaxDlxIw+viNvd9mnFeu4dJnZM6EeDDF\n\
VMa3Dm6teP6JZQpH0bh0sAvIMAoGCCqGSM49BAMCA0gAMEUCIQCBv0+f9eRBVmsi\n\
A2knbp/cbNg/ifL45Jf1fC/Em4wi0QIgXhaaf0fjZTNsAzES1gSAYd0i4P7H7MIq\n\
R17J4zGsXoc=\n\
-----END CERTIFICATE-----\n";

const VERSION_1_KEY: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgCSbZxlLInzW4+tEF\n\
rDWCrDF0KCQ7w8sAdyBbTn3bsZWhRANCAATcL9ujbpMM3z9Xa09+QvSzCrHIUiRM\n\
caxDlxIw+viNvd9mnFeu4dJnZM6EeDDFVMa3Dm6teP6JZQpH0bh0sAvI\n\
-----END PRIVATE KEY-----\n";

#[test]
fn a_certificate_of_version_1_encrypts_but_cannot_be_verified() {
    let pem = Pem { certificate: VERSION_1.into(), key: VERSION_1_KEY.into() };
    let folder = Authority::new();
    folder.write("server.crt", VERSION_1);
    let Some(server) = start(pem.options()) else { return };
    let env = env();
    assert_eq!(
        value(&env, &url(&server, "postgres", "postgres", "sslmode=require"), IS_ENCRYPTED).expect("connected"),
        "t"
    );
    let root = format!("sslmode=verify-ca&sslrootcert={}", folder.path("server.crt").display());
    let error = value(&env, &url(&server, "postgres", "postgres", &root), IS_ENCRYPTED).expect_err("not verified");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}
