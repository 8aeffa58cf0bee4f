//! Launch and shutdown: names, settings, failures on the way, what is left behind, and what may be written to a log.

use std::future::{Future, IntoFuture, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mainstay_memory::Trouble;
use mainstay_runtime::{Builder, Ctx, Engine, ErrorKind, Queue, Registration, Status};
use mainstay_store::wrap::{FaultPlan, Method, Rates, WithFaults};
use mainstay_store::{ExecutorStore, Registry, Store};

use crate::support::{Log, World};
use crate::tools::{body, call, poll_once, secs};

fn versions(world: &World, app: &str) -> Vec<String> {
    let listed = world.run(world.memory.version_list(&app.into())).expect("versions");
    listed.iter().map(|version| version.name.to_string()).collect()
}

fn leases(world: &World) -> usize {
    world.run(world.memory.lease_list(&"shop".into())).expect("leases").leases.len()
}

/// Tasks of a process.
fn tasks(world: &World, process: &str) -> Vec<String> {
    let own = format!("{process}:");
    world.sim.live().into_iter().filter(|task| task.starts_with(&own)).collect()
}

/// Nothing was written and no task runs.
fn untouched(world: &World, process: &str) -> bool {
    let queues = world.run(world.memory.queue_list(&"shop".into())).expect("queues");
    world.memory.rows().is_empty()
        && queues.is_empty()
        && versions(world, "shop").is_empty()
        && leases(world) == 0
        && tasks(world, process).is_empty()
}

#[test]
fn a_launch_registers_its_version_once_and_for_its_application() {
    let world = World::new(1);
    for process in ["a", "b"] {
        world.launch(world.builder(process));
    }
    assert_eq!(versions(&world, "shop"), ["shop@1"]);
    world.launch(world.builder("c").version("v2"));
    let till = |process: &str| Engine::builder(world.memory.attach(world.env(process))).app("till");
    world.launch(till("d"));
    assert_eq!((versions(&world, "shop").len(), versions(&world, "till")), (2, vec!["till@1".to_owned()]));
    let error = world.run(till("e").version("v2").launch()).expect_err("another application's version");
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("v2 belongs to the application shop"));
    assert_eq!(tasks(&world, "e"), Vec::<String>::new());
}

#[test]
fn an_executor_is_its_name_and_a_nonce_of_the_launch_and_local_unless_named() {
    let world = World::new(2);
    let unnamed = || world.launch(Engine::builder(world.memory.attach(world.env("web"))).app("shop"));
    let ids = [unnamed(), unnamed(), world.launch(world.builder("web"))].map(|engine| engine.executor_id().to_string());
    for (id, name) in ids.iter().zip(["local", "local", "web"]) {
        let nonce = id.strip_prefix(name).and_then(|rest| rest.strip_prefix('~')).expect("a nonce");
        assert_eq!(nonce.len(), 12, "{id}");
    }
    assert_ne!(ids[0], ids[1]);
    assert_eq!(leases(&world), 3);
}

#[test]
fn a_launch_without_an_application_says_how_to_name_it_and_the_version_needs_no_name() {
    let world = World::new(3);
    let nameless = Engine::builder(world.memory.attach(world.env("web"))).launch();
    let error = world.run(nameless).expect_err("no name");
    assert!(error.kind() == ErrorKind::Refused && error.message().contains(".app(\"shop\")"), "{error:?}");
    assert!(untouched(&world, "web"));
    let engine = world.launch(world.builder("web"));
    assert_eq!(versions(&world, "shop"), ["shop@1"]);
    assert!(format!("{engine:?}").contains("shop@1"));
}

