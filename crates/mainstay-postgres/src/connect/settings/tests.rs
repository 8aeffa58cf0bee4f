//! Tests of what is decided from an address and an environment.

use super::*;

fn read(address: &str, variables: &[(&str, &str)]) -> Result<Settings, FieldError> {
    let variables = variables.iter().copied().chain([("USER", "os-user")]);
    Settings::read(&Secret::new(address.into()), None, &Environment::of(variables))
}

fn servers(address: &str, variables: &[(&str, &str)]) -> String {
    let settings = read(address, variables).unwrap_or_else(|error| panic!("{address}: {error}"));
    let shown = settings.targets.iter().map(|target| match &target.place {
        Place::Tcp(name, None) => format!("{name}:{}", target.port),
        Place::Tcp(name, Some(address)) => format!("{name}@{address}:{}", target.port),
        Place::Unix(folder) => format!("{}:{}", folder.display(), target.port),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn case_o49_servers_are_those_that_libpq_would_try() {
    for (address, expected) in [
        ("", "/var/run/postgresql:5432 /tmp:5432 localhost:5432"),
        ("postgres:///db", "/var/run/postgresql:5432 /tmp:5432 localhost:5432"),
        ("postgres:///db?host=/sock/dir", "/sock/dir:5432"),
        ("postgres://%2Fsock:77/db", "/sock:77"),
        ("postgres://[::1]:5432/db", "::1:5432"),
        ("postgres://h1:1,h2:2/db", "h1:1 h2:2"),
        ("postgres://h1:1,h2/db", "h1:1 h2:5432"),
        ("host=h1,h2 port=9", "h1:9 h2:9"),
        ("host=h1,h2 hostaddr=10.0.0.1,::1 port=1,2", "h1@10.0.0.1:1 h2@::1:2"),
        ("hostaddr=10.0.0.1", "10.0.0.1@10.0.0.1:5432"),
        ("host=,h2", "/var/run/postgresql:5432 h2:5432"),
    ] {
        assert_eq!(servers(address, &[]), expected, "{address}");
    }
    assert_eq!(servers("", &[("PGHOST", "e1,e2"), ("PGPORT", "1,2")]), "e1:1 e2:2");
    let port = [("PGPORT", "7777")];
    assert_eq!(servers("postgres://h1,h2/d", &port), "h1:5432 h2:5432");
    assert_eq!(servers("postgres://h1/d", &port), "h1:7777");
    assert_eq!(servers("host=h1,h2", &port), "h1:7777 h2:7777");
}

#[test]
fn a_part_that_is_wrong_is_named_and_not_shown() {
    for (address, field) in [
        ("host=a,b port=1,2,3", "url.port"),
        ("port=70000", "url.port"),
        ("port=0", "url.port"),
        ("host=a,b hostaddr=10.0.0.1", "url.hostaddr"),
        ("hostaddr=CANARY", "url.hostaddr"),
        ("host=@CANARY", "url.host"),
        ("connect_timeout=CANARY", "url.connect_timeout"),
        ("keepalives_idle=CANARY", "url.keepalives_idle"),
        ("target_session_attrs=CANARY", "url.target_session_attrs"),
        ("load_balance_hosts=CANARY", "url.load_balance_hosts"),
        ("channel_binding=CANARY", "url.channel_binding"),
        ("client_encoding=CANARY", "url.client_encoding"),
        ("gssencmode=require", "url.gssencmode"),
        ("sslmode=CANARY", "url.sslmode"),
        ("service=CANARY", "url.service"),
        ("sslpassword=CANARY", "url.sslpassword"),
    ] {
        let error = read(address, &[]).expect_err(address);
        assert_eq!(error.field, field, "{address}: {error}");
        assert!(!error.to_string().contains("CANARY"), "{error}");
    }
}

#[test]
fn an_empty_word_or_number_is_refused_and_an_empty_name_is_none() {
    let said = [("PGSSLMODE", "require"), ("PGGSSENCMODE", "disable")];
    for key in [
        "sslmode",
        "gssencmode",
        "target_session_attrs",
        "load_balance_hosts",
        "channel_binding",
        "sslnegotiation",
        "sslcertmode",
        "sslsni",
        "connect_timeout",
        "keepalives",
        "keepalives_idle",
        "keepalives_interval",
        "keepalives_count",
        "tcp_user_timeout",
    ] {
        for address in [format!("postgres://u@h/d?{key}="), format!("host=h {key}=''")] {
            assert_eq!(read(&address, &said).expect_err(&address).field, format!("url.{key}"));
        }
        let variable = crate::connect::keys::find(key).expect("a key").variable;
        if !variable.is_empty() {
            assert_eq!(read("host=h", &[(variable, "")]).expect_err(variable).field, variable);
        }
    }
    let empty = "host='' port='' user='' dbname='' password='' passfile='' options='' sslrootcert='' sslcert=''";
    assert_eq!(servers(empty, &[]), servers("", &[]));
    let variables = ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD"];
    let settings = read("", &variables.map(|name| (name, ""))).expect("defaults");
    assert_eq!((settings.user.as_str(), settings.database.as_str()), ("os-user", "os-user"));
}

#[test]
fn the_old_variable_asks_for_tls_where_no_mode_is_said() {
    use crate::connect::tls::Mode;
    let mode = |address, variables: &[_]| read(address, variables).map(|settings| settings.tls.mode);
    assert_eq!(mode("host=h", &[("PGREQUIRESSL", "1")]).expect("read"), Mode::Require);
    assert_eq!(mode("host=h", &[("PGREQUIRESSL", "0")]).expect("read"), Mode::Prefer);
    assert_eq!(mode("host=h sslmode=allow", &[("PGREQUIRESSL", "1")]).expect("read"), Mode::Allow);
    assert_eq!(mode("host=h", &[("PGREQUIRESSL", "1"), ("PGSSLMODE", "disable")]).expect("read"), Mode::Disable);
    let weak = mode("host=h sslrootcert=system", &[("PGREQUIRESSL", "1")]).expect_err("weak");
    assert_eq!(weak.field, "PGREQUIRESSL");
}

#[test]
fn names_come_from_the_address_then_the_environment_then_the_system() {
    let names = |address: &str, variables: &[(&str, &str)]| {
        let settings = read(address, variables).expect("read");
        (settings.user, settings.database, settings.application.unwrap_or_default())
    };
    let three = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
    assert_eq!(names("", &[]), three("os-user", "os-user", ""));
    assert_eq!(names("user=u", &[]), three("u", "u", ""));
    assert_eq!(names("postgres:///my%20db?user=u", &[("PGAPPNAME", "app")]), three("u", "my db", "app"));
    assert_eq!(names("fallback_application_name=f", &[("PGDATABASE", "d"), ("PGUSER", "e")]), three("e", "d", "f"));
    let address = Secret::new("application_name=url".into());
    let settings = Settings::read(&address, Some("config"), &Environment::of([("USER", "u")])).expect("read");
    assert_eq!(settings.application.as_deref(), Some("config"));
    let error = Settings::read(&address, Some("a\0b"), &Environment::of([("USER", "u")])).expect_err("a NUL");
    assert_eq!(error.to_string(), "application_name: contains a NUL character");
}

#[test]
fn a_version_of_tls_is_read_in_any_case_of_letters() {
    for version in ["tlsv1.2", "TLSV1.2", "TLSv1.2", ""] {
        let address = format!("host=h ssl_min_protocol_version='{version}' ssl_max_protocol_version=TLSV1.3");
        assert!(read(&address, &[("PGSSLMINPROTOCOLVERSION", "")]).is_ok(), "{version}");
    }
    let error = read("host=h ssl_min_protocol_version=tlsv1.4", &[]).expect_err("no such version");
    let known = "url.ssl_min_protocol_version: must be one of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3";
    assert_eq!(error.to_string(), known);
}

#[test]
fn limits_are_read_as_libpq_reads_them() {
    let patience = |address| read(address, &[]).expect("read").patience.as_secs();
    assert_eq!(patience(""), 10);
    assert_eq!((patience("connect_timeout=1"), patience("connect_timeout=7")), (2, 7));
    assert_eq!((patience("connect_timeout=0"), patience("connect_timeout=-1")), (120, 120));
    let keepalive =
        read("keepalives=0 keepalives_idle=5 keepalives_count=3 tcp_user_timeout=1500", &[]).expect("read").keepalive;
    assert!(!keepalive.on && keepalive.count == Some(3) && keepalive.interval == Some(Duration::from_secs(5)));
    assert_eq!(
        (keepalive.idle, keepalive.user_timeout),
        (Some(Duration::from_secs(5)), Some(Duration::from_millis(1500)))
    );
}

#[cfg(unix)]
#[test]
fn a_password_file_gives_each_server_its_own_password() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("home");
    let path = home.path().join(".pgpass");
    std::fs::write(&path, "h1:1:db:u:one\nlocalhost:*:db:u:local\n/tmp:*:db:u:tmp\n/sock:*:db:u:sock\n")
        .expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("mode");
    let passwords = |address: &str, variables: &[(&str, &str)]| {
        let settings = read(address, variables).expect("read");
        let shown =
            |target: &Target| target.password.as_ref().map_or("-".to_owned(), |secret| secret.reveal().to_owned());
        settings.targets.iter().map(shown).collect::<Vec<_>>().join(" ")
    };
    let home_variable = [("HOME", home.path().to_str().expect("utf-8"))];
    assert_eq!(passwords("postgres://u@h1:1,h2:2/db", &home_variable), "one -");
    assert_eq!(passwords("postgres://u@/db", &home_variable), "local local local");
    let folders = "user=u dbname=db host=/var/run/postgresql,/tmp,/sock,/other";
    assert_eq!(passwords(folders, &home_variable), "local tmp sock -");
    assert_eq!(passwords("postgres://u:own@h1:1/db", &home_variable), "own");
    assert_eq!(passwords("postgres://u@h1:1/db", &[("PGPASSFILE", path.to_str().expect("utf-8"))]), "one");
    assert_eq!(passwords("postgres://u@h1:1/db", &[home_variable[0], ("PGPASSWORD", "variable")]), "variable");
    assert_eq!(passwords("postgres://u@h1:1/db", &[]), "-");
}

#[test]
fn what_leaves_the_machine_is_told_from_what_does_not() {
    let remote = |address| read(address, &[]).expect("read").targets[0].place.is_remote();
    assert!(!remote("host=localhost") && !remote("host=127.0.0.1") && !remote("host=::1") && !remote("host=/tmp"));
    assert!(remote("host=db.example") && remote("host=10.0.0.1") && remote("host=localhost hostaddr=10.0.0.1"));
    assert!(!remote("host=db.example hostaddr=127.0.0.1"));
}

#[test]
fn a_dead_line_is_noticed_within_a_minute_unless_the_address_says_otherwise() {
    let seconds = |n| Some(Duration::from_secs(n));
    let said = read("", &[]).expect("read").keepalive;
    assert!(said.on);
    assert_eq!(
        (said.idle, said.interval, said.count, said.user_timeout),
        (seconds(30), seconds(5), Some(3), seconds(10))
    );
    let left = "keepalives_idle=0 keepalives_interval=0 keepalives_count=0 tcp_user_timeout=0";
    let left = read(left, &[]).expect("read").keepalive;
    assert_eq!((left.idle, left.interval, left.count, left.user_timeout), (None, None, None, None));
}
