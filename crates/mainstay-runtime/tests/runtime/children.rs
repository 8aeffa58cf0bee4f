//! Children: ids, joins, replays, waits and how their ends reach the parent.

use mainstay_runtime::{Error, ErrorKind, Queue, Status};
use mainstay_store::StepResult;
use serde::{Deserialize, Serialize};

use crate::support::{Log, World};
use crate::tools::{body, call, poll_once, secs};

/// A builder of a process that knows the functions used here, besides a parent.
macro_rules! children {
    ($world:expr, $process:expr, $log:expr) => {{
        let log = &$log;
        $world
            .builder($process)
            .queue(Queue::new("jobs"))
            .function("double", body!([log] |_ctx, n: u64| { log.note(format!("double {n}")); Ok(2 * n) }))
            .function("wait", body!([log] |ctx, seconds: u64| {
                log.note(format!("wait {seconds}"));
                ctx.sleep(secs(seconds)).await?;
                Ok(seconds)
            }))
    }};
}

#[test]
fn children_derive_their_ids_unless_one_is_set_and_know_their_parent() {
    let world = World::new(1);
    let log = Log::default();
    let parent = body!(
        [] | ctx | {
            ctx.step("first", || async { Ok(()) }).await?;
            let derived = ctx.start(call::<u64>("double").arg(1)).await?;
            let chosen = ctx.start(call::<u64>("double").arg(2)).id("chosen").await?;
            Ok((derived.id().to_string(), chosen.id().to_string()))
        }
    );
    let engine = world.launch(children!(world, "web", log).function("parent", parent));
    let handle = world.run(engine.start(call::<(String, String)>("parent")).id("p")).expect("start");
    let ids = world.run(handle.result()).expect("result");
    assert_eq!(ids, ("p-1".to_owned(), "chosen".to_owned()));
    for id in ["p-1", "chosen"] {
        assert_eq!(world.row(id).parent.as_ref().map(|id| id.as_str()), Some("p"));
    }
    assert_eq!(world.row("p").parent, None);
    let steps = world.steps("p");
    assert_eq!(steps[1].name.as_str(), "double");
    assert_eq!(
        steps.iter().map(|step| step.child.clone()).collect::<Vec<_>>(),
        [None, Some("p-1".into()), Some("chosen".into())]
    );
}

#[test]
fn run_spends_a_position_for_the_start_and_one_for_the_result() {
    let world = World::new(2);
    let log = Log::default();
    let parent = body!(
        [] | ctx | {
            let sum = ctx.run(call::<u64>("double").arg(1)).await? + ctx.run(call::<u64>("double").arg(2)).await?;
            ctx.step("last", || async { Ok(()) }).await?;
            Ok(sum)
        }
    );
    let engine = world.launch(children!(world, "web", log).function("parent", parent));
    let handle = world.run(engine.start(call::<u64>("parent")).id("p")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 6);
    let rows: Vec<_> = world.steps("p").iter().map(|step| (step.position.0, step.name.to_string())).collect();
    let expected = [(0, "double"), (1, "DBOS.getResult"), (2, "double"), (3, "DBOS.getResult"), (4, "last")];
    assert_eq!(rows, expected.map(|(position, name)| (position, name.to_owned())));
    assert!(world.find("p-0").is_some() && world.find("p-2").is_some());
}

#[test]
fn a_start_that_was_polled_starts_its_workflow_even_when_it_is_dropped() {
    let world = World::new(3);
    let log = Log::default();
    let parent = body!(
        [] | ctx | {
            let dropped = poll_once(ctx.start(call::<u64>("double").arg(7)).id("by-a-body")).await;
            assert!(dropped.is_none(), "a start needs the store");
            ctx.sleep(secs(1)).await?;
            Ok(())
        }
    );
    let engine = world.launch(children!(world, "web", log).function("parent", parent));
    assert!(world.run(poll_once(engine.start(call::<u64>("double").arg(8)).id("outside"))).is_none());
    let handle = world.run(engine.start(call::<()>("parent")).id("p")).expect("start");
    world.run(handle.result()).expect("the parent");
    for id in ["outside", "by-a-body"] {
        world.until("a result", || world.find(id).is_some_and(|row| row.status == Status::Success));
        assert_eq!(world.row(id).attempts, 1, "{id} began once");
    }
    assert_eq!(world.step_names("p"), ["double", "DBOS.sleep"]);
    assert!(world.elapsed() < secs(5), "nothing had to find the row: {:?}", world.elapsed());
}

#[test]
fn children_started_in_a_loop_run_beside_each_other() {
    let world = World::new(4);
    let log = Log::default();
    let parent = body!(
        [] | ctx | {
            let mut handles = Vec::new();
            for _ in 0..20 {
                handles.push(ctx.start(call::<u64>("wait").arg(10)).await?);
            }
            let mut sum = 0;
            for handle in &handles {
                sum += handle.result().await?;
            }
            Ok(sum)
        }
    );
    let engine = world.launch(children!(world, "web", log).function("parent", parent));
    let handle = world.run(engine.start(call::<u64>("parent"))).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 200);
    assert_eq!(world.seconds(), 10);
}

