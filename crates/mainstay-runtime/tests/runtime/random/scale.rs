//! Many workflows at once: ten thousand that sleep, two thousand that another process waits for, and one that moves there.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mainstay_env::{Clock, Env, Sim};
use mainstay_memory::{Memory, Trouble};
use mainstay_runtime::{Builder, Ctx, Engine, Invocation, Queue, Result};
use mainstay_store::{ExecutorStore, Status, StoreClock, TakeOver, TakenOver};

use super::ledger::Ledger;
use super::link::{Calls, Linked};

const SLEEPERS: u64 = 10_000;
const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);
/// Handles that another process awaits.
const AWAITED: u64 = 2_000;
/// Most memory of a process of this test, in MiB: some tens of KiB for each workflow.
const MEMORY: u64 = 400;

/// Processes over one store whose calls are counted.
struct Crowd {
    sim: Sim,
    memory: Memory,
    real: Env,
}

impl Crowd {
    fn new(trouble: Trouble) -> Self {
        let sim = Sim::new(1);
        let clock = StoreClock::Manual(sim.clock().clone());
        let memory = Memory::troubled(sim.env("store"), clock, 1, Trouble { yields: false, ..trouble });
        Self { sim, memory, real: Env::system("clock").expect("a thread") }
    }

    /// A builder for an engine of a process, and the count of its calls.
    fn builder(&self, process: &str) -> (Builder, Calls) {
        let calls = Calls::default();
        let inner = self.memory.attach(self.sim.env(process));
        let linked = Linked { inner, run: process.into(), ledger: Ledger::default(), calls: calls.clone() };
        (Engine::builder(Arc::new(linked)).app("shop").executor(process), calls)
    }

    fn launch(&self, builder: Builder) -> Engine {
        self.sim.block_on(builder.launch()).expect("launch")
    }

    /// Runs a future to its end; says how much virtual time passed.
    fn time<T>(&self, future: impl Future<Output = T>) -> (T, Duration) {
        let begun = self.sim.clock().monotonic();
        let value = self.sim.block_on(future);
        (value, self.sim.clock().monotonic().since(begun))
    }
}

/// The most memory that this process has had, where the system tells.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib / 1024)
}

#[allow(clippy::print_stdout, reason = "the figures of a run are for its reader")]
fn say(text: String) {
    println!("{text}");
}

/// Ten thousand workflows, started at once, that sleep for an hour; they all end a minute later at most.
fn ten_thousand(queue: Option<&str>) {
    let crowd = Crowd::new(Trouble::none());
    let (builder, calls) = crowd.builder("web");
    let nap = |ctx: Ctx, number: u64| async move {
        ctx.sleep(HOUR).await?;
        Ok(number)
    };
    let engine = crowd.launch(builder.queue(Queue::new("naps")).function("nap", nap));
    let real = crowd.real.monotonic();
    let run = async {
        let start = |number: u64| {
            let start = engine.start(Invocation::named("nap").arg(number).returning::<u64>());
            let start = if let Some(queue) = queue { start.queue(queue) } else { start };
            start.into_future()
        };
        let handles: Vec<_> =
            join_all((0..SLEEPERS).map(start)).await.into_iter().map(|handle| handle.expect("start")).collect();
        join_all(handles.iter().map(|handle| handle.result().into_future())).await
    };
    let (results, took) = crowd.time(run);
    let real = crowd.real.monotonic().since(real);
    let numbers: Vec<u64> = results.into_iter().map(|result: Result<u64>| result.expect("a result")).collect();
    assert!(numbers.into_iter().eq(0..SLEEPERS), "every handle gives the result of its own workflow");
    let memory = most_memory();
    let place = queue.unwrap_or("no queue");
    say(format!(
        "{SLEEPERS} workflows on {place} slept for an hour in {took:?} of virtual and {real:?} of real time; {} polls, most \
         memory {memory:?} MiB, calls {:?}",
        crowd.sim.polls(),
        calls.all(),
    ));
    // While all sleep here, nothing is to be learnt but what was cancelled and not heard: a read a second.
    let reads = calls.of("workflow_standing");
    assert!(reads <= HOUR.as_secs() + 1000, "{reads} reads");
    assert!(took >= HOUR && took <= HOUR + MINUTE, "{took:?}");
    assert!(memory.is_none_or(|memory| memory < MEMORY), "{memory:?} MiB");
    assert!(crowd.memory.rows().iter().all(|row| row.status == Status::Success));
    crowd.memory.check_invariants().expect("a sound store");
    crowd.sim.advance(Duration::from_secs(1));
    assert_eq!(engine.stats().running, 0);
}

