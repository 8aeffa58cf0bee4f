//! Ends of executions, branches and engines that come at an awkward moment.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mainstay_env::Env;
use mainstay_memory::Memory;
use mainstay_runtime::{Ctx, Engine, ErrorKind, Invocation, Queue, Status};
use mainstay_store::wrap::{Fault, FaultPlan, Method, Rates, WithFaults};
use mainstay_store::{Store, StoreClock};

use crate::support::{Log, World};

/// Polls a future once and drops it.
async fn once<F: IntoFuture>(future: F) -> Option<F::Output> {
    let mut future = pin!(future.into_future());
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[test]
fn what_a_branch_holds_is_dropped_with_a_body_that_ends_in_the_same_poll() {
    let world = World::new(1);
    let held = Arc::new(());
    let engine = world.launch(world.builder("web").function("hasty", {
        let held = held.clone();
        move |ctx: Ctx| {
            let held = held.clone();
            async move {
                let _branch = ctx.spawn(move |_| async move {
                    let _held = held;
                    Ok(())
                });
                Ok(())
            }
        }
    }));
    for _ in 0..20 {
        world.run(async { engine.start(Invocation::named("hasty")).await?.result().await }).expect("ended");
    }
    world.pass(Duration::from_secs(1));
    assert_eq!(Arc::strong_count(&held), 2, "the test and the function hold it");
}

#[test]
fn a_body_that_returns_in_the_poll_of_a_mismatch_is_set_aside_all_the_same() {
    let world = World::new(2);
    let build = |process: &str, step: &'static str| {
        world.builder(process).function("swallow", move |ctx: Ctx| async move {
            once(ctx.step(step, || async { Ok(1) })).await;
            if step == "old" {
                ctx.sleep(Duration::from_secs(30)).await?;
            }
            Ok(())
        })
    };
    let first = world.launch(build("first", "old"));
    world.run(async { first.start(Invocation::named("swallow")).id("w").await }).expect("started");
    world.pass(Duration::from_secs(1));
    // What a call has sent is written although the call is dropped.
    assert_eq!(world.step_names("w"), ["old", "DBOS.sleep"]);
    world.sim.kill("first");
    let second = world.launch(build("second", "new"));
    let result = world.run(second.handle_by_id::<()>("w").result());
    assert_eq!(result.expect_err("set aside").kind(), ErrorKind::Parked);
}

#[test]
fn fewer_positions_than_a_branch_has_taken_are_refused_and_the_branch_with_them() {
    let world = World::new(3);
    let log = Log::default();
    let engine = world.launch(world.builder("web").function("small", {
        let log = log.clone();
        move |ctx: Ctx| {
            let log = log.clone();
            async move {
                let branch = ctx.spawn(|ctx| {
                    let one = ctx.step("x", || async { Ok(1) });
                    let two = ctx.step("x", || async { Ok(2) });
                    async move {
                        log.note("ran");
                        Ok((one.await?, two.await?))
                    }
                });
                let error = branch.positions(1).await.expect_err("refused");
                assert_eq!(error.kind(), ErrorKind::Refused);
                ctx.step("x", || async { Ok(3) }).await
            }
        }
    }));
    let result = world.run(async { engine.start(Invocation::named("small").returning::<u32>()).await?.result().await });
    assert_eq!((result.expect("its own value"), log.all().len()), (3, 0));
}

#[test]
fn a_shutdown_goes_on_when_its_caller_gives_up_and_others_wait_for_its_end() {
    let world = World::new(4);
    let build = || {
        let env = world.env("web");
        world.builder("web").function("nap", move |ctx: Ctx| {
            let env = env.clone();
            async move {
                let long = || async {
                    env.sleep(Duration::from_secs(3600)).await;
                    Ok(())
                };
                ctx.step("long", long).await
            }
        })
    };
    let engine = world.launch(build());
    world.run(async { engine.start(Invocation::named("nap")).id("w").await }).expect("started");
    world.pass(Duration::from_secs(1));
    assert_eq!(engine.stats().running, 1);
    world.run(once(engine.shutdown(Duration::from_secs(10))));
    let clock = world.env("watch");
    let began = clock.monotonic();
    world.run(engine.shutdown(Duration::from_secs(1))).expect("shut down");
    let took = clock.monotonic().since(began);
    assert!(took >= Duration::from_secs(9) && took < Duration::from_secs(15), "the first one's limit counts: {took:?}");
    assert_eq!(engine.stats().running, 0);
    let again = world.launch(build());
    let status = world.run(again.handle_by_id::<()>("w").status()).expect("status");
    assert!(matches!(status, Status::Enqueued | Status::Pending), "{status}");
}

