//! Processes that open a schema at the same moment, one of which is killed in the middle.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use mainstay_env::{Env, block_on};
use mainstay_postgres::schema_testing::How;
use mainstay_postgres::{Config, Postgres};
use mainstay_store::StoreClock;
use tokio_postgres::Client;

use crate::schema::races::until;
use crate::schema::support::{Lab, assert_at, rows, with_database};

/// The test below, which is also what its processes run.
const TEST: &str = "schema::processes::case_o19_eight_processes_of_which_one_is_killed_midway_end_in_one_good_schema";
/// What a process opens; without it the test is the one that starts them.
const URL: &str = "MAINSTAY_OPENER_URL";
const SCHEMA: &str = "MAINSTAY_OPENER_SCHEMA";
const MANY: usize = 8;
/// The signal that nobody can catch.
const SIGKILL: i32 = 9;

/// Started processes; those that still run are killed when a test ends early.
struct Openers(Vec<Child>);

impl Openers {
    fn start(lab: &Lab, schema: &str) -> Self {
        let program = env::current_exe().expect("this program");
        let one = |n: usize| {
            let mut command = Command::new(&program);
            command.args(["--exact", TEST, "--nocapture"]).stdout(Stdio::null());
            command.env(URL, format!("{}?application_name=opener_{n}", lab.database.url())).env(SCHEMA, schema);
            command.spawn().expect("a process")
        };
        Self((0..MANY).map(one).collect())
    }

    /// How each has ended.
    async fn ended(&mut self, lab: &Lab) -> Vec<ExitStatus> {
        for _ in 0..6000 {
            let states = self.0.iter_mut().map(|child| child.try_wait().expect("a state"));
            if let Some(all) = states.collect::<Vec<_>>().into_iter().collect() {
                return all;
            }
            lab.env.sleep(Duration::from_millis(20)).await;
        }
        panic!("they do not end");
    }
}

impl Drop for Openers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended is no longer there to be killed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What a process does.
fn open(url: String) {
    let env = Env::system("opener").expect("a thread");
    let config = Config::new(url).schema(env::var(SCHEMA).expect("a schema"));
    drop(block_on(Postgres::open(&env, config, StoreClock::Server)).expect("opened"));
}

/// Starts them, kills the one that `blocker` holds up in a statement like `held_up`, and demands that the others succeed.
async fn at_once(lab: &Lab, schema: &str, blocker: &Client, held_up: &str) {
    let mut openers = Openers::start(lab, schema);
    let control = lab.client().await;
    let midway = format!(
        "SELECT split_part(application_name, '_', 2) FROM pg_stat_activity WHERE datname = current_database()
        AND application_name LIKE 'opener\\_%' AND wait_event_type = 'Lock' AND query LIKE '%{held_up}%' LIMIT 1"
    );
    until(lab, &control, &midway).await;
    // All are there, so that one is killed and seven are left that have to go on.
    let all = format!(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'opener\\_%'
        HAVING count(DISTINCT application_name) = {MANY}"
    );
    until(lab, &control, &all).await;
    let found = rows(&control, &midway).await;
    let killed: usize = found[0][0].as_deref().expect("a number").parse().expect("a number");
    openers.0[killed].kill().expect("killed");
    blocker.batch_execute("ROLLBACK").await.expect("let go");
    for (n, status) in openers.ended(lab).await.into_iter().enumerate() {
        if n == killed {
            assert_eq!(status.signal(), Some(SIGKILL), "opener {n} of {schema}");
        } else {
            assert!(status.success(), "opener {n} of {schema}: {status}");
        }
    }
    assert_at(&control, schema, 125, schema).await;
    lab.ready(schema, How::Up).await.expect("the next start");
    assert_at(&control, schema, 125, schema).await;
}

#[test]
fn case_o19_eight_processes_of_which_one_is_killed_midway_end_in_one_good_schema() {
    if let Ok(url) = env::var(URL) {
        return open(url);
    }
    with_database(|lab| async move {
        // From nothing: a name that is not committed holds up whoever makes the schema, in the middle of its transaction.
        let blocker = lab.client().await;
        blocker.batch_execute("CREATE SCHEMA fresh; BEGIN; CREATE TABLE fresh.queues ()").await.expect("a name");
        at_once(&lab, "fresh", &blocker, "CREATE TABLE").await;
        // On the way up: a row that is not committed holds up whoever builds an index.
        let blocker = lab.schema_at(110, "older").await;
        let row = "BEGIN; INSERT INTO older.workflow_status (workflow_uuid) VALUES ('w');
            INSERT INTO older.operation_outputs (workflow_uuid, function_id) VALUES ('w', 0)";
        blocker.batch_execute(row).await.expect("a row");
        at_once(&lab, "older", &blocker, "CONCURRENTLY").await;
    });
}