#[test]
fn random_programs_ten_thousand_sleep_for_an_hour_at_once_when_started_directly() {
    ten_thousand(None);
}

#[test]
fn random_programs_ten_thousand_sleep_for_an_hour_at_once_when_enqueued() {
    ten_thousand(Some("naps"));
}

/// Without a hint, a process learns the ends of two thousand foreign workflows by few reads and soon.
#[test]
fn random_programs_two_thousand_foreign_workflows_are_awaited_by_few_reads() {
    let crowd = Crowd::new(Trouble::silent());
    let (worker, _) = crowd.builder("worker");
    let worker = crowd.launch(worker.function("nap", |ctx: Ctx, number: u64| async move {
        ctx.sleep(MINUTE).await?;
        Ok(number)
    }));
    let (web, calls) = crowd.builder("web");
    let web = crowd.launch(web);
    let start = |number: u64| {
        let call = Invocation::named("nap").arg(number);
        worker.start(call).id(format!("nap-{number:04}")).into_future()
    };
    let started = crowd.sim.block_on(join_all((0..AWAITED).map(start)));
    assert!(started.iter().all(Result::is_ok));
    let before = calls.of("workflow_standing");
    let handles: Vec<_> = (0..AWAITED).map(|number| web.handle_by_id::<u64>(format!("nap-{number:04}"))).collect();
    let waits = join_all(handles.iter().map(|handle| handle.result().into_future()));
    let (results, took) = crowd.time(waits);
    assert!(results.into_iter().map(|result| result.expect("a result")).eq(0..AWAITED));
    let ended = crowd.memory.rows().iter().filter_map(|row| row.completed_at).max().expect("all have ended");
    let late = crowd.sim.clock().now().since(ended);
    let reads = calls.of("workflow_standing") - before;
    say(format!(
        "{AWAITED} foreign workflows awaited for {took:?} by {reads} reads, the last one told {late:?} after its end; calls \
         {:?}",
        calls.all()
    ));
    assert!(late <= Duration::from_secs(3), "{late:?}");
    // Eight batches a poll, a poll a second, and the reads before and after.
    let bound = 8 * (took.as_secs() + 3);
    assert!(reads >= 8 && reads <= bound, "{reads} reads, at most {bound}");
}

/// A wait for what ran here is read for again once it runs elsewhere, although no hint is heard.
#[test]
fn a_wait_follows_a_workflow_that_moves_to_another_process() {
    let crowd = Crowd::new(Trouble::silent());
    let nap = |ctx: Ctx, number: u64| async move {
        ctx.sleep(MINUTE).await?;
        Ok(number)
    };
    let web = crowd.launch(crowd.builder("web").0.function("nap", nap));
    let worker = crowd.launch(crowd.builder("worker").0.function("nap", nap));
    let call = Invocation::named("nap").arg(7_u64).returning::<u64>();
    let handle = crowd.sim.block_on(web.start(call).id("w").into_future()).expect("start");
    let waiting = crowd.sim.env("web").tasks().spawn("wait", handle.result().into_future());
    // Some polls of the hub find it running here, and put the next one off.
    crowd.sim.advance(Duration::from_secs(10));
    let executor = web.executor_id();
    let leases = crowd.sim.block_on(crowd.memory.lease_list(&"shop".into())).expect("leases").leases;
    let lease = leases.into_iter().find(|lease| lease.executor == executor).expect("the lease of the first process");
    let taken = crowd.sim.block_on(crowd.memory.lease_take_over(TakeOver::new(executor, lease.beat)));
    assert!(taken.is_ok_and(|taken| matches!(taken, TakenOver::Rows { ids, .. } if ids.len() == 1)));
    crowd.sim.advance(Duration::from_secs(5));
    assert_eq!((web.stats().running, worker.stats().running), (0, 1), "it has moved");
    let (told, _) = crowd.time(waiting);
    assert_eq!(told.expect("the waiter lives").expect("a result"), 7);
    let ended = crowd.memory.rows()[0].completed_at.expect("it has ended");
    let late = crowd.sim.clock().now().since(ended);
    assert!(late <= Duration::from_secs(2), "{late:?}");
}
