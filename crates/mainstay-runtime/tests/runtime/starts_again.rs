//! Starts that are made again: replayed by a process that knows other functions, or after their answer was lost.

use std::sync::Arc;
use std::time::Duration;

use mainstay_runtime::{Builder, Engine, ErrorKind, Queue, Registration, Status};
use mainstay_store::wrap::{FaultPlan, Faults, Method, Rates, WithFaults};

use crate::support::{Log, World};
use crate::tools::{body, call, secs};

/// A process whose parent notes how its start of a child came out, and whether it knows the child.
fn parent_of(world: &World, log: &Log, process: &str, with_child: bool) -> Builder {
    let parent = body!(
        [log] | ctx | {
            let started = ctx.start(call::<u32>("child")).await;
            log.note(if started.is_ok() { "started" } else { "refused" });
            ctx.step(if started.is_ok() { "good" } else { "bad" }, || async { Ok(()) }).await?;
            ctx.sleep(secs(20)).await?;
            match started {
                Ok(child) => child.result().await,
                Err(error) => Ok(u32::from(error.kind() == ErrorKind::Refused)),
            }
        }
    );
    let builder = world.builder(process).function("parent", parent);
    if with_child { builder.function("child", body!([] | _ctx | { Ok(7_u32) })) } else { builder }
}

#[test]
fn a_start_is_replayed_as_recorded_by_a_process_that_does_not_know_the_child() {
    let world = World::new(1);
    let log = Log::default();
    let first = world.launch(parent_of(&world, &log, "first", true));
    world.run(first.start(call::<u32>("parent")).id("p")).expect("start");
    world.pass(secs(2));
    world.sim.kill("first");
    let second = world.launch(parent_of(&world, &log, "second", false));
    assert_eq!(world.run(second.handle_by_id::<u32>("p").result()).expect("result"), 7);
    assert_eq!(log.all(), ["started", "started"]);
    assert_eq!(world.step_names("p"), ["child", "good", "DBOS.sleep", "DBOS.getResult"]);
}

#[test]
fn a_refused_start_is_recorded_and_replayed_by_a_process_that_knows_the_child() {
    let world = World::new(2);
    let log = Log::default();
    let first = world.launch(parent_of(&world, &log, "first", false));
    world.run(first.start(call::<u32>("parent")).id("p")).expect("start");
    world.pass(secs(2));
    assert_eq!(world.step_names("p"), ["child", "bad", "DBOS.sleep"]);
    world.sim.kill("first");
    let second = world.launch(parent_of(&world, &log, "second", true));
    assert_eq!(world.run(second.handle_by_id::<u32>("p").result()).expect("result"), 1);
    assert_eq!(log.all(), ["refused", "refused"]);
    assert!(world.find("p-0").is_none());
}

#[test]
fn refusals_of_the_call_itself_are_recorded_at_its_position() {
    let world = World::new(3);
    let work = body!(
        [] | ctx | {
            let encoding = ctx.start(call::<u32>("child").arg(f64::NAN)).await.expect_err("no number");
            let options = ctx.start(call::<u32>("child")).priority(1).await.expect_err("no queue");
            let run = ctx.run(call::<u32>("child").arg(f64::NAN)).await.expect_err("no number");
            ctx.step("after", || async { Ok(()) }).await?;
            Ok([encoding, options, run].map(|error| format!("{:?}", error.kind())))
        }
    );
    let child = body!([] | _ctx | { Ok(7_u32) });
    let engine = world.launch(world.builder("web").function("work", work).function("child", child));
    let handle = world.run(engine.start(call::<[String; 3]>("work")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), ["BadInput", "Refused", "BadInput"]);
    let rows: Vec<_> = world.steps("w").iter().map(|step| (step.position.0, step.name.to_string())).collect();
    let expected = [(0, "child"), (1, "child"), (2, "child"), (4, "after")];
    assert_eq!(rows, expected.map(|(position, name)| (position, name.to_owned())));
}

#[test]
fn a_child_of_a_siblings_id_and_another_function_is_a_conflict_that_is_recorded() {
    let world = World::new(4);
    let log = Log::default();
    let build = |process: &str| {
        let work = body!(
            [log] | ctx | {
                ctx.start(call::<u32>("one")).id("sibling").await?;
                let error = ctx.start(call::<u32>("two")).id("sibling").await.expect_err("taken");
                log.note(format!("{:?}", error.kind()));
                ctx.sleep(secs(20)).await?;
                Ok(())
            }
        );
        let builder = world.builder(process).function("work", work);
        builder.function("one", body!([] | _ctx | { Ok(1_u32) })).function("two", body!([] | _ctx | { Ok(2_u32) }))
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<()>("work")).id("w")).expect("start");
    world.pass(secs(2));
    assert_eq!(world.step_names("w"), ["one", "two", "DBOS.sleep"]);
    world.sim.kill("first");
    world.delete("sibling");
    let second = world.launch(build("second"));
    world.run(second.handle_by_id::<()>("w").result()).expect("result");
    assert_eq!(log.all(), ["Conflict", "Conflict"]);
}

