//! Cancel and resume: in every state, heard of in every way, and taken up again with the right code.

use std::sync::{Arc, Mutex};

use mainstay_runtime::{ErrorKind, Handle, Queue, Registration, Status};

use crate::support::{Log, World};
use crate::tools::{Gone, body, call, secs};

/// Waits inside a step, then in a sleep, then makes a step more.
fn stations(world: &World, log: &Log, process: &str) -> mainstay_runtime::Builder {
    let env = world.env(process);
    let stations = body!(
        [log, env] | ctx | {
            let _gone = Gone(log.clone(), "dropped");
            ctx.step("one", || async {
                env.sleep(secs(20)).await;
                Ok(log.note("one"))
            })
            .await?;
            ctx.sleep(secs(20)).await?;
            ctx.step("two", || async { Ok(log.note("two")) }).await?;
            Ok(2)
        }
    );
    world.builder(process).queue(Queue::new("jobs").worker_concurrency(1)).function("stations", stations)
}

#[test]
fn a_workflow_is_cancelled_in_every_state_and_one_that_has_ended_is_not() {
    let world = World::new(1);
    let log = Log::default();
    let engine = world.launch(stations(&world, &log, "web").function("done", body!([] | _ctx | { Ok(1) })));
    let start = |id: &str| engine.start(call::<u32>("stations")).id(id);
    for (id, start) in [
        ("sleeping", start("sleeping")),
        ("running on a queue", start("running on a queue").queue("jobs")),
        ("delayed", start("delayed").queue("jobs").delay(secs(1_000))),
    ] {
        assert_eq!(world.run(start).expect("start").id().as_str(), id);
        world.pass(secs(1));
    }
    world.pass(secs(20));
    for id in ["enqueued", "in a step"] {
        let start = if id == "enqueued" { start(id).queue("jobs") } else { start(id) };
        world.run(start).expect("start");
    }
    let done = world.run(engine.start(call::<u32>("done")).id("done")).expect("start");
    assert_eq!(world.run(done.result()).expect("result"), 1);
    world.pass(secs(1));
    assert_eq!((world.status("delayed"), world.status("enqueued")), (Status::Delayed, Status::Enqueued));
    // What waits goes first: a place that comes free is taken at once.
    for id in ["delayed", "enqueued", "sleeping", "running on a queue", "in a step", "done", "unknown"] {
        let handle = engine.handle_by_id::<u32>(id);
        world.run(handle.cancel()).expect("cancel");
        world.run(handle.cancel()).expect("cancelling again changes nothing");
    }
    for id in ["sleeping", "running on a queue", "delayed", "enqueued", "in a step"] {
        let error = world.run(engine.handle_by_id::<u32>(id).result()).expect_err(id);
        assert_eq!((error.kind(), world.status(id)), (ErrorKind::Cancelled, Status::Cancelled), "{id}");
    }
    assert_eq!(world.run(done.result()).expect("it had ended"), 1);
    world.pass(secs(200));
    assert_eq!((log.count("one"), log.count("two"), log.count("dropped")), (2, 0, 3));
    assert!(world.find("unknown").is_none());
    assert_eq!(engine.stats().running, 0);
}

#[test]
fn a_running_body_hears_of_its_cancellation_by_a_hint_at_once_and_without_one_within_the_poll() {
    for (world, most) in [(World::new(2), 0), (World::silent(2), 6)] {
        let log = Log::default();
        let engine = world.launch(stations(&world, &log, "web"));
        let handle = world.run(engine.start(call::<u32>("stations")).id("w")).expect("start");
        world.pass(secs(1));
        world.run(handle.cancel()).expect("cancel");
        world.pass(secs(most));
        assert_eq!(log.all(), ["dropped"]);
        world.pass(secs(100));
        assert_eq!(log.all(), ["dropped"]);
        assert_eq!(world.steps("w").len(), 0);
    }
}