#[test]
fn an_engine_whose_callers_runtime_has_ended_takes_no_more_work() {
    let env = Env::system("orphan").expect("a thread");
    let store: Arc<dyn Store> = Arc::new(Memory::open(env.clone(), StoreClock::Server));
    let ended = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let builder = Engine::builder(store.clone())
        .app("shop")
        .settings(|settings| settings.audit(Duration::from_millis(20)).tick(Duration::from_millis(20)))
        .function("work", |_: Ctx| async { Ok(()) });
    let engine = ended.block_on(builder.launch()).expect("launched");
    drop(ended);
    let attempts = mainstay_env::block_on(async {
        engine.start(Invocation::named("work")).id("w").await.expect("stored");
        // Many audits later the row has still its one attempt: it waits for a process that can run it.
        env.sleep(Duration::from_millis(800)).await;
        store.workflow_rows(&["w".into()]).await.expect("rows")[0].as_ref().map(|row| row.attempts)
    });
    assert_eq!(attempts, Some(1));
    mainstay_env::block_on(engine.shutdown(Duration::from_secs(1))).expect("shut down");
}

#[test]
fn a_shutdown_does_not_wait_for_what_only_waits() {
    let world = World::new(5);
    let nap = |ctx: Ctx| async move { ctx.sleep(Duration::from_secs(3600)).await };
    let parent = |ctx: Ctx| async move { ctx.run(Invocation::named("nap").returning::<()>()).await };
    let engine = world.launch(world.builder("web").function("nap", nap).function("parent", parent));
    world.run(async { engine.start(Invocation::named("parent")).id("w").await }).expect("started");
    world.pass(Duration::from_secs(1));
    assert_eq!(engine.stats().running, 2);
    let clock = world.env("watch");
    let began = clock.monotonic();
    world.run(engine.shutdown(Duration::from_secs(30))).expect("shut down");
    let took = clock.monotonic().since(began);
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(engine.stats().running, 0);
}

#[test]
fn a_shutdown_is_over_when_its_process_was_ended_first() {
    let world = World::new(6);
    let nap = |ctx: Ctx| async move { ctx.sleep(Duration::from_secs(3600)).await };
    let engine = world.launch(world.builder("web").function("nap", nap));
    world.run(async { engine.start(Invocation::named("nap")).id("w").await }).expect("started");
    world.sim.kill("web");
    let env = world.env("watch");
    let over = world.run(env.timeout(Duration::from_secs(60), engine.shutdown(Duration::from_secs(1))));
    over.expect("nobody is left to stop").expect("shut down");
}

#[test]
fn a_shutdown_leaves_time_to_bodies_that_block_when_the_store_hangs() {
    let world = World::new(7);
    // All hangs but claims, so that one brings a row too late, which is to be given back.
    let late = Duration::from_secs(2);
    let plan = FaultPlan::new(1).everywhere(Rates { hang: 1.0, ..Rates::default() }).delay(late, late);
    let plan = plan.on(Method::QueueClaim, Rates { delay: 1.0, ..Rates::default() });
    let (store, faults) = WithFaults::new(Arc::new(world.memory.attach(world.env("web"))), plan);
    faults.stop();
    let nap = |ctx: Ctx| async move {
        ctx.sleep(Duration::from_secs(5)).await?;
        ctx.step("late", || async { Ok(()) }).await
    };
    let builder = Engine::builder(store).app("shop").executor("web").queue(Queue::new("q")).function("nap", nap);
    let engine = world.launch(builder);
    let other = world.launch(world.builder("other"));
    world.run(async { engine.start(Invocation::named("nap")).id("w").await }).expect("started");
    world.pass(Duration::from_secs(4));
    faults.start();
    world.pass(Duration::from_secs(2));
    world.run(async { other.start(Invocation::named("nap")).id("row").queue("q").await }).expect("enqueued");
    world.pass(Duration::from_millis(100));
    let limit = Duration::from_secs(3);
    let clock = world.env("watch");
    let began = clock.monotonic();
    world.run(engine.shutdown(limit)).expect("shut down");
    let took = clock.monotonic().since(began);
    // A row that is not given back, a lease that is not ended, a write that is not answered.
    assert!(faults.count(Method::Commit, Fault::Hang) >= 2, "{faults:?}");
    assert!(took >= limit && took <= limit + Duration::from_millis(1_600), "{took:?}");
}