#[test]
fn settings_are_judged_before_anything_is_written() {
    let world = World::new(4);
    let build = || {
        let idle = body!([] | _ctx | { Ok(()) });
        world.builder("web").queue(Queue::new("jobs")).function("idle", idle)
    };
    let idle = || body!([] | _ctx | { Ok(()) });
    let long = "n".repeat(5_000);
    let refused: Vec<(&str, Builder)> = vec![
        ("an application without a name", build().app("")),
        ("a long application", build().app(long.as_str())),
        ("a version without a name", build().version("")),
        ("an executor without a name", build().executor("")),
        ("the mark of the nonce", build().executor("a~b")),
        ("no place", build().max_running(0)),
        ("a beat as long as the lease", build().settings(|config| config.beat(secs(10)).ttl(secs(10)))),
        ("no tick", build().settings(|config| config.tick(Duration::ZERO))),
        ("a workflow twice", build().function("idle", idle())),
        ("a workflow without a name", build().function("", idle())),
        ("a reserved name", build().function("DBOS.idle", idle())),
        ("no attempt", build().register(Registration::function("other", idle()).max_attempts(0))),
        ("a queue without a slot", build().queue(Queue::new("none").concurrency(0))),
        ("more in a process than in all", build().queue(Queue::new("odd").concurrency(1).worker_concurrency(2))),
        ("a queue without an interval", build().queue(Queue::new("odd").polling(Duration::ZERO))),
        ("a queue without a name", build().queue(Queue::new(""))),
        ("the engine's own queue", build().queue(Queue::new("_dbos_internal_queue"))),
    ];
    for (what, builder) in refused {
        let error = world.run(builder.launch()).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error:?}");
        assert!(untouched(&world, "web"), "{what}");
    }
    world.launch(build());
    assert!(!untouched(&world, "web"));
}

#[test]
fn a_builder_that_is_not_launched_has_done_nothing() {
    let world = World::new(5);
    drop(world.builder("web").queue(Queue::new("jobs")).version("v1"));
    drop(world.builder("web").launch());
    assert!(untouched(&world, "web"));
}

#[test]
fn a_failed_launch_leaves_no_task_and_may_be_followed_by_a_good_one() {
    for method in [Method::VersionRegister, Method::QueueRegister, Method::LeaseBeat] {
        let world = World::new(6);
        let plan = FaultPlan::new(1).on(method, Rates { before: 1.0, ..Rates::default() });
        let (store, faults) = WithFaults::new(Arc::new(world.memory.attach(world.env("web"))), plan);
        let build = || {
            let idle = body!([] | _ctx | { Ok(7) });
            Engine::builder(store.clone()).app("shop").queue(Queue::new("jobs")).function("idle", idle)
        };
        let error = world.run(build().launch()).expect_err("no store");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{method:?}");
        world.pass(secs(1));
        assert_eq!(tasks(&world, "web"), Vec::<String>::new(), "{method:?}");
        faults.stop();
        let engine = world.launch(build());
        let handle = world.run(engine.start(call::<u8>("idle"))).expect("start");
        assert_eq!(world.run(handle.result()).expect("result"), 7);
    }
}

