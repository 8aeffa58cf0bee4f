//! What operations cost: transactions, round trips and bytes of the write-ahead log, counted on the line and by the server.

use std::collections::BTreeSet;
use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use mainstay::{Ctx, Engine, Invocation, Queue, Settings, Store};
use mainstay_env::block_on;
use mainstay_pgkit::proxy::{Kind, Message};
use mainstay_pgkit::{Client, Database, Options, Proxy};

use super::support::{self, launch};

/// Measurements, of which the cheapest counts: a busy machine only adds to them.
const PARTS: usize = 4;

/// Workflows of one measurement.
const COUNT: u64 = 25;

/// A quiet engine: nothing is sent on its own within a measurement.
fn quiet(settings: Settings) -> Settings {
    let hour = Duration::from_secs(3_600);
    settings.tick(hour).beat(hour).ttl(4 * hour)
}

/// Trips that are no writes: what is told to others, and how a workflow stands, which is asked more often on a busy machine;
/// and what is prepared once for a connection.
fn beside(messages: &[Message]) -> u64 {
    let is_beside =
        |sql: &str| sql.contains("pg_notify") || sql.trim_start().starts_with("SELECT w.workflow_uuid, w.status");
    let (mut trips, mut writes) = (0, BTreeSet::new());
    for message in messages {
        if message.runs() && !is_beside(message.sql()) {
            writes.insert(message.connection());
        }
        let ends = matches!(message.kind(), Kind::Query | Kind::Sync);
        trips += u64::from(ends && !writes.remove(&message.connection()));
    }
    trips
}

/// What one workflow of a measurement cost: trips and transactions of its writes, and all bytes of the log.
#[derive(Debug)]
struct Cost {
    trips: f64,
    transactions: f64,
    wal: f64,
}

/// Everything that is looked at.
struct Bench {
    proxy: Proxy,
    client: Client,
    engine: Engine,
}

impl Bench {
    fn position(&mut self) -> u64 {
        self.client.value("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").parse().expect("a position")
    }

    /// Runs something once to have every statement prepared, then so often that it counts.
    async fn cost<F: Future<Output = ()>>(&mut self, what: &str, run: impl Fn(Engine, String) -> F) -> Cost {
        for n in 0..5 {
            run(self.engine.clone(), format!("{what}-warm-{n}")).await;
        }
        let mut cost = Cost { trips: f64::MAX, transactions: f64::MAX, wal: f64::MAX };
        for part in 0..PARTS {
            self.proxy.reset_counts();
            let before = self.position();
            for n in 0..COUNT {
                run(self.engine.clone(), format!("{what}-{part}-{n}")).await;
            }
            let wal = self.position() - before;
            let counts = self.proxy.counts();
            let beside = beside(&self.proxy.messages());
            let each = |total: u64| total as f64 / COUNT as f64;
            cost.trips = cost.trips.min(each(counts.round_trips.saturating_sub(beside)));
            cost.transactions = cost.transactions.min(each(counts.transactions.saturating_sub(beside)));
            cost.wal = cost.wal.min(each(wal));
        }
        let _ = writeln!(
            std::io::stderr(),
            "{what:<28} {:>6.2} trips {:>6.2} transactions {:>8.0} bytes",
            cost.trips,
            cost.transactions,
            cost.wal
        );
        cost
    }
}

/// A server of its own, whose log is written by nobody else, and an engine before which a proxy counts.
async fn bench(database: &Database) -> Bench {
    let proxy = Proxy::before(database.server()).expect("a proxy");
    let store: Arc<dyn Store> = support::open(&proxy.url(database), |config| config).await;
    let steps = |count: u32| {
        move |ctx: Ctx| async move {
            for n in 0..count {
                ctx.step("s", || async { Ok(n) }).await?;
            }
            Ok(())
        }
    };
    let queue = Queue::new("orders").polling(Duration::from_secs(3_600));
    let builder = Engine::builder(store).app("shop").settings(quiet).queue(queue);
    let builder = builder.function("none", steps(0)).function("one", steps(1)).function("ten", steps(10));
    let engine = launch(builder).await;
    Bench { proxy, client: database.server().client(), engine }
}

/// Starts one and waits for its result.
async fn direct(engine: Engine, name: &'static str, id: String) {
    let handle = engine.start(Invocation::named(name)).id(id).await.expect("a start");
    handle.result().await.expect("a result");
}

#[test]
fn an_operation_costs_the_transactions_and_trips_that_the_architecture_allows() {
    let Some(server) = support::own_server(Options::new().durable()) else { return };
    let database = support::database_on(&server);
    block_on(async {
        let mut bench = bench(&database).await;
        // A write more of each, or one of two trips, is twice beyond it.
        let within = |cost: &Cost, writes: f64| cost.transactions <= writes + 0.5 && cost.trips <= writes + 0.5;
        let none = bench.cost("start, end", |engine, id| direct(engine, "none", id)).await;
        assert!(within(&none, 2.0), "{none:?}");
        let one = bench.cost("start, step, end", |engine, id| direct(engine, "one", id)).await;
        assert!(within(&one, 3.0), "{one:?}");
        let ten = bench.cost("start, ten steps, end", |engine, id| direct(engine, "ten", id)).await;
        assert!(within(&ten, 12.0), "{ten:?}");
        let queued = |engine: Engine, id: String| async move {
            let handle = engine.start(Invocation::named("one")).id(id).queue("orders").await.expect("an enqueue");
            handle.result().await.expect("a result");
        };
        // The enqueue, one claim that takes it and two that find nothing, the step, the end.
        let enqueued = bench.cost("enqueue, claim, step, end", queued).await;
        assert!(within(&enqueued, 6.0), "{enqueued:?}");
        bench.engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}

#[test]
fn an_idle_process_makes_at_most_three_trips_a_second() {
    let Some(database) = support::fresh_database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let store = support::open(&proxy.url(&database), |config| config).await;
        let env = store.env().clone();
        let mut builder = Engine::builder(store).app("shop").function("none", |_: Ctx| async { Ok(()) });
        for n in 0..20 {
            builder = builder.queue(Queue::new(format!("q{n}")));
        }
        let engine = launch(builder).await;
        env.sleep(Duration::from_secs(3)).await;
        proxy.reset_counts();
        let begun = env.monotonic();
        env.sleep(Duration::from_secs(5)).await;
        let seconds = env.monotonic().since(begun).as_secs_f64();
        let trips = proxy.counts().round_trips;
        let _ = writeln!(std::io::stderr(), "{trips} trips in {seconds:.1} s with 20 queues");
        assert!(trips as f64 <= 3.0 * seconds + 1.0, "{trips} in {seconds} s");
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}
