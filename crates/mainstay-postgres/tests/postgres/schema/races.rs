//! Several at once, and some that are killed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mainstay_env::{BoxFuture, Clock, Monotonic, Timestamp};
use mainstay_postgres::schema_testing::{self as runner, How};
use tokio_postgres::Client;

use crate::schema::support::{Lab, assert_at, is_full, recorded, rows, value, with_database};

/// The numbers of the steps that run outside a transaction: all that are online but two, whose names are built again.
pub(crate) fn online_numbers() -> Vec<u32> {
    let online = mainstay_migrations::POSTGRES.iter().filter(|step| step.online && ![22, 24].contains(&step.number));
    online.map(|step| step.number).collect()
}

/// Lets `many` open a schema at the same moment, kills the connection of one if told, and demands that the others succeed.
pub(crate) async fn at_once(lab: &Lab, schema: &str, many: usize, kill_after: Option<Duration>) {
    let mut tasks = Vec::new();
    let mut pids = Vec::new();
    for _ in 0..many {
        let mut client = lab.client().await;
        pids.push(value(&client, "SELECT pg_backend_pid()").await);
        let (env, schema) = (lab.env.clone(), schema.to_owned());
        tasks.push(
            lab.env.tasks().spawn("opener", async move { runner::ready(&mut client, &schema, How::Up, &env).await }),
        );
    }
    let control = lab.client().await;
    if let Some(after) = kill_after {
        lab.env.sleep(after).await;
        value(&control, &format!("SELECT pg_terminate_backend({})", pids[0])).await;
    }
    for (n, task) in tasks.into_iter().enumerate() {
        let ended = task.await.expect("no panic");
        if n > 0 || kill_after.is_none() {
            assert_eq!(ended.unwrap_or_else(|error| panic!("opener {n} of {schema}: {error}")).0, 125);
        }
    }
    lab.ready(schema, How::Up).await.expect("the next start");
    assert_at(&control, schema, 125, "after all at once").await;
}

