//! Deadlines: what passes one is cancelled, wherever it is, and nothing else is.

use std::time::Duration;

use mainstay_runtime::{ErrorKind, Queue, Status};

use crate::support::{Log, World};
use crate::tools::{Gone, body, call, secs};

#[test]
fn a_body_past_its_deadline_is_cancelled_and_one_within_it_is_not() {
    let world = World::new(1);
    let log = Log::default();
    let engine = world.launch(world.builder("web").function(
        "wait",
        body!([log] |ctx, seconds: u64| {
            let _gone = Gone(log.clone(), "dropped");
            ctx.sleep(secs(seconds)).await?;
            ctx.step("after", || async { Ok(log.note("after")) }).await?;
            Ok(seconds)
        }),
    ));
    let late = world.run(engine.start(call::<u64>("wait").arg(60)).id("late").timeout(secs(10))).expect("start");
    let early = world.run(engine.start(call::<u64>("wait").arg(5)).id("early").timeout(secs(10))).expect("start");
    assert_eq!(world.run(early.result()).expect("within its time"), 5);
    assert_eq!(world.seconds(), 5);
    let error = world.run(late.result()).expect_err("past its time");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    // The process that runs it watches the moment; a sweep of all rows would come later.
    assert!(world.elapsed().as_millis().abs_diff(10_000) <= 20, "{:?}", world.elapsed());
    world.pass(secs(100));
    assert_eq!((world.status("late"), world.status("early")), (Status::Cancelled, Status::Success));
    assert_eq!(log.all(), ["after", "dropped", "dropped"]);
    assert_eq!(world.step_names("late"), ["DBOS.sleep"]);
}

#[test]
fn a_deadline_ends_a_body_in_the_middle_of_a_step_and_records_nothing_of_it() {
    let world = World::new(2);
    let (log, env) = (Log::default(), world.env("web"));
    let engine = world.launch(world.builder("web").function(
        "work",
        body!(
            [log, env] | ctx | {
                ctx.step("long", || async {
                    let _gone = Gone(log.clone(), "dropped");
                    env.sleep(secs(60)).await;
                    Ok(log.note("through"))
                })
                .await
            }
        ),
    ));
    let handle = world.run(engine.start(call::<()>("work")).id("w").timeout(secs(10))).expect("start");
    assert_eq!(world.run(handle.result()).expect_err("cancelled").kind(), ErrorKind::Cancelled);
    world.pass(secs(100));
    assert_eq!(log.all(), ["dropped"]);
    assert_eq!(world.step_names("w"), [""; 0]);
}

#[test]
fn a_recovered_workflow_keeps_its_deadline() {
    let world = World::new(3);
    let log = Log::default();
    let wait = || {
        body!(
            [log] | ctx | {
                ctx.sleep(secs(100)).await?;
                Ok(log.note("woke"))
            }
        )
    };
    let first = world.launch(world.builder("first").function("wait", wait()));
    world.run(first.start(call::<()>("wait")).id("w").timeout(secs(60))).expect("start");
    let deadline = world.row("w").deadline.expect("a deadline");
    world.pass(secs(20));
    world.sim.kill("first");
    let second = world.launch(world.builder("second").function("wait", wait()));
    world.until("taken over", || world.row("w").attempts == 2 && world.status("w") == Status::Pending);
    assert_eq!(world.row("w").deadline, Some(deadline));
    let error = world.run(second.handle_by_id::<()>("w").result()).expect_err("past its time");
    assert_eq!((error.kind(), world.seconds()), (ErrorKind::Cancelled, 60));
    assert_eq!(log.all(), [""; 0]);
}