#[test]
fn a_recovered_parent_adopts_its_children_and_starts_none_twice() {
    let world = World::new(5);
    let log = Log::default();
    let build = |process: &str| {
        let parent = body!(
            [] | ctx | {
                let mut handles = Vec::new();
                for seconds in [5, 30] {
                    handles.push(ctx.start(call::<u64>("wait").arg(seconds)).queue("jobs").await?);
                }
                // Never awaited, and recorded all the same.
                ctx.start(call::<u64>("double").arg(9)).await?;
                let mut ids = Vec::new();
                for handle in &handles {
                    handle.result().await?;
                    ids.push(handle.id().to_string());
                }
                Ok(ids)
            }
        );
        children!(world, process, log).function("parent", parent)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<Vec<String>>("parent")).id("p")).expect("start");
    world.pass(secs(10));
    world.sim.kill("first");
    let second = world.launch(build("second"));
    let ids = world.run(second.handle_by_id::<Vec<String>>("p").result()).expect("result");
    assert_eq!(ids, ["p-0", "p-1"]);
    assert_eq!((log.count("wait 5"), log.count("wait 30"), log.count("double 9")), (1, 2, 1));
    let names = ["wait", "wait", "double", "DBOS.getResult", "DBOS.getResult"];
    assert_eq!(world.step_names("p"), names);
    let rows = ["p-0", "p-1", "p-2", "p-3"].map(|id| world.find(id).map(|row| row.status));
    assert_eq!(rows, [Some(Status::Success), Some(Status::Success), Some(Status::Success), None]);
}

#[test]
fn a_start_that_joins_records_the_holder_and_replays_it_when_the_key_is_free_again() {
    let world = World::new(6);
    let log = Log::default();
    let build = |process: &str| {
        let parent = body!(
            [] | ctx | {
                let joined = ctx.start(call::<u64>("wait").arg(5)).queue("jobs").unique_or_join("key").await?;
                let error = ctx.start(call::<u64>("wait").arg(5)).queue("jobs").unique("key").await.expect_err("held");
                ctx.sleep(secs(20)).await?;
                Ok((joined.id().to_string(), error.kind() == ErrorKind::Conflict))
            }
        );
        children!(world, process, log).function("parent", parent)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<u64>("wait").arg(5)).id("holder").queue("jobs").unique("key")).expect("start");
    world.run(first.start(call::<(String, bool)>("parent")).id("p")).expect("start");
    world.pass(secs(10));
    assert_eq!((world.status("holder"), world.status("p")), (Status::Success, Status::Pending));
    world.sim.kill("first");
    let second = world.launch(build("second"));
    let result = world.run(second.handle_by_id::<(String, bool)>("p").result()).expect("result");
    assert_eq!(result, ("holder".to_owned(), true));
    assert_eq!(world.row("holder").parent, None, "a joined workflow does not become a child");
    let steps = world.steps("p");
    assert_eq!(steps[0].child.as_ref().map(|id| id.as_str()), Some("holder"));
    assert!(matches!(steps[1].result, StepResult::Failure(_)), "the refused start is recorded");
    assert!(world.find("p-0").is_none() && world.find("p-1").is_none());
    assert_eq!(log.count("wait 5"), 1);
}

#[test]
fn a_start_in_a_step_needs_an_id_and_has_no_parent_and_a_run_is_refused_there() {
    let world = World::new(7);
    let log = Log::default();
    let parent = body!(
        [] | ctx | {
            ctx.step("starts", || async {
                let error = ctx.start(call::<u64>("double").arg(1)).await.expect_err("no id");
                assert!(error.kind() == ErrorKind::Refused && error.message().contains(".id("), "{error:?}");
                let error = ctx.run(call::<u64>("double").arg(1)).await.expect_err("in a step");
                assert!(error.kind() == ErrorKind::Refused && error.message().contains("starts"), "{error:?}");
                let child = ctx.start(call::<u64>("double").arg(4)).id("given").await?;
                // A wait in a step is a part of the step.
                child.result().await
            })
            .await
        }
    );
    let engine = world.launch(children!(world, "web", log).function("parent", parent));
    let handle = world.run(engine.start(call::<u64>("parent")).id("p")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 8);
    assert_eq!(world.step_names("p"), ["starts"]);
    assert_eq!(world.row("given").parent, None);
}

