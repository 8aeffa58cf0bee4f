//! Cases from public bug reports that need real processes: they are told to end, stopped, killed from within, blocked.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use mainstay::{Engine, Handle, Invocation, Result, Status, Store};
use mainstay_env::{Env, block_on};
use mainstay_tests::runner::{self, APP, JOBS, Orders, PROCESS, THREADS, TTL};
use std::sync::Arc;
use tempfile::TempDir;

use crate::process::Kept;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Nothing that a test waits for takes longer, on a machine that is busy with others too.
const PATIENCE: Duration = Duration::from_secs(40);

/// What the end of a process may take beyond the limit of its drain.
const GRACE: Duration = Duration::from_secs(1);

/// A file in a folder of its own, and an engine that runs no workflow: it starts, looks and cancels.
struct Bench {
    folder: TempDir,
    env: Env,
    store: Arc<dyn Store>,
    engine: Engine,
}

/// A process with an engine.
struct Runner(Kept);

impl Runner {
    fn signal(&self, name: &str) {
        self.0.signal(name);
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child")
    }
}

impl Bench {
    async fn open() -> Self {
        let folder = TempDir::new().expect("a folder");
        let store = mainstay::open(&format!("sqlite:{}", folder.path().join("store.db").display())).await;
        let store = store.expect("the file");
        let builder = Engine::builder(store.clone()).app(APP).executor("test").listen_queues([""; 0]);
        let engine = builder.settings(runner::settings).launch().await.expect("a launch");
        Self { folder, env: store.env().clone(), store, engine }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, name: &str, drain: Duration) -> Runner {
        let orders = Orders { file: self.path("store.db"), marks: self.path("marks"), name: name.to_owned(), drain };
        let said = File::create(self.path(name)).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command.args(orders.to_args()).stdin(Stdio::null()).stderr(said);
        Runner(Kept(command.spawn().expect("a process")))
    }

    /// The lines of marks so far that contain a text.
    fn marks(&self, text: &str) -> Vec<String> {
        let marks = std::fs::read_to_string(self.path("marks")).unwrap_or_default();
        marks.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }

    /// What a process has said.
    fn said(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    async fn start(&self, name: &str, millis: Option<u64>, id: String) -> Handle<serde_json::Value> {
        let call = millis.iter().fold(Invocation::named(name), |call, millis| call.arg(millis));
        self.engine.start(call).id(id).queue(JOBS).await.expect("a start")
    }

    async fn rows(&self, ids: &[String]) -> Vec<mainstay_store::WorkflowRow> {
        let ids: Vec<_> = ids.iter().map(|id| id.as_str().into()).collect();
        let rows = self.store.workflow_rows(&ids).await.expect("a read");
        rows.into_iter().map(|row| row.expect("a row")).collect()
    }

    async fn count(&self, ids: &[String], status: Status) -> usize {
        self.rows(ids).await.iter().filter(|row| row.status == status).count()
    }

    /// The executors of a process that have a lease.
    async fn executors(&self, name: &str) -> Vec<String> {
        let leases = self.store.lease_list(&APP.into()).await.expect("a list").leases;
        let ids = leases.iter().map(|lease| lease.executor.to_string());
        ids.filter(|id| id.starts_with(&format!("{name}~"))).collect()
    }

    async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let limit = self.env.deadline(PATIENCE);
        while !holds().await {
            assert!(self.env.monotonic() < limit, "never: {what}; marks: {:#?}", self.marks(""));
            self.env.sleep(LOOK).await;
        }
    }

    /// Tells a process to end, and how long that took.
    async fn terminate(&self, mut runner: Runner) -> Duration {
        let begun = self.env.monotonic();
        runner.signal("TERM");
        let mut status = None;
        self.until("its end", async || {
            status = runner.ended();
            status.is_some()
        })
        .await;
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
        self.env.monotonic().since(begun)
    }
}

fn ids(prefix: &str, count: u32) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

#[test]
fn case_o05_a_process_that_is_told_to_end_claims_no_more_and_drains_within_its_limit() {
    block_on(async {
        let bench = Bench::open().await;
        let rows = ids("w", 2 * PROCESS + 10);
        for id in &rows {
            bench.start("held", Some(1_000), id.clone()).await;
        }
        let places = PROCESS as usize;
        let long = Duration::from_secs(5);
        let first = bench.run("first", long);
        bench.until("full", async || bench.marks("first begins").len() == places).await;
        let took = bench.terminate(first).await;
        assert!(took < long + GRACE, "{took:?}");
        assert_eq!((bench.marks("first begins").len(), bench.marks("first goes on").len()), (places, places));
        assert_eq!(bench.count(&rows, Status::Success).await, places);
        assert_eq!(bench.count(&rows, Status::Enqueued).await, rows.len() - places);

        // What does not end within the limit is left for others, and cancelled by nobody.
        let short = Duration::from_millis(200);
        let second = bench.run("second", short);
        bench.until("full", async || bench.marks("second begins").len() == places).await;
        let took = bench.terminate(second).await;
        assert!(took < short + GRACE, "{took:?}");
        assert_eq!((bench.marks("second begins").len(), bench.marks("second ends").len()), (places, 0));
        assert_eq!(bench.count(&rows, Status::Success).await, places);
        assert_eq!(bench.count(&rows, Status::Cancelled).await, 0);

        let third = bench.run("third", long);
        bench.until("all done", async || bench.count(&rows, Status::Success).await == rows.len()).await;
        assert_eq!(bench.marks("third begins").len(), rows.len() - places);
        bench.terminate(third).await;
    });
}

