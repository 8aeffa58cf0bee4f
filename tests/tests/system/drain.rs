//! Two processes drain the queues of one SQLite file.

use std::io::Write;
use std::time::Duration;

use mainstay_env::{Env, block_on};
use mainstay_store::{Outcome, Standing, Store, WorkflowId};
use mainstay_tests::ledger::{Account, most_in_window};
use mainstay_tests::load::{self, APP, BOUNDED, FLEET, PERIOD, PROCESS, RATED, STARTS};
use mainstay_tests::worker::Orders;

use crate::process::{Shop, Worker};

/// How long nothing at all may be started while rows wait. A lease of a dead process would take this long to be taken over.
const STALL: Duration = Duration::from_secs(15);

/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Rows that are added at a time while a long run goes on.
const MORE: u32 = 250;

/// How often they are added.
const EVERY: Duration = Duration::from_millis(500);

/// What two processes are put through.
struct Run {
    /// Rows that wait at the beginning.
    rows: u32,
    /// How long rows are added, and faults happen.
    span: Duration,
    /// Share of the calls that meet each fault.
    faults: f64,
}

/// What came of it.
struct Drained {
    rows: u32,
    took: Duration,
    account: Account,
    starts_of_rated: Vec<i64>,
    told: Vec<String>,
}

/// Lets two processes drain the queues, and reads the ledger.
fn drain(run: &Run) -> Drained {
    let env = Env::system("test").expect("a thread");
    block_on(drained(&env, run))
}

async fn drained(env: &Env, run: &Run) -> Drained {
    let (shop, store) = Shop::open(env).await;
    let orders = |name| Orders { faults: run.faults, span: run.span, ..shop.orders(name) };
    let workers = ["w1", "w2"].map(|name| Worker::start(&orders(name)));
    // Neither may be through before the other is up.
    while store.lease_list(&APP.into()).await.expect("a list").leases.len() < 2 {
        env.sleep(LOOK).await;
    }
    let begun = env.monotonic();
    load::enqueue(&*store, 0..run.rows).await.expect("rows");
    let rows = watch(env, &*store, run).await;
    let took = env.monotonic().since(begun);
    let told = workers.map(Worker::end).to_vec();
    let account = shop.account();
    let starts_of_rated = starts(&*store, rows).await;
    // A line for whoever reads the log; nothing can be said on an output that is closed.
    let _ = writeln!(std::io::stderr(), "{rows} rows in {took:?}, {:?}: {told:?}", account.by_process);
    Drained { rows, took, account, starts_of_rated, told }
}

/// Adds rows until the span is over, waits until every row has ended well, and answers how many there are. Fails when
/// nothing moves for too long.
async fn watch(env: &Env, store: &dyn Store, run: &Run) -> u32 {
    let begun = env.monotonic();
    let (mut rows, mut ended) = (run.rows, 0);
    let (mut added, mut moved) = (begun, begun);
    let mut left: Vec<u32> = (0..rows).collect();
    while !left.is_empty() || env.monotonic().since(begun) < run.span {
        if env.monotonic().since(begun) < run.span && env.monotonic().since(added) >= EVERY {
            load::enqueue(store, rows..rows + MORE).await.expect("more rows");
            left.extend(rows..rows + MORE);
            (rows, added) = (rows + MORE, env.monotonic());
        }
        let ids: Vec<WorkflowId> = left.iter().map(|number| load::id(*number).into()).collect();
        let standing = store.workflow_standing(&ids).await.expect("a read");
        let mut standing = standing.into_iter();
        left.retain(|number| match standing.next() {
            Some(Standing::Open(_)) => true,
            Some(Standing::Ended(Outcome::Success(_))) => false,
            other => panic!("row {number} is {other:?}"),
        });
        if ended != rows - u32::try_from(left.len()).expect("a count") {
            (ended, moved) = (rows - u32::try_from(left.len()).expect("a count"), env.monotonic());
        }
        let still = env.monotonic().since(moved);
        assert!(left.is_empty() || still < STALL, "{} of {rows} rows wait, none ended for {still:?}", left.len());
        env.sleep(LOOK).await;
    }
    rows
}

/// Start stamps of the rows with a rate.
async fn starts(store: &dyn Store, rows: u32) -> Vec<i64> {
    let rated = (0..rows).map(load::id).filter(|id| load::queue_of(id) == RATED);
    let ids: Vec<WorkflowId> = rated.map(WorkflowId::from).collect();
    let rows = store.workflow_rows(&ids).await.expect("rows");
    rows.into_iter().flatten().map(|row| row.started_at.expect("a start").as_millis()).collect()
}

/// What holds with faults and without.
fn check(drained: &Drained) {
    let Drained { rows, account, told, .. } = drained;
    assert_eq!(account.starts.len(), usize::try_from(*rows).expect("a count"), "every row was started");
    assert_eq!((account.open, account.most_of_one), (0, 1), "every body ended, and none beside another of its row");
    assert!(account.most[BOUNDED] <= i64::from(FLEET), "{:?}", account.most);
    assert!(account.most_in_process[BOUNDED] <= i64::from(PROCESS), "{:?}", account.most_in_process);
    // The stamp of a row that is claimed in the millisecond of its submit is one later than its start.
    let period = i64::try_from(PERIOD.as_millis()).expect("a period") - 1;
    let most = most_in_window(drained.starts_of_rated.clone(), period);
    assert!(most <= usize::try_from(STARTS).expect("a count"), "{most} starts in a window");
    assert_eq!(account.by_process.len(), 2, "{told:?}");
    let least = account.by_process.values().min().copied().unwrap_or(0);
    assert!(least >= rows / 20, "one process had next to nothing: {:?} {told:?}", account.by_process);
}

/// What holds where no process lost its lease.
fn check_once(drained: &Drained) {
    check(drained);
    assert_eq!(drained.account.doubles(), Vec::<&str>::new(), "each row was started once: {:?}", drained.told);
}

fn is_set(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| value == "1")
}

#[test]
fn two_processes_on_one_sqlite_file_drain_ten_thousand_rows_each_started_once() {
    let drained = drain(&Run { rows: 10_000, span: Duration::ZERO, faults: 0.0 });
    check_once(&drained);
    assert!(drained.took < Duration::from_secs(20), "took {:?}: {:?}", drained.took, drained.told);
}

#[test]
fn two_processes_on_one_sqlite_file_drain_under_faults_and_exceed_no_limit() {
    let span = Duration::from_secs(if is_set("MAINSTAY_FULL") { 120 } else { 20 });
    let drained = drain(&Run { rows: 10_000, span, faults: 0.05 });
    if drained.told.iter().all(|told| told.ends_with("taken_over=0 renewals=0")) {
        check_once(&drained);
    } else {
        check(&drained);
    }
    assert!(drained.rows > 10_000, "rows came while faults happened");
}

/// With `MAINSTAY_SOAK=1` for half an hour, in which nothing may stall.
#[test]
fn case_o20_two_processes_on_one_sqlite_file_start_every_row_once() {
    let span = Duration::from_secs(if is_set("MAINSTAY_SOAK") { 30 * 60 } else { 0 });
    let drained = drain(&Run { rows: 1_000, span, faults: 0.0 });
    check_once(&drained);
}