/// Polls a future so often, then drops it unless it is ready.
async fn polled<F: Future>(future: F, mut polls: u32) -> Option<F::Output> {
    let mut future = Box::pin(future);
    poll_fn(|cx| {
        if polls == 0 {
            return Poll::Ready(None);
        }
        polls -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[test]
fn a_launch_that_is_dropped_anywhere_leaves_nothing_that_works_on() {
    let mut dropped = 0;
    for polls in 1.. {
        let world = World::troubled(7, Trouble::default());
        let build = || {
            let idle = body!([] | _ctx | { Ok(7) });
            world.builder("web").queue(Queue::new("jobs")).function("idle", idle)
        };
        if world.run(polled(build().launch(), polls)).is_some() {
            break;
        }
        dropped += 1;
        world.pass(secs(30));
        assert_eq!(tasks(&world, "web"), Vec::<String>::new(), "after {polls} polls");
        let engine = world.launch(build());
        let handle = world.run(engine.start(call::<u8>("idle"))).expect("start");
        assert_eq!(world.run(handle.result()).expect("result"), 7);
    }
    assert!(dropped >= 3, "only {dropped} places");
}

#[test]
fn two_launches_are_two_executors_each_with_what_its_builder_registered() {
    let world = World::new(8);
    let named = |name: &str| {
        let answers = body!([] | ctx | { Ok(ctx.workflow_name().to_owned()) });
        world.launch(world.builder("web").function(name, answers))
    };
    let (one, two) = (named("one"), named("two"));
    assert_ne!(one.executor_id(), two.executor_id());
    for (engine, own, other) in [(&one, "one", "two"), (&two, "two", "one")] {
        let handle = world.run(engine.start(call::<String>(own))).expect("start");
        assert_eq!(world.run(handle.result()).expect("result"), own);
        let error = world.run(engine.start(call::<String>(other))).expect_err("not registered");
        assert!(error.kind() == ErrorKind::Refused && error.message().contains("not registered"), "{error:?}");
    }
    world.run(one.shutdown(secs(1))).expect("shutdown");
    let handle = world.run(two.start(call::<String>("two"))).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), "two");
}

/// An engine whose `work` runs a step for so many seconds and then another.
fn working(world: &World, log: &Log, process: &str) -> Engine {
    let env = world.env(process);
    let work = body!([log, env] |ctx, seconds: u64| {
        ctx.step("first", || async { Ok(log.note("first")) }).await?;
        ctx.step("long", || async { env.sleep(secs(seconds)).await; Ok(log.note("long")) }).await?;
        Ok(seconds)
    });
    world.launch(world.builder(process).function("work", work))
}

#[test]
fn a_shutdown_waits_for_what_runs_and_leaves_the_rest_to_others_from_where_it_was() {
    let world = World::new(9);
    let log = Log::default();
    let engine = working(&world, &log, "web");
    for (id, seconds) in [("short", 3_u64), ("long", 60)] {
        world.run(engine.start(call::<u64>("work").arg(seconds)).id(id)).expect("start");
    }
    world.pass(secs(1));
    let waiter = engine.handle_by_id::<u64>("long");
    let waiting = world.env("web").tasks().spawn("waiter", async move { waiter.result().await });
    let before = world.elapsed();
    world.run(engine.shutdown(secs(10))).expect("shutdown");
    assert!((secs(10)..secs(13)).contains(&(world.elapsed() - before)), "{:?}", world.elapsed() - before);
    let ended = world.run(waiting).expect("the waiter ends");
    assert_eq!(ended.expect_err("it has not ended").kind(), ErrorKind::Stopped);
    assert_eq!((world.status("short"), world.status("long")), (Status::Success, Status::Enqueued));
    assert_eq!((world.step_names("long"), leases(&world)), (vec!["first".to_owned()], 0));
    assert_eq!(tasks(&world, "web"), Vec::<String>::new());
    let other = working(&world, &log, "other");
    assert_eq!(world.run(other.handle_by_id::<u64>("long").result()).expect("result"), 60);
    assert_eq!((log.count("first"), log.count("long")), (2, 2));
}

#[test]
fn a_shutdown_without_work_is_over_at_once_and_again_it_does_nothing() {
    let world = World::new(10);
    let engine = working(&world, &Log::default(), "web");
    world.pass(secs(5));
    let before = world.elapsed();
    world.run(engine.shutdown(secs(60))).expect("shutdown");
    world.run(engine.shutdown(secs(60))).expect("again");
    world.run(engine.clone().shutdown(secs(60))).expect("by a clone");
    assert!(world.elapsed() - before < secs(1), "{:?}", world.elapsed() - before);
    assert_eq!((leases(&world), tasks(&world, "web")), (0, Vec::new()));
}

#[test]
fn what_comes_to_a_stopped_engine_is_refused_and_what_was_on_its_way_is_left_to_others() {
    for seed in 0..8 {
        let world = World::troubled(seed, Trouble::default());
        let log = Log::default();
        let engine = working(&world, &log, "web");
        // On its way when the shutdown begins: stored, or not; never half.
        let start = engine.start(call::<u64>("work").arg(0_u64)).id("late");
        let late = world.run(poll_once(start));
        assert!(late.is_none());
        world.run(engine.shutdown(Duration::ZERO)).expect("shutdown");
        let error = world.run(engine.start(call::<u64>("work").arg(0_u64)).id("after")).expect_err("stopped");
        assert_eq!(error.kind(), ErrorKind::Stopped);
        assert_eq!(
            world.run(engine.handle_by_id::<u64>("late").result()).expect_err("stopped").kind(),
            ErrorKind::Stopped
        );
        assert_eq!(tasks(&world, "web"), Vec::<String>::new());
        assert!(world.find("after").is_none());
        let stored = world.find("late").is_some();
        let other = working(&world, &log, "other");
        if stored {
            assert_eq!(world.run(other.handle_by_id::<u64>("late").result()).expect("result"), 0);
            assert!(log.count("long") == 1, "{:?}", log.all());
        }
        world.pass(secs(60));
        assert!(world.sim.panics().is_empty(), "{:?}", world.sim.panics());
    }
}

#[test]
fn debug_shows_no_address_of_the_store() {
    let world = World::new(11);
    let secret = "postgres://shop:hunter2@db";
    let lent: Arc<Mutex<Option<Ctx>>> = Arc::default();
    let work = body!(
        [lent] | ctx | {
            *lent.lock().expect("lock") = Some(ctx);
            Ok(())
        }
    );
    let build = || {
        let store: Arc<dyn Store> = Arc::new(world.memory.attach(world.env(secret)));
        Engine::builder(store).app("shop").queue(Queue::new("jobs")).function("work", work.clone())
    };
    let builder = format!("{:?}", build());
    let engine = world.launch(build());
    let start = engine.start(call::<()>("work"));
    let started = format!("{start:?}");
    let handle = world.run(start).expect("start");
    world.run(handle.result()).expect("result");
    let ctx = lent.lock().expect("lock").take();
    let shown = format!("{builder} {engine:?} {started} {handle:?} {:?} {ctx:?}", handle.result());
    assert!(shown.contains("shop") && !shown.contains("hunter2"), "{shown}");
}

/// Accepts what may move between threads.
fn sendable<T: Send>(value: T) -> T {
    value
}

#[test]
fn futures_of_the_engine_can_move_between_threads() {
    let world = World::new(12);
    let work = body!(
        [] | ctx | {
            sendable(ctx.step("s", || async { Ok(()) }).into_future()).await?;
            sendable(ctx.sleep(secs(1)).into_future()).await?;
            sendable(ctx.race([ctx.sleep(secs(1))]).into_future()).await?;
            sendable(ctx.spawn(|_| async { Ok(()) })).await?;
            let child = sendable(ctx.start(call::<()>("idle")).into_future()).await?;
            sendable(child.result().into_future()).await?;
            sendable(ctx.run(call::<()>("idle")).into_future()).await
        }
    );
    let idle = body!([] | _ctx | { Ok(()) });
    let engine = world.run(sendable(world.builder("web").function("work", work).function("idle", idle).launch()));
    let engine = engine.expect("launch");
    let handle = world.run(sendable(engine.start(call::<()>("work")).into_future())).expect("start");
    world.run(sendable(handle.status().into_future())).expect("status");
    world.run(sendable(handle.result().timeout(secs(60)).into_future())).expect("result");
    world.run(sendable(handle.cancel().into_future())).expect("cancel");
    world.run(sendable(handle.row())).expect("row");
    world.run(sendable(engine.resume("w"))).expect_err("there is none");
    world.run(sendable(engine.shutdown(secs(1)))).expect("shutdown");
}

#[test]
fn nothing_that_is_registered_keeps_its_engine_or_store_alive() {
    let world = World::new(13);
    let store: Arc<dyn Store> = Arc::new(world.memory.attach(world.env("web")));
    let (held, token) = (Arc::downgrade(&store), Arc::new(()));
    let lent: Arc<Mutex<Option<Engine>>> = Arc::default();
    let work = body!(
        [token, lent] | ctx | {
            // A body that holds the engine it runs on gives it back when it ends.
            let engine = lent.lock().expect("lock").clone();
            ctx.step("step", || async { Ok(()) }).await?;
            ctx.sleep(secs(60)).await?;
            Ok(engine.is_some() && Arc::strong_count(&token) > 0)
        }
    );
    let engine = world.launch(Engine::builder(store).app("shop").function("work", work));
    *lent.lock().expect("lock") = Some(engine.clone());
    let handle = world.run(engine.start(call::<bool>("work"))).expect("start");
    world.pass(secs(1));
    lent.lock().expect("lock").take();
    world.run(engine.shutdown(secs(1))).expect("shutdown");
    assert!(held.upgrade().is_some(), "the handle still works on it");
    drop((engine, handle));
    assert_eq!(Arc::strong_count(&token), 1, "the registered closure is still held");
    assert!(held.upgrade().is_none(), "the store is still held");
}