/// Kills an opener in the middle of the online step `number`, and demands that the next one ends what it began.
pub(crate) async fn killed_inside(lab: &Lab, number: u32) {
    let schema = format!("killed_{number}");
    let before = recorded().take_while(|other| *other < number).last().expect("a number before");
    let blocker = lab.schema_at(before, &schema).await;
    // A row that is not committed holds an index up in the middle.
    let table = if mainstay_migrations::POSTGRES[number as usize - 1].sql.contains("application_versions") {
        "application_versions (version_id, version_name) VALUES ('v', 'v')"
    } else {
        "workflow_status (workflow_uuid) VALUES ('w')"
    };
    let also = if number > 13 {
        format!("; INSERT INTO {schema}.operation_outputs (workflow_uuid, function_id) SELECT 'w', 0 WHERE EXISTS (SELECT FROM {schema}.workflow_status);
            INSERT INTO {schema}.notifications (destination_uuid, message) SELECT 'w', '' WHERE EXISTS (SELECT FROM {schema}.workflow_status)")
    } else {
        String::new()
    };
    blocker.batch_execute(&format!("BEGIN; INSERT INTO {schema}.{table}{also}")).await.expect("a row");
    let mut client = lab.client().await;
    let pid = value(&client, "SELECT pg_backend_pid()").await;
    let (env, name) = (lab.env.clone(), schema.clone());
    let task = lab.env.tasks().spawn("opener", async move { runner::ready(&mut client, &name, How::Up, &env).await });
    let control = lab.client().await;
    until(lab, &control, &format!("SELECT FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock' AND query LIKE '%CONCURRENTLY%'")).await;
    value(&control, &format!("SELECT pg_terminate_backend({pid})")).await;
    task.await.expect("no panic").expect_err("killed");
    assert_eq!(value(&control, &format!("SELECT version FROM {schema}.dbos_migrations")).await, before.to_string());
    blocker.batch_execute("ROLLBACK").await.expect("rolled back");
    let left = format!(
        "SELECT FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
        WHERE NOT x.indisvalid AND c.relnamespace = '{schema}'::regnamespace"
    );
    assert_eq!(rows(&control, &left).await.len(), 1, "an unfinished index of {number}");
    // The way on from a good number is the same as from any other, and longer than all of this.
    let end = if is_full() { 125 } else { number };
    let climbed = runner::climb_to(&mut lab.client().await, &schema, end, &lab.env).await;
    climbed.unwrap_or_else(|error| panic!("after the kill inside {number}: {error}"));
    assert_at(&control, &schema, end, &format!("killed inside {number}")).await;
}

/// Waits for a row.
pub(crate) async fn until(lab: &Lab, client: &Client, ask: &str) {
    for _ in 0..2000 {
        if !rows(client, ask).await.is_empty() {
            return;
        }
        lab.env.sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {ask}");
}

#[test]
fn case_o19_eight_that_start_at_once_on_an_empty_database_make_one_good_schema() {
    with_database(|lab| async move {
        for round in 0..if is_full() { 50 } else { 4 } {
            let kill = (round % 2 == 1).then(|| Duration::from_millis(lab.env.rng().below(250)));
            at_once(&lab, &format!("boot_{round}"), 8, kill).await;
            lab.client().await.batch_execute("DROP SCHEMA mainstay CASCADE").await.expect("dropped for the next round");
        }
    });
}

#[test]
fn case_o19_eight_that_start_at_once_on_an_older_database_climb_together() {
    with_database(|lab| async move {
        for round in 0..if is_full() { 10 } else { 2 } {
            let schema = format!("climb_{round}");
            drop(lab.schema_at(if round % 2 == 0 { 21 } else { 110 }, &schema).await);
            let kill = (round % 2 == 1).then(|| Duration::from_millis(lab.env.rng().below(400)));
            at_once(&lab, &schema, 8, kill).await;
        }
    });
}

#[test]
fn case_o18_no_lock_outlives_a_migration_and_one_that_a_peer_holds_is_waited_for() {
    with_database(|lab| async move {
        let mut client = lab.client().await;
        runner::ready(&mut client, "free", How::Up, &lab.env).await.expect("opened");
        let locks = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
            WHERE l.locktype = 'advisory' AND d.datname = current_database()";
        assert_eq!(value(&client, locks).await, "0");

        let peer = lab.schema_at(109, "held").await;
        value(&peer, "SELECT pg_advisory_lock(1234567890)").await;
        let (env, mut second) = (lab.env.clone(), lab.client().await);
        let task =
            lab.env.tasks().spawn("opener", async move { runner::ready(&mut second, "held", How::Up, &env).await });
        lab.env.sleep(Duration::from_millis(300)).await;
        assert_eq!(value(&peer, "SELECT version FROM held.dbos_migrations").await, "109");
        value(&peer, "SELECT pg_advisory_unlock(1234567890)").await;
        assert_eq!(task.await.expect("no panic").expect("opened").0, 125);
    });
}

/// A clock on which time passes by sleeping alone.
#[derive(Debug)]
struct Slept {
    real: Arc<dyn Clock>,
    start: Monotonic,
    slept: Mutex<Duration>,
}

impl Slept {
    fn total(&self) -> Duration {
        *self.slept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for Slept {
    fn now(&self) -> Timestamp {
        self.real.now()
    }

    fn monotonic(&self) -> Monotonic {
        self.start + self.total()
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        let left = at.since(self.monotonic());
        *self.slept.lock().unwrap_or_else(PoisonError::into_inner) += left;
        self.real.sleep_until(self.real.monotonic())
    }
}

#[test]
fn case_o18_a_lock_that_a_session_has_left_behind_is_waited_for_once_and_not_at_each_number() {
    with_database(|lab| async move {
        let pooled = lab.schema_at(108, "left").await;
        value(&pooled, "SELECT pg_advisory_lock(1234567890)").await;
        let real = lab.env.clock().clone();
        let clock = Arc::new(Slept { start: real.monotonic(), real, slept: Mutex::default() });
        let env = lab.env.with_clock(clock.clone());
        runner::ready(&mut lab.client().await, "left", How::Up, &env).await.expect("opened");
        assert_at(&pooled, "left", 125, "beside a lock").await;
        let total = clock.total().as_secs();
        assert!((30..33).contains(&total), "{total} s");
    });
}

#[test]
fn an_index_that_somebody_is_building_is_waited_for_and_not_dropped() {
    with_database(|lab| async move {
        let blocker = lab.schema_at(110, "busy").await;
        blocker.batch_execute("BEGIN; INSERT INTO busy.operation_outputs (workflow_uuid, function_id) SELECT 'w', 1 WHERE false; LOCK TABLE busy.operation_outputs IN ROW EXCLUSIVE MODE").await.expect("held");
        let step = mainstay_migrations::POSTGRES.iter().find(|step| step.number == 111).expect("a step");
        let (peer, build) = (lab.client().await, runner::statements(step, "busy"));
        let building = lab.env.tasks().spawn("peer", async move { peer.batch_execute(&build).await });
        let control = lab.client().await;
        let index = "SELECT oid FROM pg_class WHERE relname = 'idx_operation_outputs_retention' AND relnamespace = 'busy'::regnamespace";
        until(&lab, &control, index).await;
        let oid = value(&control, index).await;
        let (env, mut client) = (lab.env.clone(), lab.client().await);
        let pid = value(&client, "SELECT pg_backend_pid()").await;
        let opening =
            lab.env.tasks().spawn("opener", async move { runner::ready(&mut client, "busy", How::Up, &env).await });
        // It has asked for the lock of the table and not got it.
        until(&lab, &control, &format!("SELECT FROM pg_stat_activity WHERE pid = {pid} AND query = 'ROLLBACK'")).await;
        blocker.batch_execute("COMMIT").await.expect("let go");
        building.await.expect("no panic").expect("built");
        opening.await.expect("no panic").expect("opened");
        assert_eq!(value(&control, index).await, oid, "the index that the peer has built");
        assert_at(&control, "busy", 125, "after waiting").await;
    });
}