#[test]
fn a_body_that_writes_learns_of_its_cancellation_from_the_answer() {
    let world = World::silent(3);
    let (log, env) = (Log::default(), world.env("web"));
    let busy = body!(
        [log, env] | ctx | {
            let _gone = Gone(log.clone(), "dropped");
            for n in 0..100 {
                ctx.step("step", || async {
                    env.sleep(std::time::Duration::from_millis(100)).await;
                    Ok(log.note(format!("{n}")))
                })
                .await?;
            }
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("busy", busy));
    let handle = world.run(engine.start(call::<()>("busy")).id("w")).expect("start");
    world.pass(std::time::Duration::from_millis(450));
    world.run(handle.cancel()).expect("cancel");
    world.pass(std::time::Duration::from_millis(200));
    // The step that was on runs to its end, and its write is refused.
    assert_eq!(log.all(), ["0", "1", "2", "3", "4", "dropped"]);
    assert_eq!(world.steps("w").len(), 4);
}

#[test]
fn the_children_of_a_cancelled_workflow_go_on() {
    let world = World::new(4);
    let wait = body!(
        [] | ctx | {
            ctx.sleep(secs(10)).await?;
            Ok(10)
        }
    );
    let parent = body!([] | ctx | { ctx.run(call::<u32>("wait")).await });
    let engine = world.launch(world.builder("web").function("wait", wait).function("parent", parent));
    let handle = world.run(engine.start(call::<u32>("parent")).id("p")).expect("start");
    world.pass(secs(1));
    world.run(handle.cancel()).expect("cancel");
    assert_eq!(world.run(engine.handle_by_id::<u32>("p-0").result()).expect("the child"), 10);
    assert_eq!(world.status("p"), Status::Cancelled);
}

#[test]
fn a_body_cancels_others_once_and_never_itself() {
    let world = World::new(5);
    let log = Log::default();
    let own: Arc<Mutex<Option<Handle<()>>>> = Arc::default();
    let build = |process: &str| {
        let wait = body!(
            [log] | ctx | {
                log.note("begun");
                ctx.sleep(secs(30)).await?;
                Ok(30)
            }
        );
        let parent = body!(
            [own] | ctx | {
                let handle = own.lock().expect("no panic").clone().expect("a handle");
                let error = handle.cancel().await.expect_err("its own");
                assert_eq!(error.kind(), ErrorKind::Refused);
                let child = ctx.start(call::<u32>("wait")).id("child").await?;
                ctx.sleep(secs(1)).await?;
                child.cancel().await?;
                ctx.sleep(secs(40)).await?;
                Ok(())
            }
        );
        world.builder(process).function("wait", wait).function("parent", parent)
    };
    let first = world.launch(build("first"));
    *own.lock().expect("no panic") = Some(first.handle_by_id("p"));
    world.run(first.start(call::<()>("parent")).id("p")).expect("start");
    world.pass(secs(5));
    assert_eq!(world.status("child"), Status::Cancelled);
    // Resumed meanwhile: a replay of the cancellation does not cancel it again.
    world.run(first.resume("child")).expect("resume");
    world.sim.kill("first");
    let second = world.launch(build("second"));
    *own.lock().expect("no panic") = Some(second.handle_by_id("p"));
    world.run(second.handle_by_id::<()>("p").result()).expect("result");
    assert_eq!(world.run(second.handle_by_id::<u32>("child").result()).expect("not cancelled again"), 30);
    assert_eq!(world.step_names("p"), ["wait", "DBOS.sleep", "DBOS.cancelWorkflow", "DBOS.sleep"]);
}

#[test]
fn a_cancelled_workflow_is_resumed_from_its_last_finished_step() {
    let world = World::new(6);
    let log = Log::default();
    let engine = world.launch(stations(&world, &log, "web"));
    let handle = world.run(engine.start(call::<u32>("stations")).id("w")).expect("start");
    world.pass(secs(25));
    world.run(handle.cancel()).expect("cancel");
    world.pass(secs(30));
    world.run(engine.resume("w")).expect("resume");
    assert_eq!(world.run(handle.result()).expect("result"), 2);
    assert_eq!((log.count("one"), log.count("two"), world.row("w").attempts), (1, 1, 1));
}

#[test]
fn a_resume_moves_what_waits_to_the_internal_queue_and_refuses_the_rest() {
    let world = World::new(7);
    let log = Log::default();
    let engine = world.launch(stations(&world, &log, "web"));
    let start = |id: &str| engine.start(call::<u32>("stations")).id(id);
    world.run(start("running").queue("jobs")).expect("start");
    world.pass(secs(1));
    world.run(start("waiting").queue("jobs")).expect("start");
    world.run(start("delayed").queue("jobs").delay(secs(1_000))).expect("start");
    world.pass(secs(1));
    let running = world.run(engine.resume("running")).expect_err("it runs");
    assert!(running.kind() == ErrorKind::Conflict && running.message().contains("running"), "{running:?}");
    assert_eq!(world.run(engine.resume("unknown")).expect_err("unknown").kind(), ErrorKind::NotFound);
    for id in ["waiting", "delayed"] {
        world.run(engine.resume(id)).expect("resume");
        world.pass(secs(1));
        assert_eq!(world.status(id), Status::Pending, "{id} waits for the queue no more");
    }
    assert_eq!(world.run(engine.handle_by_id::<u32>("running").result()).expect("result"), 2);
    let ended = world.run(engine.resume("running")).expect_err("it has ended");
    assert_eq!(ended.kind(), ErrorKind::Conflict);
    assert_eq!(world.row("running").attempts, 1);
}

#[test]
fn a_workflow_set_aside_by_a_mismatch_is_resumed_after_the_right_code_is_deployed() {
    let world = World::new(8);
    let log = Log::default();
    let build = |process: &str, renamed: bool| {
        let work = body!(
            [log] | ctx | {
                let name = if renamed { "renamed" } else { "one" };
                ctx.step(name, || async { Ok(log.note("one")) }).await?;
                ctx.sleep(secs(20)).await?;
                ctx.step("two", || async { Ok(log.note("two")) }).await?;
                Ok(2)
            }
        );
        world.builder(process).function("work", work)
    };
    let first = world.launch(build("first", false));
    world.run(first.start(call::<u32>("work")).id("w")).expect("start");
    world.pass(secs(5));
    world.sim.kill("first");
    let wrong = world.launch(build("wrong", true));
    let error = world.run(wrong.handle_by_id::<u32>("w").result()).expect_err("set aside");
    assert_eq!((error.kind(), world.status("w")), (ErrorKind::Parked, Status::Parked));
    let told = world.failure("w")["message"].as_str().expect("text").to_owned();
    assert!(["position 0", "\"one\"", "\"renamed\"", "resume"].iter().all(|part| told.contains(part)), "{told}");
    assert!(world.row("w").completed_at.is_some());
    // What is set aside can be cancelled too, and taken up again all the same.
    world.run(wrong.handle_by_id::<u32>("w").cancel()).expect("cancel");
    assert_eq!(world.status("w"), Status::Cancelled);
    world.run(wrong.shutdown(secs(1))).expect("shutdown");
    let right = world.launch(build("right", false));
    world.run(right.resume("w")).expect("resume");
    assert_eq!(world.run(right.handle_by_id::<u32>("w").result()).expect("result"), 2);
    assert_eq!(log.all(), ["one", "two"]);
}

#[test]
fn a_resume_gives_all_attempts_back() {
    let world = World::new(9);
    let build = |process: &str| {
        let wait = body!(
            [] | ctx | {
                ctx.sleep(secs(300)).await?;
                Ok(())
            }
        );
        world.builder(process).register(Registration::function("wait", wait).max_attempts(2))
    };
    let mut engine = world.launch(build("p0"));
    world.run(engine.start(call::<()>("wait")).id("w")).expect("start");
    for n in 0..2 {
        world.pass(secs(2));
        world.sim.kill(&format!("p{n}"));
        engine = world.launch(build(&format!("p{}", n + 1)));
        world.until("it moves on", || world.row("w").attempts == n + 2 || world.status("w") == Status::Parked);
    }
    let error = world.run(engine.handle_by_id::<()>("w").result()).expect_err("set aside");
    assert_eq!((error.kind(), world.status("w")), (ErrorKind::Parked, Status::Parked));
    world.run(engine.resume("w")).expect("resume");
    world.until("claimed", || world.status("w") == Status::Pending);
    assert_eq!(world.row("w").attempts, 1);
    world.sim.kill("p2");
    let last = world.launch(build("p3"));
    world.run(last.handle_by_id::<()>("w").result()).expect("the second attempt of the new two");
    assert_eq!(world.row("w").attempts, 2);
}

#[test]
fn a_resume_right_after_a_cancellation_leaves_one_body_that_repeats_no_recorded_step() {
    for (seed, millis) in [50, 450, 500, 1_050, 1_999].into_iter().enumerate() {
        for silent in [false, true] {
            let world = if silent { World::silent(seed as u64) } else { World::new(seed as u64) };
            let (log, env) = (Log::default(), world.env("web"));
            let steps = body!(
                [log, env] | ctx | {
                    for n in 0..5 {
                        ctx.step("step", || async {
                            log.note(format!("begin {n}"));
                            env.sleep(std::time::Duration::from_millis(500)).await;
                            Ok(log.note(format!("end {n}")))
                        })
                        .await?;
                    }
                    Ok(5)
                }
            );
            let engine = world.launch(world.builder("web").function("steps", steps));
            let handle = world.run(engine.start(call::<u32>("steps")).id("w")).expect("start");
            world.pass(std::time::Duration::from_millis(millis));
            let recorded = world.steps("w").len();
            world.run(async {
                handle.cancel().await.expect("cancel");
                engine.resume("w").await.expect("resume");
            });
            assert_eq!(world.run(handle.result()).expect("result"), 5);
            let positions: Vec<_> = world.steps("w").iter().map(|step| step.position.0).collect();
            assert_eq!(positions, [0, 1, 2, 3, 4]);
            for n in 0..5 {
                let begun = log.count(&format!("begin {n}"));
                let most = if n == recorded { 2 } else { 1 };
                assert!(begun <= most, "step {n} began {begun} times, {recorded} were recorded: {:?}", log.all());
            }
        }
    }
}