#[test]
fn a_deadline_that_passes_while_no_process_lives_cancels_without_another_step() {
    let world = World::new(4);
    let log = Log::default();
    let work = || {
        body!(
            [log] | ctx | {
                ctx.step("one", || async { Ok(log.note("one")) }).await?;
                ctx.sleep(secs(30)).await?;
                ctx.step("two", || async { Ok(log.note("two")) }).await
            }
        )
    };
    let first = world.launch(world.builder("first").function("work", work()));
    world.run(first.start(call::<()>("work")).id("w").timeout(secs(60))).expect("start");
    world.pass(secs(20));
    world.sim.kill("first");
    world.pass(secs(100));
    assert_eq!(world.status("w"), Status::Pending);
    let second = world.launch(world.builder("second").function("work", work()));
    let error = world.run(second.handle_by_id::<()>("w").result()).expect_err("past its time");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(world.elapsed() < secs(140), "{:?}", world.elapsed());
    world.pass(secs(60));
    assert_eq!(log.all(), ["one"]);
}

#[test]
fn a_shutdown_does_not_turn_a_deadline_into_a_cancellation() {
    let world = World::new(5);
    let wait = || {
        body!(
            [] | ctx | {
                ctx.sleep(secs(50)).await?;
                Ok(1_u32)
            }
        )
    };
    let first = world.launch(world.builder("first").function("wait", wait()));
    world.run(first.start(call::<u32>("wait")).id("w").timeout(secs(200))).expect("start");
    world.pass(secs(10));
    world.run(first.shutdown(secs(1))).expect("shutdown");
    world.pass(secs(5));
    let status = world.status("w");
    assert!(matches!(status, Status::Pending | Status::Enqueued), "{status:?}");
    let second = world.launch(world.builder("second").function("wait", wait()));
    assert_eq!(world.run(second.handle_by_id::<u32>("w").result()).expect("it goes on"), 1);
}

#[test]
fn a_deadline_that_loses_to_a_recorded_outcome_reports_that_outcome() {
    let world = World::new(6);
    let first_env = world.env("first");
    let (builder, faults) = world.cuttable("first");
    // The first process never gets through; the second one does, before the deadline, while the first is cut off.
    let stuck = body!(
        [first_env] | ctx | {
            ctx.step("work", || async {
                first_env.sleep(secs(1_000)).await;
                Ok("first".to_owned())
            })
            .await
        }
    );
    let first = world.launch(builder.function("work", stuck));
    let handle = world.run(first.start(call::<String>("work")).id("w").timeout(secs(60))).expect("start");
    world.pass(secs(5));
    faults.start();
    let quick = body!([] | ctx | { ctx.step("work", || async { Ok("second".to_owned()) }).await });
    let second = world.launch(world.builder("second").function("work", quick));
    assert_eq!(world.run(second.handle_by_id::<String>("w").result()).expect("the second"), "second");
    assert!(world.elapsed() < secs(60));
    world.pass(secs(100));
    faults.stop();
    assert_eq!(world.run(handle.result()).expect("what was recorded"), "second");
    world.pass(secs(30));
    assert_eq!(world.status("w"), Status::Success);
}

#[test]
fn a_timeout_on_a_queue_becomes_a_deadline_when_its_row_is_claimed() {
    let world = World::new(7);
    let wait = body!([] |ctx, seconds: u64| { ctx.sleep(secs(seconds)).await?; Ok(seconds) });
    let builder = world.builder("web").queue(Queue::new("jobs").worker_concurrency(1)).function("wait", wait);
    let engine = world.launch(builder);
    let first = world.run(engine.start(call::<u64>("wait").arg(100)).id("1").queue("jobs")).expect("start");
    world.pass(secs(1));
    let start = |id: &str, seconds: u64| engine.start(call::<u64>("wait").arg(seconds)).id(id).queue("jobs");
    let second = world.run(start("2", 5).timeout(secs(10))).expect("start");
    let third = world.run(start("3", 20).timeout(secs(10))).expect("start");
    world.pass(secs(60));
    let row = world.row("2");
    assert_eq!((row.status, row.deadline, row.timeout), (Status::Enqueued, None, Some(secs(10))));
    world.run(first.result()).expect("the first");
    world.until("claimed", || world.status("2") == Status::Pending);
    let row = world.row("2");
    assert_eq!(row.deadline, row.started_at.map(|at| at + secs(10)));
    assert_eq!(world.run(second.result()).expect("within its time"), 5);
    assert_eq!(world.run(third.result()).expect_err("past its time").kind(), ErrorKind::Cancelled);
}

