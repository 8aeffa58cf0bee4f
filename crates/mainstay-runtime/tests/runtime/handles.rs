//! Handles: results again and again, limits, status and rows, joins, and what becomes of a wait when its workflow goes.

use std::sync::{Arc, Mutex, OnceLock};

use mainstay_runtime::{Engine, ErrorKind, Handle, Status};
use mainstay_store::wrap::Method;

use crate::support::{Log, World};
use crate::tools::{body, call, secs};

#[test]
fn a_result_can_be_awaited_again_and_again_by_clones_and_after_the_end() {
    let world = World::new(1);
    let log = Log::default();
    let wait = body!([log] |ctx, seconds: u64| { log.note("begun"); ctx.sleep(secs(seconds)).await?; Ok(seconds) });
    let parent = body!(
        [] | ctx | {
            let child = ctx.start(call::<u64>("wait").arg(3)).await?;
            let sum = child.result().await? + child.clone().result().await? + child.result().await?;
            Ok(sum)
        }
    );
    let engine = world.launch(world.builder("web").function("wait", wait).function("parent", parent));
    let handle = world.run(engine.start(call::<u64>("wait").arg(5)).id("w")).expect("start");
    let both = world.run(async {
        let clone = handle.clone();
        futures_util::future::join(handle.result().into_future(), clone.result().into_future()).await
    });
    assert_eq!((both.0.expect("one"), both.1.expect("the other")), (5, 5));
    assert_eq!(world.run(handle.result()).expect("once more"), 5);
    assert_eq!(log.count("begun"), 1);
    let parent = world.run(engine.start(call::<u64>("parent")).id("p")).expect("start");
    assert_eq!(world.run(parent.result()).expect("result"), 9);
    assert_eq!(world.step_names("p"), ["wait", "DBOS.getResult", "DBOS.getResult", "DBOS.getResult"]);
}

#[test]
fn a_limit_outside_a_body_ends_the_wait_and_not_the_workflow() {
    let world = World::new(2);
    let wait = body!([] |ctx, seconds: u64| { ctx.sleep(secs(seconds)).await?; Ok(seconds) });
    let engine = world.launch(world.builder("web").function("wait", wait));
    let handle = world.run(engine.start(call::<u64>("wait").arg(30)).id("w")).expect("start");
    let error = world.run(handle.result().timeout(secs(10))).expect_err("too short");
    assert_eq!((error.kind(), world.seconds()), (ErrorKind::Timeout, 10));
    assert_eq!(world.run(handle.result().timeout(secs(60))).expect("long enough"), 30);
    assert_eq!(world.seconds(), 30);
}

/// A parent that waits so long for a child that sleeps so long, and then sleeps on itself.
fn waiting(world: &World, process: &str) -> mainstay_runtime::Builder {
    let wait = body!([] |ctx, seconds: u64| { ctx.sleep(secs(seconds)).await?; Ok(seconds) });
    let parent = body!([] |ctx, child: u64, limit: u64, after: u64| {
        let child = ctx.start(call::<u64>("wait").arg(child)).await?;
        let result = child.result().timeout(secs(limit)).await.map_err(|error| format!("{:?}", error.kind()));
        ctx.sleep(secs(after)).await?;
        Ok(result)
    });
    world.builder(process).function("wait", wait).function("parent", parent)
}

#[test]
fn a_limit_in_a_body_counts_on_through_a_restart() {
    let world = World::new(3);
    let first = world.launch(waiting(&world, "first"));
    let start = first.start(call::<Result<u64, String>>("parent").arg(1_000).arg(60).arg(0)).id("p");
    world.run(start).expect("start");
    world.pass(secs(20));
    world.sim.kill("first");
    let second = world.launch(waiting(&world, "second"));
    let result = world.run(second.handle_by_id::<Result<u64, String>>("p").result()).expect("the parent");
    assert_eq!((result, world.seconds()), (Err("Timeout".to_owned()), 60));
    let names: Vec<_> = world.steps("p").iter().map(|step| (step.position.0, step.name.to_string())).collect();
    let expected = [(0, "wait"), (1, "DBOS.getResult"), (2, "DBOS.sleep"), (3, "DBOS.sleep")];
    assert_eq!(names, expected.map(|(position, name)| (position, name.to_owned())));
    assert_eq!(world.status("p-0"), Status::Pending, "the child goes on");
}

