//! Starting workflows: what stands before the body, what is recorded, who runs it, and starts that are dropped or repeated.

use std::collections::BTreeMap;
use std::future::IntoFuture;

use futures_util::future::join_all;
use mainstay_runtime::{Error, ErrorKind, Queue, Status};
use mainstay_store::{Outcome, Standing, WriteExt};
use tracing::Level;

use crate::logs::{count, logged};
use crate::support::{Log, World};
use crate::tools::{body, call, poll_once, secs};

#[test]
fn a_row_stands_before_its_body_begins_however_it_was_started() {
    let world = World::new(1);
    let (log, memory) = (Log::default(), world.memory.clone());
    let looks = body!(
        [log, memory] | ctx | {
            let row = memory.rows().into_iter().find(|row| row.id == *ctx.workflow_id());
            let row = row.expect("its row stands");
            log.note(format!("{} {} {}", row.id, row.status, row.attempts));
            Ok(())
        }
    );
    let parent = body!([] | ctx | { ctx.run(call::<()>("looks")).with(|start| start.id("child")).await });
    let builder = world.builder("web").queue(Queue::new("jobs")).function("looks", looks).function("parent", parent);
    let engine = world.launch(builder);
    let direct = world.run(engine.start(call::<()>("looks")).id("direct")).expect("start");
    world.run(direct.result()).expect("result");
    let queued = world.run(engine.start(call::<()>("looks")).id("queued").queue("jobs")).expect("start");
    world.run(queued.result()).expect("result");
    let parent = world.run(engine.start(call::<()>("parent")).id("parent")).expect("start");
    world.run(parent.result()).expect("result");
    assert_eq!(log.all(), ["direct PENDING 1", "queued PENDING 1", "child PENDING 1"]);
}

