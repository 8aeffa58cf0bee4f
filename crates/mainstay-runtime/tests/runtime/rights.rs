//! Rights that the role lacks: the caller is told at once which, what runs waits, and the log says why.

use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_memory::Memory;
use mainstay_runtime::{Engine, ErrorKind};
use mainstay_store::{ErrorKind as StoreKind, StoreError, pass_on};
use tracing::Level;

use crate::logs::{count, logged};
use crate::support::World;
use crate::tools::{body, call, secs};

/// Can the role not write, not read, or is the store away?
#[derive(Clone, Copy)]
enum Lack {
    Write,
    Read,
    Store,
}

/// What a store lacks at the moment.
#[derive(Clone, Default)]
struct Lacks(Arc<[AtomicBool; 3]>);

impl Lacks {
    fn set(&self, what: Lack, lacks: bool) {
        self.0[what as usize].store(lacks, Ordering::Relaxed);
    }

    fn has(&self, what: Lack) -> bool {
        self.0[what as usize].load(Ordering::Relaxed)
    }
}

/// A store that lacks something.
struct Rightless {
    inner: Memory,
    lacks: Lacks,
}

impl std::fmt::Debug for Rightless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rightless").finish_non_exhaustive()
    }
}

impl Rightless {
    async fn go<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = mainstay_store::Result<T>>,
    ) -> mainstay_store::Result<T> {
        if method == "commit" && self.lacks.has(Lack::Store) {
            return Err(StoreError::new(StoreKind::Unavailable, method));
        }
        let table = match method {
            "commit" if self.lacks.has(Lack::Write) => "operation_outputs",
            "workflow_standing" | "workflow_rows" if self.lacks.has(Lack::Read) => "workflow_output",
            _ => return call.await,
        };
        Err(StoreError::new(StoreKind::Denied, method).with_source(format!("permission denied for table {table}")))
    }
}

pass_on! { Rightless => inner via go:
WriteStore, WorkflowStore, QueueStore, Registry, ExecutorStore, Maintenance, SignalStore, ScheduleStore, AdminStore }
pass_on! { Rightless => inner: Store }

/// An engine with a body that naps and steps, and the switches of its rights.
fn rightless(world: &World) -> (Engine, Lacks) {
    let lacks = Lacks::default();
    let store = Rightless { inner: world.memory.attach(world.env("web")), lacks: lacks.clone() };
    let nap = body!(
        [] | ctx | {
            ctx.sleep(secs(2)).await?;
            ctx.step("one", || async { Ok(7_u64) }).await
        }
    );
    let builder = Engine::builder(Arc::new(store)).app("shop").executor("web");
    (world.launch(builder.function("nap", nap)), lacks)
}

#[test]
fn a_missing_right_comes_to_the_caller_at_once_with_the_name_of_the_table() {
    let world = World::new(3);
    let (engine, lacks) = rightless(&world);
    world.run(engine.start(call::<u64>("nap")).id("w")).expect("start");
    let began = world.elapsed();
    lacks.set(Lack::Write, true);
    lacks.set(Lack::Read, true);
    let handle = engine.handle_by_id::<u64>("w");
    let told = [
        ("operation_outputs", world.run(engine.start(call::<u64>("nap"))).map(drop)),
        ("operation_outputs", world.run(handle.cancel())),
        ("workflow_output", world.run(handle.status()).map(drop)),
        ("workflow_output", world.run(engine.resume("w"))),
    ];
    for (table, told) in told {
        let error = told.expect_err(table);
        assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
        assert!(error.message().contains(&format!("permission denied for table {table}")), "{error:?}");
    }
    // A lane in trouble asks once a second while a caller waits.
    assert!(world.elapsed() <= began + secs(4), "nothing is tried again: {:?}", world.elapsed());
}

#[test]
fn what_runs_waits_for_a_missing_right_and_the_first_line_of_the_log_names_the_table() {
    for outage_first in [false, true] {
        let world = World::new(4);
        let (engine, lacks) = rightless(&world);
        let handle = world.run(engine.start(call::<u64>("nap")).id("w")).expect("start");
        let ((), lines) = logged(|| {
            lacks.set(Lack::Store, outage_first);
            world.pass(secs(10 * u64::from(outage_first)));
            lacks.set(Lack::Store, false);
            lacks.set(Lack::Write, true);
            world.pass(secs(15));
        });
        let told = |line: &&mainstay_env::LogLine| line.text.contains("store does not commit");
        let last = lines.iter().rfind(told).expect("a line");
        assert!(last.level == Level::WARN && last.text.contains("for table operation_outputs"), "{lines:?}");
        assert_eq!(lines.iter().filter(told).count(), 1 + usize::from(outage_first), "{lines:?}");
        lacks.set(Lack::Write, false);
        assert_eq!(world.run(handle.result()).expect("it goes on"), 7);
    }
}

#[test]
fn a_wait_that_may_not_read_says_so_in_the_log_and_when_its_time_is_over() {
    let world = World::silent(5);
    let (engine, lacks) = rightless(&world);
    let runner = world.launch(world.builder("runner").function(
        "nap",
        body!(
            [] | ctx | {
                ctx.sleep(secs(30)).await?;
                Ok(7_u64)
            }
        ),
    ));
    world.run(runner.start(call::<u64>("nap")).id("w")).expect("start");
    lacks.set(Lack::Read, true);
    let handle = engine.handle_by_id::<u64>("w");
    let (error, lines) = logged(|| world.run(handle.result().timeout(secs(20)).into_future()).expect_err("in vain"));
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("permission denied for table workflow_output"), "{error:?}");
    assert_eq!(count(&lines, Level::WARN, "permission denied for table workflow_output"), 1, "{lines:?}");
    lacks.set(Lack::Read, false);
    let error = world.run(handle.result().timeout(secs(1))).expect_err("it naps");
    assert!(error.kind() == ErrorKind::Timeout && !error.message().contains("permission"), "{error:?}");
    assert_eq!(world.run(handle.result()).expect("read again"), 7);
}
