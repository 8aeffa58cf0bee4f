//! Cases from public bug reports that the memory store and a virtual clock can show.

use std::time::Duration;

use mainstay_runtime::{ErrorKind, Queue, Status};
use mainstay_store::{Place, Submit, WriteExt};

use crate::support::{Log, World};
use crate::tools::{Gone, body, call, secs};

#[test]
fn case_o06_a_late_owner_writes_neither_checkpoint_nor_outcome_over_a_finished_row() {
    let world = World::new(1);
    let log = Log::default();
    let build = |builder: mainstay_runtime::Builder, process: &'static str| {
        let env = world.env(process);
        let work = body!(
            [log, env] | ctx | {
                let _gone = Gone(log.clone(), process);
                ctx.step("one", || async {
                    if process == "first" {
                        env.sleep(secs(120)).await;
                    }
                    Ok(log.note(format!("{process} one")))
                })
                .await?;
                ctx.step("two", || async { Ok(log.note(format!("{process} two"))) }).await?;
                Ok(process.to_owned())
            }
        );
        builder.function("work", work)
    };
    let (builder, faults) = world.cuttable("first");
    let first = world.launch(build(builder, "first"));
    world.run(first.start(call::<String>("work")).id("w")).expect("start");
    world.pass(secs(1));
    faults.start();
    let second = world.launch(build(world.builder("second"), "second"));
    assert_eq!(world.run(second.handle_by_id::<String>("w").result()).expect("result"), "second");
    let (row, steps) = (world.row("w"), world.steps("w"));
    // Its step is still on when it comes back: it finds its lease gone, and drops what it ran.
    world.pass(secs(50));
    assert_eq!(log.count("first"), 0);
    faults.stop();
    world.pass(secs(2));
    assert_eq!(log.count("first"), 1);
    world.pass(secs(150));
    assert_eq!((world.row("w"), world.steps("w")), (row, steps));
    assert_eq!(log.all(), ["second one", "second two", "second", "first"]);
    assert_eq!(world.status("w"), Status::Success);
}

#[test]
fn case_o09_a_panic_frees_the_only_slot_of_its_queue_at_once() {
    let world = World::new(2);
    let log = Log::default();
    let work = body!([log] |_ctx, n: u64| {
        log.note(format!("{n}"));
        assert!(n != 0, "the first one gives way");
        Ok(n)
    });
    let queue = Queue::new("jobs").concurrency(1).worker_concurrency(1);
    let engine = world.launch(world.builder("web").queue(queue).function("work", work));
    for n in 0..5_u64 {
        world.run(engine.start(call::<u64>("work").arg(n)).id(format!("w{n}")).queue("jobs")).expect("start");
    }
    for n in 1..5 {
        assert_eq!(world.run(engine.handle_by_id::<u64>(format!("w{n}")).result()).expect("result"), n);
    }
    assert!(world.elapsed() < secs(1), "{:?}", world.elapsed());
    let error = world.run(engine.handle_by_id::<u64>("w0").result()).expect_err("a panic");
    assert!(error.kind() == ErrorKind::Panic && error.message().contains("the first one gives way"), "{error:?}");
    assert_eq!((world.status("w0"), log.all().len()), (Status::Error, 5));
}

#[test]
fn case_o10_of_two_executions_that_meet_at_a_step_the_loser_runs_no_later_step() {
    let world = World::new(3);
    let log = Log::default();
    let build = |builder: mainstay_runtime::Builder, process: &'static str| {
        let env = world.env(process);
        let work = body!(
            [log, env] | ctx | {
                // Both are inside step 0 at the same time.
                ctx.step("zero", || async {
                    log.note(format!("{process} zero"));
                    env.sleep(secs(30)).await;
                    Ok(process.to_owned())
                })
                .await?;
                ctx.step("one", || async { Ok(log.note(format!("{process} one"))) }).await?;
                ctx.sleep(secs(10)).await?;
                Ok(process.to_owned())
            }
        );
        builder.function("work", work)
    };
    let (builder, faults) = world.cuttable("first");
    let first = world.launch(build(builder, "first"));
    let handle = world.run(first.start(call::<String>("work")).id("w")).expect("start");
    world.pass(secs(1));
    faults.start();
    let second = world.launch(build(world.builder("second"), "second"));
    world.until("both are in step 0", || log.all() == ["first zero", "second zero"]);
    faults.stop();
    // The loser adopts what the winner comes to.
    assert_eq!(world.run(handle.result()).expect("result"), "second");
    world.pass(secs(60));
    assert_eq!(log.all(), ["first zero", "second zero", "second one"]);
    assert_eq!(world.run(second.handle_by_id::<String>("w").result()).expect("result"), "second");
}

#[test]
fn case_o31_long_sleeps_neither_end_at_once_nor_overflow_and_wake_after_downtime() {
    let years = |count: u64| secs(count * 365 * 86_400);
    let world = World::new(4);
    let sleeps = || {
        body!([] |ctx, which: String| {
            ctx.sleep(match which.as_str() {
                "month" => secs(30 * 86_400),
                "century" => secs(100 * 365 * 86_400),
                _ => Duration::MAX,
            })
            .await?;
            Ok(which)
        })
    };
    let first = world.launch(world.builder("first").function("sleeps", sleeps()));
    for which in ["month", "century", "max"] {
        world.run(first.start(call::<String>("sleeps").arg(which)).id(which)).expect("start");
    }
    world.pass(secs(3_600));
    for which in ["month", "century", "max"] {
        assert_eq!((world.status(which), world.steps(which).len()), (Status::Pending, 1), "{which}");
    }
    world.sim.kill("first");
    let mut process = 0;
    for (gone, awake) in [(secs(31 * 86_400), "month"), (years(100), "century")] {
        // Nobody lives while the moment of waking passes.
        world.sim.clock().advance(gone);
        let before = world.elapsed();
        process += 1;
        let name = format!("later {process}");
        let later = world.launch(world.builder(&name).function("sleeps", sleeps()));
        assert_eq!(world.run(later.handle_by_id::<String>(awake).result()).expect("it wakes"), awake);
        assert!(world.elapsed() - before < secs(15), "{awake}: {:?}", world.elapsed() - before);
        world.pass(secs(60));
        assert_eq!(world.status("max"), Status::Pending);
        world.sim.kill(&name);
    }
}

#[test]
fn case_o36_a_row_that_does_not_decode_ends_and_the_hundred_behind_it_run() {
    let world = World::new(5);
    let work = body!([] |_ctx, n: u64| { Ok(n) });
    let queue = Queue::new("jobs").concurrency(1).worker_concurrency(1);
    let engine = world.launch(world.builder("web").queue(queue).function("work", work));
    let store = engine.store().clone();
    let input = r#"{"positionalArgs":["no number"],"namedArgs":{}}"#;
    let bad = Submit::new("bad", "work", "t", Place::queue("jobs")).app("shop").codec("portable_json").input(input);
    world.run(async {
        store.submit(bad).await.expect("a submit");
        for n in 0..100_u64 {
            engine.start(call::<u64>("work").arg(n)).id(format!("w{n}")).queue("jobs").await.expect("start");
        }
    });
    let error = world.run(engine.handle_by_id::<u64>("bad").result()).expect_err("it does not decode");
    assert_eq!((error.kind(), world.status("bad")), (ErrorKind::BadInput, Status::Error));
    assert!(world.elapsed() <= secs(1), "{:?}", world.elapsed());
    for n in 0..100 {
        assert_eq!(world.run(engine.handle_by_id::<u64>(format!("w{n}")).result()).expect("result"), n);
    }
}