#[test]
fn a_replayed_wait_reads_nothing_of_the_child() {
    let world = World::new(8);
    let log = Log::default();
    let build = |process: &str| {
        let parent = body!(
            [] | ctx | {
                let child = ctx.start(call::<u64>("double").arg(3)).await?;
                let value = child.result().await?;
                ctx.sleep(secs(10)).await?;
                Ok(value)
            }
        );
        children!(world, process, log).function("parent", parent)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<u64>("parent")).id("p")).expect("start");
    world.pass(secs(2));
    world.sim.kill("first");
    world.delete("p-0");
    let second = world.launch(build("second"));
    assert_eq!(world.run(second.handle_by_id::<u64>("p").result()).expect("as it was recorded"), 6);
    assert_eq!(log.count("double 3"), 1);
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Short {
    missing: u32,
}

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} are missing", self.missing)
    }
}

impl std::error::Error for Short {}

#[test]
fn how_a_child_ends_is_the_parents_error_to_handle_and_is_recorded() {
    let world = World::new(9);
    let log = Log::default();
    let build = |process: &str| {
        let fails = body!([] | _ctx | { Err::<(), _>(Error::typed(Short { missing: 3 })) });
        let panics = body!([] |_ctx, yes: bool| { assert!(!yes, "no way"); Ok(()) });
        let parent = body!(
            [] | ctx | {
                let failed = ctx.run(call::<()>("fails")).await.expect_err("an error");
                let panicked = ctx.run(call::<()>("panics").arg(true)).await.expect_err("a panic");
                let cancelled = ctx.start(call::<u64>("wait").arg(100)).timeout(secs(3)).await?;
                let cancelled = cancelled.result().await.expect_err("cancelled");
                ctx.sleep(secs(30)).await?;
                Ok((failed.decode::<Short>(), format!("{:?}", panicked.kind()), format!("{:?}", cancelled.kind())))
            }
        );
        children!(world, process, log).function("fails", fails).function("panics", panics).function("parent", parent)
    };
    type Told = (Option<Short>, String, String);
    let first = world.launch(build("first"));
    world.run(first.start(call::<Told>("parent")).id("p")).expect("start");
    world.pass(secs(10));
    world.sim.kill("first");
    let second = world.launch(build("second"));
    let told = world.run(second.handle_by_id::<Told>("p").result()).expect("result");
    assert_eq!(told, (Some(Short { missing: 3 }), "Panic".to_owned(), "Cancelled".to_owned()));
    assert_eq!(world.steps("p").iter().filter(|step| matches!(step.result, StepResult::Failure(_))).count(), 3);
}

#[test]
fn code_that_starts_or_awaits_another_child_than_recorded_is_set_aside() {
    for (seed, changed) in ["start over a step", "step over a start", "another awaited"].into_iter().enumerate() {
        let world = World::new(20 + seed as u64);
        let log = Log::default();
        let build = |process: &str, new: bool| {
            let parent = body!([] |ctx, changed: String| {
                let a = ctx.start(call::<u64>("double").arg(1)).id("a").await?;
                let b = ctx.start(call::<u64>("double").arg(2)).id("b").await?;
                if new && changed == "another awaited" { b.result().await? } else { a.result().await? };
                if new && changed == "start over a step" {
                    ctx.start(call::<u64>("double").arg(3)).await?;
                } else {
                    ctx.step("double", || async { Ok(()) }).await?;
                }
                if new && changed == "step over a start" {
                    ctx.step("double", || async { Ok(()) }).await?;
                } else {
                    ctx.start(call::<u64>("double").arg(3)).id("c").await?;
                }
                ctx.sleep(secs(60)).await?;
                Ok(())
            });
            children!(world, process, log).function("parent", parent)
        };
        let first = world.launch(build("first", false));
        world.run(first.start(call::<()>("parent").arg(changed)).id("p")).expect("start");
        world.pass(secs(2));
        world.sim.kill("first");
        let second = world.launch(build("second", true));
        let error = world.run(second.handle_by_id::<()>("p").result()).expect_err(changed);
        assert_eq!(error.kind(), ErrorKind::Parked, "{changed}");
        assert_eq!(world.failure("p")["name"], "Mismatch", "{changed}");
        assert_eq!(world.status("p"), Status::Parked);
    }
}

#[test]
fn a_start_that_cannot_be_is_an_error_of_the_start_alone() {
    let world = World::new(11);
    let log = Log::default();
    let parent = body!(
        [] | ctx | {
            let unknown = ctx.start(call::<()>("nowhere")).await.expect_err("not registered");
            let other = ctx.start(call::<()>("double").arg(1)).id("taken").await.expect_err("of another function");
            ctx.start(call::<()>("nowhere")).id("elsewhere").queue("foreign").await?;
            Ok((format!("{:?}", unknown.kind()), format!("{:?}", other.kind())))
        }
    );
    let engine = world.launch(children!(world, "web", log).function("parent", parent));
    world.run(engine.start(call::<u64>("wait").arg(1)).id("taken")).expect("start");
    let handle = world.run(engine.start(call::<(String, String)>("parent")).id("p")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), ("Refused".to_owned(), "Conflict".to_owned()));
    assert_eq!(world.status("elsewhere"), Status::Enqueued, "another program may know it");
    assert!(world.find("p-0").is_none());
}
