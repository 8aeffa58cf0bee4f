//! Statements that the server itself ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mainstay::{ErrorKind, Invocation};
use mainstay_env::{BoxFuture, Clock, Env, Monotonic, Timestamp, block_on};
use mainstay_pgkit::Proxy;
use mainstay_pgkit::proxy::{Kind, Message};
use mainstay_postgres::{Config, Postgres};
use mainstay_store::{Place, Store, StoreClock, WorkflowStore};

use super::support::{self, JOB, Marks, ORDERS, count, fresh_database, ids, launch, shop, submit, until};

/// How much faster time passes for a process of these tests, so that its patience of half a minute is over soon.
const FAST: u32 = 6;

/// A clock whose time passes faster than the machine's.
#[derive(Debug)]
struct Fast(Arc<dyn Clock>);

impl Clock for Fast {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic(self.0.monotonic().0 * FAST)
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        self.0.sleep_until(Monotonic(at.0 / FAST))
    }
}

/// After which time the server ends a statement.
const ENDED: Duration = Duration::from_millis(50);

/// As often as a caller's write may be sent in his half minute, when each try is ended after [`ENDED`] and followed by a pause:
/// at first of 50 ms, then twice as long each time up to a second, since somebody waits, and all a quarter shorter by jitter.
fn most_tries() -> usize {
    let (mut at, mut pause, mut tries) = (Duration::ZERO, Duration::from_millis(50), 0);
    while at <= Duration::from_secs(30) {
        tries += 1;
        at += ENDED * FAST + pause.mul_f64(0.75).min(Duration::from_secs(1));
        pause = (pause * 2).min(Duration::from_secs(5));
    }
    tries
}

/// Begins the name of a role whose statements end after [`ENDED`].
const ROLE: &str = "mainstay_hurried";

/// What the server says to a read that it refuses: the first answer that is not that of a line cut before.
///
/// Lines whose sessions have just been ended stay in the pool until the news of it arrives, and a read of the bare
/// store that goes out on one of them says so, once for each.
async fn first_answer(env: &Env, store: &Postgres) -> mainstay_store::StoreError {
    let begun = env.monotonic();
    loop {
        let read = store.workflow_rows(&["w0".into()]).await.expect_err("it is not answered");
        if read.kind() != mainstay_store::ErrorKind::Unavailable {
            return read;
        }
        assert!(env.monotonic().since(begun) < Duration::from_secs(60), "no line to the server: {read:?}");
    }
}

#[test]
fn case_o16_statements_that_the_server_ends_are_sent_a_few_times_and_then_told_of() {
    let Some(database) = fresh_database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    let role = format!("{ROLE}_{}", std::process::id());
    let mut admin = database.server().client();
    admin.run(&format!("CREATE ROLE {role} LOGIN SUPERUSER"));
    let url = proxy.url(&database).replace("postgres@", &format!("{role}@"));
    block_on(async {
        let env = Env::system("fast").expect("a thread");
        let env = env.with_clock(Arc::new(Fast(env.clock().clone())));
        let opened = Postgres::open(&env, Config::new(url), StoreClock::Server).await;
        let bare = Arc::new(opened.expect("a store"));
        let store: Arc<dyn Store> = bare.clone();
        let marks = Marks::default();
        let builder = shop(&store, &marks, Duration::ZERO);
        // Times of the fast clock, so that leases are beaten as often as everywhere.
        let usual = |settings: mainstay::Settings| {
            settings.tick(Duration::from_secs(2)).beat(Duration::from_secs(2)).ttl(Duration::from_secs(60))
        };
        let engine = launch(builder.settings(usual)).await;
        let direct = support::open(&database.url(), |config| config).await;
        // A launch on a busy machine may take longer than any of its statements has from here on.
        admin.run(&format!("ALTER ROLE {role} SET statement_timeout = {}", ENDED.as_millis()));
        database.terminate_sessions();
        submit(&direct, &ids("w", 1), || Place::queue(ORDERS)).await;
        let handle = engine.handle_by_id::<()>("w0");
        handle.result().timeout(Duration::from_secs(60)).await.expect("it has run");
        // A session that was being opened while the role was changed has ended by now, too.
        database.terminate_sessions();
        let mut client = database.client();

        // Whoever looks at the table waits for as long as this transaction is open.
        client.run("BEGIN; LOCK TABLE dbos.workflow_status IN ACCESS EXCLUSIVE MODE");
        let bare = first_answer(&env, &bare).await;
        assert_eq!(bare.kind(), mainstay_store::ErrorKind::Timeout, "{bare:?}");
        assert!(format!("{bare:?}").contains("statement_timeout"), "{bare:?}");
        proxy.reset_counts();
        let read = handle.row().await.expect_err("it is ended by the server");
        assert_eq!(read.kind(), ErrorKind::Unavailable, "{}", read.message());
        let begun = env.monotonic();
        let start = engine.start(Invocation::named(JOB)).id("late").queue(ORDERS).await.expect_err("so is this");
        let took = env.monotonic().since(begun);
        assert_eq!(start.kind(), ErrorKind::Unavailable, "{}", start.message());
        assert!(format!("{start:?}").contains("statement_timeout"), "{start:?}");
        assert!(took < Duration::from_secs(45), "told after {took:?}");
        // A try prepares or runs each statement that knows of the units that may write once.
        let is_try = |message: &&Message| {
            matches!(message.kind(), Kind::Parse | Kind::Execute) && message.sql().contains("mainstay.good")
        };
        let mut times = BTreeMap::<String, usize>::new();
        for message in proxy.messages().iter().filter(is_try) {
            *times.entry(message.sql().to_owned()).or_default() += 1;
        }
        let sent = times.into_values().max().unwrap_or(0);
        assert!((2..=most_tries()).contains(&sent), "tried {sent} times, not up to {}, in {took:?}", most_tries());
        client.run("COMMIT");

        // The engine has waited, and goes on.
        submit(&direct, &ids("more", 20), || Place::queue(ORDERS)).await;
        until(store.env(), "the others run", || count(&mut client, "status = 'SUCCESS'") >= 21).await;
        assert_eq!(marks.doubles(), Vec::new());
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
    drop(proxy);
    admin.run(&format!("DROP ROLE {role}"));
}