/// Stops a process while it holds up nobody: one that is stopped inside a write keeps the file locked.
async fn stop_outside_a_write(bench: &Bench, runner: &Runner) {
    for n in 0..20 {
        runner.signal("STOP");
        let write =
            bench.engine.start(Invocation::named("quick")).id(format!("probe{n}")).queue("unserved").into_future();
        if bench.env.timeout(Duration::from_secs(1), write).await.is_ok_and(|started: Result<_>| started.is_ok()) {
            return;
        }
        runner.signal("CONT");
        bench.env.sleep(Duration::from_millis(37)).await;
    }
    panic!("it was stopped inside a write every time");
}

#[test]
fn case_o06_a_process_that_was_stopped_past_its_lease_writes_nothing_late() {
    block_on(async {
        let bench = Bench::open().await;
        let handle = bench.start("held", Some(2_500), "w".to_owned()).await;
        let first = bench.run("first", Duration::from_secs(5));
        bench.until("begun", async || bench.marks("first begins w").len() == 1).await;
        let second = bench.run("second", Duration::from_secs(5));
        bench.until("up", async || bench.executors("second").await.len() == 1).await;
        let before = bench.executors("first").await;
        // A lock that is held proves nothing: the beats alone tell that nobody is there.
        stop_outside_a_write(&bench, &first).await;
        assert_eq!(handle.result().timeout(PATIENCE).await.expect("the second one's"), "second");
        let id = ["w".to_owned()];
        let row = bench.rows(&id).await;
        assert_eq!((row[0].status, row[0].attempts), (Status::Success, 2));
        first.signal("CONT");
        bench
            .until("up again", async || {
                let now = bench.executors("first").await;
                now.len() == 1 && now != before
            })
            .await;
        // It works on, and did nothing more for what it had lost.
        let more = ids("more", 40);
        for id in &more {
            bench.start("quick", None, id.clone()).await;
        }
        bench.until("more done", async || bench.count(&more, Status::Success).await == more.len()).await;
        assert_eq!(bench.rows(&id).await, row, "the finished row has moved");
        assert_eq!(handle.result().await.expect("it stands"), "second");
        assert_eq!(bench.marks("goes on w"), ["second goes on w"]);
        for runner in [first, second] {
            bench.terminate(runner).await;
        }
    });
}

#[test]
fn case_o08_a_workflow_that_kills_its_process_is_set_aside_and_the_others_go_on() {
    block_on(async {
        let bench = Bench::open().await;
        let poison = bench.start("poison", None, "poison".to_owned()).await;
        let second = bench.start("poison", None, "stopped".to_owned()).await;
        let good = ids("good", 30);
        for id in &good {
            bench.start("quick", None, id.clone()).await;
        }
        let mut deaths = 0;
        let limit = bench.env.deadline(PATIENCE);
        loop {
            let mut runner = bench.run("runner", Duration::from_secs(5));
            let mut lives = true;
            while lives
                && !(poison.status().await.expect("a status") == Status::Parked
                    && bench.count(&good, Status::Success).await == good.len())
            {
                assert!(bench.env.monotonic() < limit, "{:#?}", bench.marks(""));
                bench.env.sleep(LOOK).await;
                lives = runner.ended().is_none();
            }
            if lives {
                bench.terminate(runner).await;
                break;
            }
            deaths += 1;
            if deaths == 1 {
                second.cancel().await.expect("a cancellation between two deaths");
                assert_eq!(second.status().await.expect("a status"), Status::Cancelled);
            }
        }
        // The claim counts: where the other one killed the process first, an attempt went by without a body.
        let (begun, other) = (bench.marks("begins poison").len(), bench.marks("begins stopped").len());
        assert_eq!(bench.rows(&["poison".to_owned()]).await[0].attempts, runner::ATTEMPTS);
        let all = runner::ATTEMPTS as usize;
        assert!(other <= 1 && begun <= all && begun + other >= all, "{:#?}", bench.marks("begins"));
        assert!(deaths >= runner::ATTEMPTS, "{deaths}");
        assert_eq!(poison.result().await.expect_err("set aside").kind(), mainstay::ErrorKind::Parked);
        assert_eq!(second.status().await.expect("a status"), Status::Cancelled);
    });
}

#[test]
fn case_o45_steps_that_block_every_thread_cost_no_lease_and_are_named() {
    block_on(async {
        let bench = Bench::open().await;
        let blocking = ids("block", u32::try_from(THREADS).expect("a few"));
        let longer = 2 * TTL + Duration::from_millis(500);
        for id in &blocking {
            bench.start("block", u64::try_from(longer.as_millis()).ok(), id.clone()).await;
        }
        let runner = bench.run("runner", Duration::from_secs(5));
        bench.until("blocked", async || bench.marks("begins").len() == THREADS).await;
        let before = bench.executors("runner").await;
        // Its queues are served all the same: this row is claimed while nothing can run.
        let more = ["more".to_owned()];
        bench.start("quick", None, more[0].clone()).await;
        bench.until("claimed", async || bench.count(&more, Status::Pending).await == 1).await;
        assert_eq!(bench.marks("ends"), [""; 0], "the threads are still blocked");
        bench.until("done", async || bench.count(&blocking, Status::Success).await == THREADS).await;
        bench.until("more done", async || bench.count(&more, Status::Success).await == 1).await;
        assert_eq!(bench.executors("runner").await, before, "the lease was kept");
        assert_eq!((bench.engine.stats().taken_over, bench.marks("begins").len()), (0, THREADS));
        assert!(bench.rows(&blocking).await.iter().all(|row| row.attempts == 1));
        let said = bench.said("runner");
        for id in &blocking {
            let line = said.lines().find(|line| line.contains(&format!("workflow={id}")));
            assert!(line.is_some_and(|line| line.contains("step=blocks") && line.contains("blocked")), "{id}: {said}");
        }
        bench.terminate(runner).await;
    });
}