#[test]
fn what_a_wait_with_a_limit_gave_is_replayed() {
    for (child, limit, expected) in [(5, 60, Ok(5)), (1_000, 5, Err("Timeout".to_owned()))] {
        let world = World::new(4);
        let first = world.launch(waiting(&world, "first"));
        let start = first.start(call::<Result<u64, String>>("parent").arg(child).arg(limit).arg(100)).id("p");
        world.run(start).expect("start");
        world.pass(secs(20));
        world.sim.kill("first");
        world.delete("p-0");
        let second = world.launch(waiting(&world, "second"));
        let result = world.run(second.handle_by_id::<Result<u64, String>>("p").result()).expect("the parent");
        assert_eq!((result, world.seconds()), (expected, 100 + child.min(limit)));
    }
}

#[test]
fn a_status_is_read_fresh_outside_and_recorded_in_a_body() {
    let world = World::new(5);
    let build = |process: &str| {
        let wait = body!(
            [] | ctx | {
                ctx.sleep(secs(5)).await?;
                Ok(())
            }
        );
        let parent = body!(
            [] | ctx | {
                let child = ctx.start(call::<()>("wait")).id("child").await?;
                let before = child.status().await?;
                ctx.sleep(secs(10)).await?;
                let after = child.status().await?;
                let row = ctx.step("row", || async { Ok(child.row().await?.name.to_string()) }).await?;
                ctx.sleep(secs(30)).await?;
                Ok(format!("{before} {after} {row}"))
            }
        );
        world.builder(process).function("wait", wait).function("parent", parent)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<String>("parent")).id("p")).expect("start");
    let child = first.handle_by_id::<()>("child");
    world.pass(secs(1));
    assert_eq!(world.run(child.status()).expect("status"), Status::Pending);
    assert_eq!(world.run(child.row()).expect("row").parent.expect("a parent").as_str(), "p");
    world.pass(secs(19));
    assert_eq!(world.run(child.status()).expect("status"), Status::Success);
    world.sim.kill("first");
    world.delete("child");
    let second = world.launch(build("second"));
    let result = world.run(second.handle_by_id::<String>("p").result()).expect("result");
    assert_eq!(result, "PENDING SUCCESS wait");
    assert_eq!(world.step_names("p")[1..4], ["DBOS.getStatus", "DBOS.sleep", "DBOS.getStatus"]);
    let unknown = second.handle_by_id::<()>("child");
    assert_eq!(world.run(unknown.status()).expect_err("gone").kind(), ErrorKind::NotFound);
    assert_eq!(world.run(unknown.row()).expect_err("gone").kind(), ErrorKind::NotFound);
}

#[test]
fn a_row_that_cannot_be_read_is_an_error_of_the_status_and_holds_up_no_result() {
    let world = World::new(15);
    let lent: Arc<OnceLock<Engine>> = Arc::default();
    let kid = body!([] | _ctx | { Ok(7_u32) });
    let parent = body!(
        [lent] | ctx | {
            ctx.sleep(secs(5)).await?;
            let kid = lent.get().expect("an engine").handle_by_id::<u32>("kid");
            let status = kid.status().await.expect_err("it cannot be read").kind();
            Ok((status == ErrorKind::Bug, kid.result().await?))
        }
    );
    let engine = world.launch(world.builder("web").function("kid", kid).function("parent", parent));
    assert!(lent.set(engine.clone()).is_ok());
    let kid = world.run(engine.start(call::<u32>("kid")).id("kid")).expect("start");
    assert_eq!(world.run(kid.result()).expect("result"), 7);
    let handle = world.run(engine.start(call::<(bool, u32)>("parent")).id("p")).expect("start");
    let _failing = world.memory.fail(Method::WorkflowRows, mainstay_store::ErrorKind::Corrupt);
    let result = world.run(handle.result().timeout(secs(60))).expect("it goes on");
    assert_eq!(result, (true, 7));
    assert_eq!(world.step_names("p"), ["DBOS.sleep", "DBOS.getStatus", "DBOS.getResult"]);
}