/// A builder whose store does what it is asked and loses the answer, half of the time.
fn forgetful(world: &World, process: &str, seed: u64) -> (Builder, Faults) {
    let plan = FaultPlan::new(seed).everywhere(Rates { after: 0.5, ..Rates::default() });
    let (store, faults) = WithFaults::new(Arc::new(world.memory.attach(world.env(process))), plan);
    faults.stop();
    (Engine::builder(store).app("shop").executor(process), faults)
}

#[test]
fn a_child_whose_starts_answer_was_lost_runs_at_once_with_its_first_attempt() {
    for seed in 0..12 {
        let world = World::new(seed);
        let log = Log::default();
        let (builder, faults) = forgetful(&world, "web", seed);
        let child = body!(
            [log] | ctx | {
                log.note(format!("attempt {}", ctx.attempt()));
                Ok(7_u32)
            }
        );
        let parent = body!([] | ctx | { ctx.run(call::<u32>("child")).await });
        let builder =
            builder.function("parent", parent).register(Registration::function("child", child).max_attempts(1));
        let engine = world.launch(builder);
        faults.start();
        let handle = world.run(engine.start(call::<u32>("parent")).id("p")).expect("start");
        assert_eq!(world.run(handle.result()).expect("result"), 7, "seed {seed}");
        assert_eq!(log.all(), ["attempt 1"], "seed {seed}");
    }
}

#[test]
fn a_start_of_another_application_or_version_needs_a_queue() {
    let world = World::new(5);
    let work = body!([] | _ctx | { Ok(7_u32) });
    let parent = body!(
        [] | ctx | {
            let error = ctx.start(call::<u32>("work")).app("billing").await.expect_err("another application");
            Ok(error.kind() == ErrorKind::Refused)
        }
    );
    let builder = world.builder("web").queue(Queue::new("jobs")).version("v1");
    let engine = world.launch(builder.function("work", work).function("parent", parent));
    let start = || engine.start(call::<u32>("work")).id("w");
    for refused in [start().app("billing"), start().version("v9"), start().app("shop").version("v9")] {
        assert_eq!(world.run(refused).expect_err("it would never be recovered").kind(), ErrorKind::Refused);
    }
    let parent = world.run(engine.start(call::<bool>("parent"))).expect("start");
    assert!(world.run(parent.result()).expect("result"));
    assert!(world.find("w").is_none());
    let own = world.run(start().app("shop").version("v1")).expect("our own");
    assert_eq!(world.run(own.result()).expect("result"), 7);
    let queued = engine.start(call::<u32>("work")).id("q").queue("jobs").app("billing").version("v9");
    world.run(queued).expect("for another program");
    world.pass(secs(5));
    assert_eq!(world.status("q"), Status::Enqueued);
}

#[test]
fn a_workflow_cannot_start_itself() {
    let world = World::new(6);
    let work = body!(
        [] | ctx | {
            let own = ctx.workflow_id().clone();
            let run = ctx.run(call::<u32>("work")).with(|start| start.id(own.clone())).await;
            let start = ctx.start(call::<u32>("work")).id(own.clone()).await.map(drop);
            let inside = ctx
                .step("inside", || async {
                    let inside = ctx.start(call::<u32>("work")).id(own.clone()).await;
                    Ok(inside.is_err_and(|error| error.kind() == ErrorKind::Refused))
                })
                .await?;
            let refused = |error: mainstay_runtime::Error| error.kind() == ErrorKind::Refused;
            Ok(u32::from(run.is_err_and(refused)) + u32::from(start.is_err_and(refused)) + u32::from(inside))
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<u32>("work")).id("w")).expect("start");
    let result = world.run(handle.result().timeout(secs(600)));
    assert_eq!(result.expect("it waits for itself"), 3);
    assert_eq!(world.step_names("w"), ["work", "work", "inside"]);
}

#[test]
fn a_row_that_a_stopping_process_claims_keeps_its_only_attempt() {
    let mut given_back = 0;
    for step in 0..30_u64 {
        let world = World::new(step);
        let log = Log::default();
        let work = || Registration::function("work", body!([log] | _ctx | { Ok(log.note("began")) })).max_attempts(1);
        let starter = world.launch(world.builder("starter").queue(Queue::new("jobs")).listen_queues(["none"]));
        let handle = world.run(starter.start(call::<()>("work")).id("w").queue("jobs")).expect("start");
        let late = Rates { delay: 1.0, ..Rates::default() };
        let plan = FaultPlan::new(step).on(Method::QueueClaim, late).delay(millis(100), millis(200));
        let (store, _faults) = WithFaults::new(Arc::new(world.memory.attach(world.env("first"))), plan);
        let first = world.launch(Engine::builder(store).app("shop").executor("first").register(work()));
        world.pass(millis(step * 10));
        world.run(first.shutdown(secs(5))).expect("shutdown");
        given_back += first.stats().given_back;
        let second = world.launch(world.builder("second").register(work()));
        assert!(world.run(handle.result()).is_ok(), "step {step}: {:?}", world.status("w"));
        assert_eq!(log.all(), ["began"], "step {step}");
        drop(second);
    }
    assert!(given_back > 0, "no claim was answered while its process stopped");
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
