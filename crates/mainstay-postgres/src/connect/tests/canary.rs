//! A password that goes through every failing path, and is looked for in all that anybody could see.

use std::fmt::{Debug, Write};
use std::net::TcpListener;
use std::sync::{Mutex, OnceLock, PoisonError};

use mainstay_pgkit::shown;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::certificates::{Age, Authority};
use super::{block, connector, env, start};
use crate::config::Config;

const CANARY: &str = "CANARY-7f3a";

static SEEN: Mutex<String> = Mutex::new(String::new());

/// Keeps every field of every span and event of the process, at every level.
struct Keeper;

struct Fields;

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(seen, "{field}={value:?}").expect("a text takes all");
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Fields);
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn listen() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| tracing::subscriber::set_global_default(Keeper).expect("no other subscriber"));
}

#[test]
fn the_password_is_in_no_error_no_log_line_and_no_debug_text() {
    listen();
    let authority = Authority::new();
    let options = authority.issue("other", &["other.example"], Age::Current).options();
    let Some(server) = start(options.hba("host all all all scram-sha-256")) else { return };
    server.client().run("CREATE ROLE known LOGIN PASSWORD 'another'");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (port, quiet) = (server.port(), silent.local_addr().expect("bound").port());
    let root = authority.path("root.crt").display().to_string();
    let urls = [
        format!("mysql://u:{CANARY}@h/d"),
        format!("postgres://u:{CANARY}%@h/d"),
        format!("postgres://u:{CANARY}%00@h/d"),
        format!("postgres://u:{CANARY}%ff@h/d"),
        format!("postgres://u:x/{CANARY}@h/d"),
        format!("postgres://u:x?{CANARY}@[h/d"),
        format!("postgres://u:a/b?{CANARY}=1@h/d"),
        format!("postgres://u:x@{CANARY}@h/d?port=x"),
        format!("postgres://h/d?{CANARY}=1"),
        format!("postgres://h/d?password={CANARY}&port=x"),
        format!("postgres://h/d?password={CANARY}&sslmode={CANARY}"),
        format!("postgres://u:{CANARY}@h:{CANARY}/d"),
        format!("postgres://u:{CANARY}@h:1,h:2/d?hostaddr={CANARY}"),
        format!("password={CANARY} {CANARY}"),
        format!("password='{CANARY}"),
        format!("password={CANARY} service=x"),
        format!("password={CANARY} sslpassword={CANARY}"),
        format!("password={CANARY} sslrootcert=/{CANARY}"),
        format!("host=h sslcert=/{CANARY} password={CANARY}"),
        format!("postgres://u:{CANARY}@nowhere.invalid/d"),
        format!("postgres://known:{CANARY}@127.0.0.1:{port}/postgres"),
        format!("postgres://{CANARY}:{CANARY}@127.0.0.1:{port}/{CANARY}"),
        format!("postgres://known:{CANARY}@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert={root}"),
        format!("postgres://known:{CANARY}@127.0.0.1:{port}/postgres?sslmode=require&channel_binding=require"),
        format!("postgres://known:{CANARY}@127.0.0.1:{port}/postgres?options=--{CANARY}%3D1"),
        format!("postgres://u:{CANARY}@127.0.0.1:{quiet}/d?connect_timeout=1"),
        format!("postgres://u:{CANARY}@127.0.0.1:1/d?sslmode=require"),
        format!("postgres://u:{CANARY}@%2F{CANARY}/d"),
    ];
    let env = env();
    for url in urls {
        let config = Config::new(&*url);
        let mut text = format!("{config:?} {config:#?}");
        let error = match connector(&env, &config, &[("PGPASSWORD", CANARY)]) {
            Ok(connector) => {
                write!(text, "{connector:?}").expect("a text takes all");
                block(&env, async move { connector.connect_or_create().await.expect_err("refused") })
            }
            Err(error) => error,
        };
        text += &shown(&error);
        assert!(!text.contains("CANARY") && !text.contains("7f3a"), "{url}: {text}");
    }
    let far = Config::new(format!("postgres://u:{CANARY}@192.0.2.1/d?connect_timeout=1"));
    let far = connector(&env, &far, &[]).expect("read");
    drop(block(&env, async move { far.connect().await.map(drop) }));
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(seen.contains("its identity is not verified"), "nothing was captured: {seen}");
    assert!(!seen.contains("CANARY") && !seen.contains("192.0.2.1"), "{seen}");
}