#[test]
fn a_deleted_row_ends_its_waits_and_its_execution() {
    // Without hints it is noticed when running executions are looked at.
    for (world, most) in [(World::new(6), 6), (World::silent(6), 12)] {
        let log = Log::default();
        let wait = body!(
            [log] | ctx | {
                ctx.sleep(secs(20)).await?;
                ctx.step("after", || async { Ok(log.note("after")) }).await
            }
        );
        let parent = body!(
            [] | ctx | {
                let error = ctx.start(call::<()>("wait")).id("w").await?.result().await.expect_err("deleted");
                Ok(format!("{:?}", error.kind()))
            }
        );
        let engine = world.launch(world.builder("web").function("wait", wait).function("parent", parent));
        let parent = world.run(engine.start(call::<String>("parent")).id("p")).expect("start");
        world.pass(secs(5));
        world.delete("w");
        let error = world.run(engine.handle_by_id::<()>("w").result()).expect_err("deleted");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(world.run(parent.result()).expect("result"), "NotFound");
        assert!(world.elapsed() < secs(most), "{:?}", world.elapsed());
        world.pass(secs(60));
        assert!(world.find("w").is_none() && log.all().is_empty());
    }
}

#[test]
fn a_start_of_an_id_that_exists_joins_it_running_or_ended() {
    let world = World::new(7);
    let log = Log::default();
    let wait = body!([log] |ctx, seconds: u64| { log.note("begun"); ctx.sleep(secs(seconds)).await?; Ok(seconds) });
    let engine =
        world.launch(world.builder("web").function("wait", wait).function("other", body!([] | _ctx | { Ok(0) })));
    let start = |seconds: u64| engine.start(call::<u64>("wait").arg(seconds)).id("w");
    let first = world.run(start(5)).expect("start");
    let joined = world.run(start(50)).expect("a join");
    assert_eq!(world.run(joined.result()).expect("the first one's"), 5);
    assert_eq!(world.run(first.result()).expect("result"), 5);
    let ended = world.run(start(50)).expect("a join");
    assert_eq!(world.run(ended.result()).expect("the first one's"), 5);
    let new = world.run(start(50).must_be_new()).expect_err("it is there");
    let other = world.run(engine.start(call::<u64>("other")).id("w")).expect_err("another function");
    assert_eq!((new.kind(), other.kind()), (ErrorKind::Conflict, ErrorKind::Conflict));
    assert_eq!(log.count("begun"), 1);
}

#[test]
fn a_replayed_start_gives_a_handle_that_works() {
    let world = World::new(8);
    let build = |process: &str| {
        let wait = body!([] |ctx, seconds: u64| { ctx.sleep(secs(seconds)).await?; Ok(seconds) });
        let parent = body!(
            [] | ctx | {
                let child = ctx.start(call::<u64>("wait").arg(40)).await?;
                ctx.sleep(secs(20)).await?;
                child.result().await
            }
        );
        world.builder(process).function("wait", wait).function("parent", parent)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<u64>("parent")).id("p")).expect("start");
    world.pass(secs(10));
    world.sim.kill("first");
    let second = world.launch(build("second"));
    assert_eq!(world.run(second.handle_by_id::<u64>("p").result()).expect("result"), 40);
}