#[test]
fn a_child_inherits_replaces_or_declines_the_deadline_of_its_parent() {
    let world = World::new(8);
    let wait = body!([] |ctx, seconds: u64| { ctx.sleep(secs(seconds)).await?; Ok(seconds) });
    let parent = body!(
        [] | ctx | {
            ctx.start(call::<u64>("wait").arg(100)).id("inherits").await?;
            // Nobody serves this queue: what is inherited is an instant, and holds while the row waits.
            ctx.start(call::<u64>("wait").arg(1)).id("queued").queue("unserved").await?;
            ctx.start(call::<u64>("wait").arg(100)).id("replaces").timeout(secs(20)).await?;
            ctx.start(call::<u64>("wait").arg(100)).id("declines").no_timeout().await?;
            ctx.sleep(secs(100)).await?;
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("wait", wait).function("parent", parent));
    let handle = world.run(engine.start(call::<()>("parent")).id("p").timeout(secs(50))).expect("start");
    world.until("started", || world.find("declines").is_some());
    let deadline = world.row("p").deadline.expect("a deadline");
    assert_eq!(world.row("inherits").deadline, Some(deadline));
    assert_eq!((world.row("queued").deadline, world.status("queued")), (Some(deadline), Status::Enqueued));
    assert_eq!(world.row("declines").deadline, None);
    assert!(world.row("replaces").deadline.expect("its own") < deadline);
    world.pass(secs(30));
    assert_eq!((world.status("replaces"), world.status("inherits")), (Status::Cancelled, Status::Pending));
    assert_eq!(world.run(handle.result()).expect_err("past its time").kind(), ErrorKind::Cancelled);
    world.pass(secs(2));
    assert_eq!((world.status("inherits"), world.status("queued")), (Status::Cancelled, Status::Cancelled));
    assert_eq!(world.run(engine.handle_by_id::<u64>("declines").result()).expect("no deadline"), 100);
}

#[test]
fn a_resumed_workflow_has_its_time_budget_anew() {
    let world = World::new(9);
    let wait = body!([] |ctx, seconds: u64| { ctx.sleep(secs(seconds)).await?; Ok(seconds) });
    let engine = world.launch(world.builder("web").function("wait", wait));
    for (id, seconds) in [("enough", 15_u64), ("too little", 100)] {
        let begun = world.elapsed();
        let start = engine.start(call::<u64>("wait").arg(seconds)).id(id).timeout(secs(10));
        let handle = world.run(start).expect("start");
        assert_eq!(world.run(handle.result()).expect_err("past its time").kind(), ErrorKind::Cancelled);
        world.run(engine.resume(id)).expect("resume");
        world.until("begun", || world.status(id) == Status::Pending);
        let row = world.row(id);
        let budget = row.deadline.expect("one of its own").since(row.started_at.expect("a start"));
        assert!(budget.as_millis().abs_diff(10_000) <= 1, "the next execution has {budget:?}");
        let result = world.run(handle.result()).map_err(|error| error.kind());
        let expected = if seconds < 20 { Ok(15) } else { Err(ErrorKind::Cancelled) };
        let passed = (world.elapsed() - begun).as_millis();
        let ends = if seconds < 20 { 15_000 } else { 20_000 };
        assert!(result == expected && passed.abs_diff(ends) < 500, "{id}: {result:?} after {passed} ms");
    }
}

#[test]
fn a_timeout_under_a_millisecond_is_refused() {
    let world = World::new(10);
    let engine = world.launch(world.builder("web").function("none", body!([] | _ctx | { Ok(()) })));
    let start = engine.start(call::<()>("none")).id("w").timeout(Duration::ZERO);
    assert_eq!(world.run(start).expect_err("refused").kind(), ErrorKind::Refused);
    assert!(world.find("w").is_none());
}