#[test]
fn output_error_and_steps_are_recorded_in_the_portable_form() {
    let world = World::new(2);
    let work = body!([] |ctx, good: bool| {
        let n: u64 = ctx.step("count", || async { Ok(u64::MAX) }).await?;
        let failed = ctx.step("fails", || async { Err::<(), _>(Error::named("Sold", "sold out").with_code("S1")) }).await;
        if good { Ok(BTreeMap::from([("n", n)])) } else { failed.map(|()| BTreeMap::new()) }
    });
    let engine = world.launch(world.builder("web").function("work", work));
    for (id, good) in [("good", true), ("bad", false)] {
        let handle = world.run(engine.start(call::<serde_json::Value>("work").arg(good)).id(id)).expect("start");
        assert_eq!(world.run(handle.result()).is_ok(), good);
        let row = world.row(id);
        assert_eq!(row.codec.as_ref().map(|codec| codec.as_str()), Some("portable_json"));
        assert!(row.started_at.is_some() && row.completed_at.is_some());
        let steps = world.steps(id);
        assert_eq!(steps[0].result.payload().map(|payload| payload.as_str()), Some("18446744073709551615"));
        let failure = steps[1].result.payload().map(|payload| payload.as_str()).expect("a failure");
        let failure: serde_json::Value = serde_json::from_str(failure).expect("an object");
        assert_eq!(failure, serde_json::json!({"name": "Sold", "message": "sold out", "code": "S1", "data": null}));
        if good {
            let Standing::Ended(Outcome::Success(value)) = world.standing(id) else { panic!("no value") };
            assert_eq!(value.as_str(), r#"{"n":18446744073709551615}"#);
        } else {
            assert_eq!(world.failure(id), failure);
        }
    }
}

#[test]
fn attributes_reach_the_row_and_only_an_object_is_accepted() {
    let world = World::new(3);
    let work = body!([] | ctx | { ctx.start(call::<()>("child")).id("child").await.map(drop) });
    let child = body!([] | _ctx | { Ok(()) });
    let engine = world.launch(world.builder("web").function("work", work).function("child", child));
    let attributes = BTreeMap::from([("customer", "ada")]);
    let handle = world.run(engine.start(call::<()>("work")).id("w").attributes(&attributes)).expect("start");
    world.run(handle.result()).expect("result");
    let stored = world.row("w").attributes.expect("attributes");
    assert_eq!(stored.as_str(), r#"{"customer":"ada"}"#);
    assert_eq!(world.row("child").attributes, None, "a child inherits none");
    for refused in [
        world.run(engine.start(call::<()>("work")).id("x").attributes(&7)),
        world.run(engine.start(call::<()>("work")).id("x").attributes(&f64::NAN)),
    ] {
        assert_eq!(refused.expect_err("no object").kind(), ErrorKind::Refused);
    }
    assert!(world.find("x").is_none());
}

#[test]
fn a_panic_is_logged_once_with_its_text() {
    let world = World::new(4);
    let panics = body!(
        [] | ctx | {
            ctx.step("one", || async { Ok(()) }).await?;
            if ctx.attempt() > 0 {
                panic!("gives way")
            }
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("panics", panics));
    let (result, lines) = logged(|| {
        let handle = world.run(engine.start(call::<()>("panics")).id("w")).expect("start");
        (world.run(handle.result()), world.run(handle.result()))
    });
    assert!([result.0, result.1].into_iter().all(|result| result.is_err_and(|error| error.kind() == ErrorKind::Panic)));
    assert_eq!((count(&lines, Level::ERROR, "gives way"), count(&lines, Level::ERROR, "")), (1, 1), "{lines:?}");
}

#[test]
fn a_start_that_was_polled_runs_although_its_future_is_dropped() {
    let world = World::new(5);
    let log = Log::default();
    let work = body!(
        [log] | ctx | {
            log.note(ctx.workflow_id().to_string());
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").queue(Queue::new("jobs")).function("work", work));
    assert!(world.run(poll_once(engine.start(call::<()>("work")).id("direct"))).is_none());
    assert!(world.run(poll_once(engine.start(call::<()>("work")).id("queued").queue("jobs"))).is_none());
    drop(engine.start(call::<()>("work")).id("not polled"));
    world.pass(secs(5));
    let mut ran = log.all();
    ran.sort();
    assert_eq!(ran, ["direct", "queued"]);
    assert!(world.find("not polled").is_none());
}

#[test]
fn starts_of_one_id_at_once_run_one_body_in_a_process_and_over_processes() {
    for seed in 0..8 {
        let world = World::new(seed);
        let log = Log::default();
        let build = |process: &str| {
            let work = body!([log] |ctx, n: u64| {
                log.note("begun");
                ctx.sleep(secs(5)).await?;
                Ok(n)
            });
            world.builder(process).queue(Queue::new("jobs")).function("work", work)
        };
        let (web, other) = (world.launch(build("web")), world.launch(build("other")));
        let starts = (0..12_u64).map(|n| {
            let engine = if n % 2 == 0 { &web } else { &other };
            let start = engine.start(call::<u64>("work").arg(n)).id("w");
            let start = if n % 3 == 0 { start.queue("jobs") } else { start };
            async move { start.await.expect("it joins").result().await.expect("result") }
        });
        let values = world.run(join_all(starts));
        assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        assert_eq!((log.count("begun"), world.row("w").attempts), (1, 1), "seed {seed}");
    }
}

#[test]
fn a_typed_error_reaches_every_handle_with_its_fields() {
    let world = World::new(6);
    let fails =
        body!([] | _ctx | { Err::<(), _>(Error::named("Declined", "no").with_data(BTreeMap::from([("cents", 7)]))) });
    let web = world.launch(world.builder("web").function("fails", fails));
    let other = world.launch(world.builder("other"));
    let local = world.run(web.start(call::<()>("fails")).id("w")).expect("start");
    for result in [local.result(), other.handle_by_id::<()>("w").result()] {
        let error = world.run(result).expect_err("declined");
        assert_eq!((error.kind(), error.name(), error.message()), (ErrorKind::App, "Declined", "no"));
        assert_eq!(error.decode::<BTreeMap<String, u32>>(), Some(BTreeMap::from([("cents".to_owned(), 7)])));
    }
}

#[test]
fn an_error_that_another_program_recorded_as_a_text_is_its_message() {
    let world = World::new(7);
    let waits = body!([] | ctx | { ctx.sleep(secs(500)).await });
    let engine = world.launch(world.builder("web").function("waits", waits));
    let handle = world.run(engine.start(call::<()>("waits")).id("w")).expect("start");
    world.pass(secs(1));
    let fence = world.memory.fences().pop().expect("a fence");
    let settled = world.memory.settle(&fence, Outcome::Error("gave up: no paper".into()));
    assert!(world.run(settled).expect("a reply").is_done());
    let error = world.run(handle.result()).expect_err("an error");
    assert_eq!((error.message(), error.kind()), ("gave up: no paper", ErrorKind::App));
}

#[test]
fn what_cannot_be_started_is_refused_before_anything_is_written() {
    let world = World::new(8);
    let work = body!([] |_ctx, _n: f64| { Ok(()) });
    let engine = world.launch(world.builder("web").queue(Queue::new("jobs")).function("work", work));
    let start = || engine.start(call::<()>("work").arg(1.0)).id("w");
    let refused = [
        ("not registered", engine.start(call::<()>("nobody")).id("w").into_future()),
        ("a reserved name", engine.start(call::<()>("DBOS.work")).id("w").queue("jobs").into_future()),
        ("no name", engine.start(call::<()>("")).id("w").queue("jobs").into_future()),
        ("no id", start().id("").into_future()),
        ("a delay without a queue", start().delay(secs(1)).into_future()),
        ("a key without a queue", start().unique("k").into_future()),
        ("a priority without a queue", start().priority(1).into_future()),
        ("no time", start().timeout(secs(0)).into_future()),
        ("a partition without a name", start().queue("jobs").partition("").into_future()),
    ];
    for (what, start) in refused {
        assert_eq!(world.run(start).expect_err(what).kind(), ErrorKind::Refused, "{what}");
    }
    let unencodable = engine.start(call::<()>("work").arg(f64::INFINITY)).id("w");
    assert_eq!(world.run(unencodable).expect_err("an input").kind(), ErrorKind::BadInput);
    assert!(world.memory.rows().is_empty());
    world.run(start()).expect("start");
    world.pass(secs(1));
    assert_eq!(world.status("w"), Status::Success);
}

#[test]
fn a_start_joins_a_row_that_waits_elsewhere_and_does_not_run_it_in_place() {
    let world = World::new(9);
    let log = Log::default();
    let work = body!(
        [log] | _ctx | {
            log.note("ran");
            Ok(())
        }
    );
    let builder = world.builder("web").queue(Queue::new("jobs")).listen_queues(["jobs"]).function("work", work);
    let engine = world.launch(builder);
    let elsewhere = engine.start(call::<()>("work")).id("elsewhere").queue("not served");
    world.run(elsewhere).expect("start");
    let delayed = engine.start(call::<()>("work")).id("delayed").queue("jobs").delay(secs(3_600));
    world.run(delayed).expect("start");
    for (id, status) in [("elsewhere", Status::Enqueued), ("delayed", Status::Delayed)] {
        assert!(world.row(id).executor.is_none());
        world.run(engine.start(call::<()>("work")).id(id)).expect("it joins");
        world.pass(secs(60));
        assert_eq!((world.status(id), log.count("ran")), (status, 0), "{id}");
    }
}

#[test]
fn a_child_cancelled_between_two_steps_is_an_error_that_its_parent_records() {
    let world = World::silent(10);
    let build = |process: &str| {
        let env = world.env(process);
        let child = body!(
            [env] | ctx | {
                for _ in 0..100 {
                    ctx.step("step", || async {
                        env.sleep(secs(1)).await;
                        Ok(())
                    })
                    .await?;
                }
                Ok(())
            }
        );
        let parent = body!(
            [] | ctx | {
                let child = ctx.start(call::<()>("child")).id("child").await?;
                let error = child.result().await.expect_err("cancelled");
                ctx.sleep(secs(20)).await?;
                Ok(error.kind() == ErrorKind::Cancelled && error.message().contains("child"))
            }
        );
        world.builder(process).function("child", child).function("parent", parent)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<bool>("parent")).id("parent")).expect("start");
    // Off the hub's own look at what runs, so that the write of a step hears of it.
    world.pass(std::time::Duration::from_millis(6_200));
    world.run(world.launch(world.builder("other")).handle_by_id::<()>("child").cancel()).expect("cancel");
    world.pass(secs(3));
    assert_eq!((world.status("child"), world.steps("child").len()), (Status::Cancelled, 6));
    assert_eq!(world.step_names("parent"), ["child", "DBOS.getResult", "DBOS.sleep"]);
    world.sim.kill("first");
    let second = world.launch(build("second"));
    assert!(world.run(second.handle_by_id::<bool>("parent").result()).expect("result"));
    assert_eq!(world.steps("parent").len(), 3);
}

#[test]
fn every_durable_call_waits_an_outage_out() {
    for (kind, names) in [
        ("step", vec!["step"]),
        ("sleep", vec!["DBOS.sleep"]),
        ("start", vec!["idle"]),
        ("run", vec!["idle", "DBOS.getResult"]),
        ("result", vec!["DBOS.getResult"]),
        ("status", vec!["DBOS.getStatus"]),
        ("cancel", vec!["DBOS.cancelWorkflow"]),
        ("race", vec!["DBOS.sleep", "DBOS.selectStep"]),
        ("branch", vec!["step"]),
    ] {
        let world = World::new(11);
        let (builder, faults) = world.cuttable("web");
        let work = body!([] |ctx, kind: String| {
            let handle = ctx.start(call::<u32>("idle")).id("other").await?;
            ctx.sleep(secs(10)).await?;
            match kind.as_str() {
                "step" => ctx.step("step", || async { Ok(()) }).await?,
                "sleep" => ctx.sleep(secs(1)).await?,
                "start" => drop(ctx.start(call::<u32>("idle")).await?),
                "run" => drop(ctx.run(call::<u32>("idle")).await?),
                "result" => drop(handle.result().await?),
                "status" => assert_eq!(handle.status().await?, Status::Success),
                "cancel" => handle.cancel().await?,
                "race" => drop(ctx.race([ctx.sleep(secs(1))]).await?),
                _ => ctx.spawn(|ctx| async move { ctx.step("step", || async { Ok(()) }).await }).await?,
            }
            Ok(())
        });
        let idle = body!([] | _ctx | { Ok(7_u32) });
        let engine = world.launch(builder.function("work", work).function("idle", idle));
        let handle = world.run(engine.start(call::<()>("work").arg(kind)).id("w")).expect("start");
        world.pass(secs(5));
        faults.start();
        world.pass(secs(120));
        assert_eq!((world.status("w"), world.steps("w").len()), (Status::Pending, 2), "{kind}");
        faults.stop();
        world.run(handle.result()).expect(kind);
        assert_eq!(world.step_names("w")[2..], names, "{kind}");
    }
}
