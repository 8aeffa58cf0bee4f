//! Processes whose clocks disagree by minutes.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use mainstay::{Ctx, Engine, Queue, Store};
use mainstay_env::{BoxFuture, Clock, Env, Monotonic, Timestamp, block_on};
use mainstay_pgkit::Database;
use mainstay_postgres::{Config, Postgres};
use mainstay_store::{Effect, Place, StoreClock, Submit, Unit, When};
use mainstay_tests::ledger::most_in_window;
use mainstay_tests::warnings;

use super::support::{APP, JOB, Marks, ORDERS, TTL, count, fresh_database, launch, shop, until};

/// What this process has warned of.
static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn heard() -> MutexGuard<'static, Vec<String>> {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the clocks are off by, in seconds.
const SKEWS: [i64; 3] = [-600, 0, 600];

/// The wall clock of the machine, moved by some seconds.
struct Skewed {
    clock: Arc<dyn Clock>,
    by: i64,
}

impl fmt::Debug for Skewed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skewed").field("by", &self.by).finish_non_exhaustive()
    }
}

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.now().0 + self.by * 1_000)
    }

    fn monotonic(&self) -> Monotonic {
        self.clock.monotonic()
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(at)
    }
}

/// A store in a process whose clock is off.
async fn skewed(database: &Database, by: i64) -> Arc<dyn Store> {
    let env = Env::system("skewed").expect("a thread");
    let env = env.with_clock(Arc::new(Skewed { clock: env.clock().clone(), by }));
    Arc::new(Postgres::open(&env, Config::new(database.url()), StoreClock::Server).await.expect("a store"))
}

/// Three engines, from the one that is behind to the one that is ahead.
struct Fleet {
    database: Database,
    stores: Vec<Arc<dyn Store>>,
    engines: Vec<Engine>,
    marks: Marks,
}

impl Fleet {
    async fn launch(database: Database, queue: Queue) -> Self {
        static LISTEN: Once = Once::new();
        LISTEN.call_once(|| warnings::tell(|text| heard().push(text.to_owned())).expect("nobody else hears them"));
        let (marks, mut stores, mut engines) = (Marks::default(), Vec::new(), Vec::new());
        for by in SKEWS {
            let store = skewed(&database, by).await;
            let builder = shop(&store, &marks, Duration::ZERO).executor(format!("at{by}")).queue(queue.clone());
            let sleeper = |ctx: Ctx| async move { ctx.sleep(Duration::from_secs(3_600)).await };
            engines.push(launch(builder.function("sleeper", sleeper)).await);
            stores.push(store);
        }
        Self { database, stores, engines, marks }
    }

    /// The row's `started_at - created_at`, in milliseconds, by the server's clock.
    fn waited(&self, id: &str) -> i64 {
        let sql =
            format!("SELECT started_at_epoch_ms - created_at FROM dbos.workflow_status WHERE workflow_uuid = '{id}'");
        self.database.client().value(&sql).parse().expect("a number")
    }

    async fn end(self) {
        for (by, engine) in SKEWS.into_iter().zip(self.engines) {
            let id = format!("executor={}", engine.executor_id());
            let told = heard().iter().filter(|text| text.contains("clock differs") && text.contains(&id)).count();
            assert_eq!(told, usize::from(by != 0), "a difference is told of once: {:?}", heard());
            let stats = engine.stats();
            assert_eq!((stats.renewals, stats.taken_over), (0, 0), "a lease was lost to a clock");
            engine.shutdown(Duration::from_secs(5)).await.expect("an end");
        }
    }
}

fn job(id: &str, name: &str, place: Place) -> Submit {
    let submit = Submit::new(id, name, format!("token-{id}"), place).app(APP).version("shop@1");
    submit.input(r#"{"positionalArgs":[],"namedArgs":{}}"#)
}

async fn commit(store: &Arc<dyn Store>, submit: Submit) {
    let committed = store.commit(&[Unit::new().effect(Effect::from(submit))]).await.expect("a commit");
    assert!(committed.units[0].as_ref().is_ok_and(|reply| reply.is_done()), "{:?}", committed.units);
}

#[test]
fn case_o32_delays_and_deadlines_of_processes_with_other_clocks_are_the_databases() {
    let Some(database) = fresh_database() else { return };
    block_on(async {
        let fleet = Fleet::launch(database, Queue::new(ORDERS)).await;
        let env = fleet.stores[1].env().clone();
        for (number, store) in fleet.stores.iter().enumerate() {
            let delay = When::In(Duration::from_millis(700));
            commit(
                store,
                job(
                    &format!("delayed{number}"),
                    JOB,
                    Place::Queue { name: ORDERS.into(), key: None, delay: Some(delay) },
                ),
            )
            .await;
            let limited = job(&format!("limited{number}"), "sleeper", Place::queue(ORDERS));
            commit(store, limited.timeout(Duration::from_millis(700))).await;
        }
        let mut client = fleet.database.client();
        until(&env, "all end", || count(&mut client, "status IN ('SUCCESS', 'CANCELLED')") == 6).await;
        for number in 0..3 {
            let waited = fleet.waited(&format!("delayed{number}"));
            assert!((700..4_000).contains(&waited), "delayed{number} waited {waited} ms");
        }
        assert_eq!(count(&mut client, "status = 'CANCELLED' AND name = 'sleeper'"), 3);
        let early = "name = 'sleeper' AND (completed_at - started_at_epoch_ms) NOT BETWEEN 700 AND 4000";
        assert_eq!(count(&mut client, early), 0, "a timeout by another clock");
        let off = "abs(created_at - extract(epoch FROM now()) * 1000) > 60000 OR \
                   abs(started_at_epoch_ms - extract(epoch FROM now()) * 1000) > 60000 OR \
                   abs(updated_at - extract(epoch FROM now()) * 1000) > 60000";
        assert_eq!(count(&mut client, off), 0, "a stamp of another clock");
        assert_eq!(fleet.marks.doubles(), Vec::new());
        fleet.end().await;
    });
}

#[test]
fn case_o32_order_rate_and_leases_of_processes_with_other_clocks_are_as_with_equal_ones() {
    let Some(database) = fresh_database() else { return };
    block_on(async {
        let (starts, period) = (6, Duration::from_millis(500));
        let fleet = Fleet::launch(database, Queue::new("rated").rate(starts, period)).await;
        let env = fleet.stores[1].env().clone();
        // In turn from each: first in, first out, whoever enqueues.
        for number in 0..30 {
            let store = &fleet.stores[number % 3];
            commit(store, job(&format!("r{number:02}"), JOB, Place::queue("rated"))).await;
            // Rows of one millisecond have no order among different processes.
            env.sleep(Duration::from_millis(2)).await;
        }
        let mut client = fleet.database.client();
        until(&env, "all run", || count(&mut client, "status = 'SUCCESS'") == 30).await;
        let sql = "SELECT started_at_epoch_ms, workflow_uuid FROM dbos.workflow_status ORDER BY 1, 2";
        let rows = client.rows(sql);
        let stamps: Vec<i64> =
            rows.iter().map(|row| row[0].as_deref().expect("a stamp").parse().expect("a number")).collect();
        // The stamp of a row is later than its start where it was submitted while its claim began.
        let period = i64::try_from(period.as_millis()).expect("a period") - 5;
        assert!(most_in_window(stamps, period) <= starts as usize, "{rows:?}");
        let ids: Vec<&str> = rows.iter().map(|row| row[1].as_deref().expect("an id")).collect();
        assert!(ids.is_sorted(), "{ids:?}");
        env.sleep(2 * TTL).await;
        fleet.end().await;
    });
}