#[test]
fn a_handle_of_a_body_is_that_bodys_alone() {
    let world = World::new(9);
    let kept: Arc<Mutex<Option<Handle<()>>>> = Arc::default();
    let none = body!([] | _ctx | { Ok(()) });
    let parent = body!(
        [kept] | ctx | {
            let child = ctx.start(call::<()>("none")).await?;
            *kept.lock().expect("no panic") = Some(child);
            Ok(())
        }
    );
    let thief = body!(
        [kept] | _ctx | {
            let stolen = kept.lock().expect("no panic").clone().expect("a handle");
            let error = stolen.result().await.expect_err("of another execution");
            Ok(format!("{:?}", error.kind()))
        }
    );
    let builder = world.builder("web").function("none", none).function("parent", parent).function("thief", thief);
    let engine = world.launch(builder);
    world.run(async { engine.start(call::<()>("parent")).await?.result().await }).expect("the parent");
    let handle = kept.lock().expect("no panic").clone().expect("a handle");
    let error = world.run(handle.result()).expect_err("outside the body");
    assert!(error.kind() == ErrorKind::Refused && error.message().contains("ctx.spawn"), "{error:?}");
    let told = world.run(async { engine.start(call::<String>("thief")).await?.result().await });
    assert_eq!(told.expect("the thief"), "Refused");
}

#[test]
fn dropping_a_handle_or_its_wait_stops_nothing() {
    let world = World::new(10);
    let wait = body!(
        [] | ctx | {
            ctx.sleep(secs(5)).await?;
            Ok(5)
        }
    );
    let engine = world.launch(world.builder("web").function("wait", wait));
    let handle = world.run(engine.start(call::<u64>("wait")).id("w")).expect("start");
    assert!(world.run(crate::tools::poll_once(handle.result())).is_none());
    drop(handle);
    world.pass(secs(6));
    assert_eq!(world.status("w"), Status::Success);
}

#[test]
fn another_process_hears_of_a_result_and_without_hints_within_a_poll() {
    for (world, most) in [(World::new(11), 10), (World::silent(11), 1_100)] {
        let wait = || {
            body!(
                [] | ctx | {
                    ctx.sleep(secs(5)).await?;
                    Ok(5)
                }
            )
        };
        let first = world.launch(world.builder("first").function("wait", wait()));
        let second = world.launch(world.builder("second").function("wait", wait()));
        world.run(first.start(call::<u64>("wait")).id("w")).expect("start");
        world.pass(secs(1));
        assert_eq!(world.run(second.handle_by_id::<u64>("w").result()).expect("result"), 5);
        let late = world.elapsed() - secs(5);
        assert!(late.as_millis() <= most, "{late:?}");
    }
}

#[test]
fn a_wait_of_an_engine_that_is_shut_down_ends() {
    let world = World::new(12);
    let wait = body!(
        [] | ctx | {
            ctx.sleep(secs(500)).await?;
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("wait", wait));
    let handle = world.run(engine.start(call::<()>("wait")).id("w")).expect("start");
    let both = futures_util::future::join(handle.result().into_future(), engine.shutdown(secs(1)));
    let (waited, _) = world.run(both);
    assert_eq!(waited.expect_err("the engine stopped").kind(), ErrorKind::Stopped);
    assert_eq!(world.run(handle.result()).expect_err("it has stopped").kind(), ErrorKind::Stopped);
}

#[test]
fn a_result_of_another_type_than_asked_for_is_an_error_and_changes_nothing() {
    let world = World::new(13);
    let engine = world.launch(world.builder("web").function("text", body!([] | _ctx | { Ok("text".to_owned()) })));
    let handle = world.run(engine.start(call::<u64>("text")).id("w")).expect("start");
    let error = world.run(handle.result()).expect_err("no number");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert_eq!(world.run(handle.typed::<String>().result()).expect("a text"), "text");
}
