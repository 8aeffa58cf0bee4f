//! Recovery: from the last recorded step, by whoever is there, through the queue, and never past a fence.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_memory::Trouble;
use mainstay_runtime::{Builder, Ctx, Error, Handle, Queue, Registration, Result, Status};
use mainstay_store::ErrorKind as StoreKind;
use mainstay_store::wrap::Method;

use crate::support::{Log, World};
use crate::tools::{body, call, secs};

/// Three steps with a child and a short sleep between.
fn long(world: &World, log: &Log, process: &str) -> mainstay_runtime::Builder {
    let env = world.env(process);
    let child = body!([log] | ctx | { ctx.step("child", || async { Ok(log.note("child")) }).await });
    let steps = body!(
        [log, env] | ctx | {
            for name in ["one", "two", "three"] {
                ctx.step(name, || async {
                    env.sleep(Duration::from_millis(10)).await;
                    Ok(log.note(name))
                })
                .await?;
                ctx.sleep(Duration::from_millis(20)).await?;
            }
            ctx.run(call::<()>("child")).await?;
            Ok(7)
        }
    );
    world.builder(process).queue(Queue::new("jobs")).function("child", child).function("steps", steps)
}

#[test]
fn a_crash_at_any_poll_repeats_no_recorded_step_and_loses_none() {
    let mut met = BTreeMap::new();
    let most = if std::env::var_os("MAINSTAY_FULL").is_some() { 1_500 } else { 300 };
    for polls in (0..most).step_by(if most > 300 { 1 } else { 3 }) {
        let world = World::new(1);
        let log = Log::default();
        let first = world.launch(long(&world, &log, "first"));
        world.run(first.start(call::<u32>("steps")).id("w")).expect("start");
        for _ in 0..polls {
            if !world.sim.step() {
                world.sim.clock().advance_to_next();
            }
        }
        world.sim.kill("first");
        let recorded = world.step_names("w");
        let by_child = if world.find("w-6").is_some() { world.step_names("w-6") } else { Vec::new() };
        let second = world.launch(long(&world, &log, "second"));
        assert_eq!(world.run(second.handle_by_id::<u32>("w").result()).expect("result"), 7, "after {polls} polls");
        for name in ["one", "two", "three", "child"] {
            let stored = if name == "child" { &by_child } else { &recorded };
            let (times, stored) = (log.count(name), stored.iter().any(|other| other == name));
            assert!(
                times == 1 || (times == 2 && !stored),
                "{name} ran {times} times after {polls} polls: {recorded:?}"
            );
        }
        *met.entry(recorded.len()).or_insert(0) += 1;
        assert!(world.sim.panics().is_empty());
    }
    assert!(met.len() >= 5, "crashes between many pairs of checkpoints: {met:?}");
}

#[test]
fn a_recovered_row_comes_back_through_its_queue_or_the_internal_one() {
    let world = World::new(2);
    let wait = || {
        body!(
            [] | ctx | {
                ctx.sleep(secs(60)).await?;
                Ok(())
            }
        )
    };
    let build = |process: &str| world.builder(process).queue(Queue::new("jobs")).function("wait", wait());
    let first = world.launch(build("first"));
    world.run(first.start(call::<()>("wait")).id("queued").queue("jobs")).expect("start");
    world.run(first.start(call::<()>("wait")).id("direct")).expect("start");
    world.until("claimed", || world.status("queued") == Status::Pending);
    world.sim.kill("first");
    // Who serves neither queue's functions still takes the rows over, back to where they came from.
    let other = world.launch(world.builder("other").function("else", body!([] | _ctx | { Ok(()) })));
    world.until("taken over", || {
        world.status("queued") == Status::Enqueued && world.status("direct") == Status::Enqueued
    });
    let queue = |id: &str| world.row(id).queue.map(|queue| queue.to_string());
    assert_eq!(queue("queued").as_deref(), Some("jobs"));
    assert_eq!(queue("direct").as_deref(), Some("_dbos_internal_queue"));
    let second = world.launch(build("second"));
    for id in ["queued", "direct"] {
        world.run(second.handle_by_id::<()>(id).result()).expect("result");
        assert_eq!(world.row(id).attempts, 2);
    }
    drop(other);
}

#[test]
fn limits_of_a_process_hold_while_it_takes_over_the_work_of_another() {
    let world = World::new(3);
    let most: Arc<Mutex<BTreeMap<String, (i32, i32)>>> = Arc::default();
    let build = |process: &str| {
        let (env, name) = (world.env(process), process.to_owned());
        let work = body!(
            [most, env, name] | ctx | {
                ctx.step("work", || async {
                    let count = |by: i32| {
                        let mut most = most.lock().expect("no panic");
                        let (now, peak) = most.entry(name.clone()).or_default();
                        *now += by;
                        *peak = (*peak).max(*now);
                    };
                    count(1);
                    env.sleep(secs(3)).await;
                    count(-1);
                    Ok(())
                })
                .await
            }
        );
        world.builder(process).queue(Queue::new("jobs").worker_concurrency(2)).function("work", work)
    };
    let first = world.launch(build("first"));
    let second = world.launch(build("second"));
    for n in 0..12 {
        world.run(first.start(call::<()>("work")).id(format!("w{n}")).queue("jobs")).expect("start");
    }
    world.pass(secs(4));
    world.sim.kill("first");
    for n in 0..12 {
        world.run(second.handle_by_id::<()>(format!("w{n}")).result()).expect("result");
    }
    let peaks: Vec<i32> = most.lock().expect("no panic").values().map(|(_, peak)| *peak).collect();
    assert_eq!(peaks, [2, 2]);
}

#[test]
fn what_a_process_does_not_know_is_left_and_the_rest_recovers() {
    let world = World::new(4);
    let wait = || {
        body!(
            [] | ctx | {
                ctx.sleep(secs(5)).await?;
                Ok(())
            }
        )
    };
    let first = world.launch(world.builder("first").function("known", wait()).function("unknown", wait()));
    for name in ["known", "unknown"] {
        world.run(first.start(call::<()>(name)).id(name)).expect("start");
    }
    world.pass(secs(1));
    world.sim.kill("first");
    let second = world.launch(world.builder("second").function("known", wait()));
    world.run(second.handle_by_id::<()>("known").result()).expect("result");
    world.pass(secs(60));
    assert_eq!((world.status("unknown"), world.row("unknown").attempts), (Status::Enqueued, 1));
    let third = world.launch(world.builder("third").function("unknown", wait()));
    world.run(third.handle_by_id::<()>("unknown").result()).expect("result");
    drop(second);
}

#[test]
fn processes_of_one_name_leave_each_others_live_work_alone() {
    let world = World::new(5);
    let log = Log::default();
    let build = |process: &str| {
        let wait = body!(
            [log] | ctx | {
                log.note("begun");
                ctx.sleep(secs(40)).await?;
                Ok(())
            }
        );
        world.builder(process).executor("local").function("wait", wait)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<()>("wait")).id("w")).expect("start");
    let second = world.launch(build("second"));
    assert_ne!(first.executor_id(), second.executor_id());
    world.run(second.handle_by_id::<()>("w").result()).expect("result");
    assert_eq!((log.count("begun"), world.row("w").attempts), (1, 1));
}

/// What a workflow does next, after a wait that is no durable call.
async fn next_call(ctx: &Ctx, next: &str, fixed: &Handle<()>) -> Result<()> {
    match next {
        "step" => ctx.step("next", || async { Ok(()) }).await,
        "failing step" => {
            let failed = ctx.step("next", || async { Err::<(), _>(Error::new("no")) }).await;
            assert_eq!(failed.expect_err("as it was recorded").message(), "no");
            Ok(())
        }
        "sleep" => ctx.sleep(secs(1)).await,
        "start" => ctx.start(call::<()>("other")).await.map(drop),
        "await" => fixed.result().await,
        "status" => fixed.status().await.map(drop),
        "cancel" => fixed.cancel().await,
        "race" => ctx.race([ctx.step("next", || async { Ok(()) })]).await.map(drop),
        _ => Ok(()),
    }
}

#[test]
fn a_late_owner_writes_nothing_whatever_its_next_call_is_and_goes_on_under_a_new_name() {
    let calls = ["step", "failing step", "sleep", "start", "await", "status", "cancel", "race", "end"];
    for (seed, next) in calls.into_iter().enumerate() {
        let world = World::new(10 + seed as u64);
        let log = Log::default();
        let build = |builder: Builder, process: &'static str| {
            let env = world.env(process);
            let other = body!([log] | _ctx | { Ok(log.note("other")) });
            let work = body!([env, log] |ctx, next: String, wait: u64| {
                let fixed = ctx.start(call::<()>("other")).id("fixed").await?;
                // The first write after the loss of the lease is the call that is tried. The second process still waits then.
                env.sleep(secs(if process == "second" { 100 } else { wait })).await;
                next_call(&ctx, &next, &fixed).await?;
                log.note(format!("{process} {next}"));
                Ok(process.to_owned())
            });
            builder.function("work", work).function("other", other)
        };
        let (builder, faults) = world.cuttable("first");
        let first = world.launch(build(builder, "first"));
        let before = first.executor_id();
        let handle = world.run(first.start(call::<String>("work").arg(next).arg(60)).id("w")).expect("start");
        world.pass(secs(5));
        faults.start();
        let second = world.launch(build(world.builder("second"), "second"));
        world.until("taken over", || world.row("w").attempts == 2 && world.status("w") == Status::Pending);
        let row = world.row("w");
        world.pass(secs(70));
        faults.stop();
        world.pass(secs(10));
        assert_eq!((world.row("w"), world.step_names("w")), (row, vec!["other".to_owned()]), "{next}: a late write");
        // A body that has returned was on its way to its outcome.
        assert_eq!(log.count(&format!("first {next}")), usize::from(next == "end"), "{next}: it went on");
        assert_eq!(world.run(handle.result()).expect("result"), "second", "{next}");
        assert_eq!(log.count("other"), if next == "start" { 2 } else { 1 });
        assert_eq!(world.run(second.handle_by_id::<String>("w").result()).expect("it stands"), "second");
        assert_ne!(first.executor_id(), before, "its lease was lost");
        let again = world.run(first.start(call::<String>("work").arg("end").arg(0)).id("again")).expect("start");
        assert_eq!(world.run(again.result()).expect("result"), "first");
    }
}

#[test]
fn a_version_is_continued_by_its_own_and_the_default_by_every_build() {
    let world = World::new(6);
    let wait = || {
        body!(
            [] | ctx | {
                ctx.sleep(secs(20)).await?;
                Ok(())
            }
        )
    };
    let build = |process: &str, version: Option<&str>| {
        let builder = world.builder(process).function("wait", wait());
        version.iter().fold(builder, |builder, version| builder.version(*version))
    };
    let old = world.launch(build("old", Some("v1")));
    let free = world.launch(build("free", None));
    world.run(old.start(call::<()>("wait")).id("pinned")).expect("start");
    world.run(free.start(call::<()>("wait")).id("free")).expect("start");
    world.pass(secs(1));
    world.sim.kill("old");
    world.sim.kill("free");
    let new = world.launch(build("new", Some("v2")));
    let build_of_today = world.launch(build("today", None));
    world.run(build_of_today.handle_by_id::<()>("free").result()).expect("result");
    world.pass(secs(60));
    assert_eq!(world.status("pinned"), Status::Enqueued);
    let old = world.launch(build("old again", Some("v1")));
    world.run(old.handle_by_id::<()>("pinned").result()).expect("result");
    drop(new);
}

#[test]
fn steps_that_do_not_fit_into_a_claim_are_read_before_the_body_begins() {
    let world = World::new(7);
    let log = Log::default();
    let build = |process: &str| {
        let big = body!(
            [log] | ctx | {
                let mut sum = 0;
                for n in 0..40_usize {
                    let text = ctx
                        .step("big", || async {
                            log.note("big");
                            Ok("x".repeat(200_000))
                        })
                        .await?;
                    sum += text.len() + n;
                }
                ctx.sleep(secs(30)).await?;
                Ok(sum)
            }
        );
        world.builder(process).function("big", big)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<usize>("big")).id("w")).expect("start");
    world.until("recorded", || world.steps("w").len() == 41);
    world.sim.kill("first");
    let second = world.launch(build("second"));
    assert_eq!(world.run(second.handle_by_id::<usize>("w").result()).expect("result"), 40 * 200_000 + 780);
    assert_eq!(log.count("big"), 40);
}

#[test]
fn what_does_not_fit_into_a_claim_and_cannot_be_read_sets_the_row_aside() {
    for kind in [StoreKind::Corrupt, StoreKind::Bug, StoreKind::Invalid] {
        for method in [Method::WorkflowSteps, Method::WorkflowInput] {
            let world = World::new(19);
            let log = Log::default();
            let build = |process: &str| {
                let big = body!(
                    [log] | ctx, text: String | {
                        for _ in 0..3 {
                            ctx.step("big", || async { Ok(log.note(text.as_str())) }).await?;
                            ctx.step("text", || async { Ok(text.clone()) }).await?;
                        }
                        ctx.sleep(secs(30)).await?;
                        Ok(text.len())
                    }
                );
                world.builder(process).max_running(1).function("big", big)
            };
            let first = world.launch(build("first"));
            let text = "x".repeat(300_000);
            world.run(first.start(call::<usize>("big").arg(text.as_str())).id("w")).expect("start");
            world.until("recorded", || world.steps("w").len() == 7);
            world.sim.kill("first");
            let failing = world.memory.fail(method, kind);
            let second = world.launch(build("second"));
            world.until("set aside", || world.status("w") == Status::Parked);
            world.pass(secs(1));
            assert_eq!((second.stats().running, second.stats().active), (0, 0), "its places are free");
            assert_eq!(world.failure("w")["name"], "Mismatch", "{method} {kind}");
            drop(failing);
            world.run(second.resume("w")).expect("resume");
            assert_eq!(world.run(second.handle_by_id::<usize>("w").result()).expect("result"), 300_000);
            assert_eq!(log.count(&text), 3, "{method} {kind}");
        }
    }
}

#[test]
fn attempts_are_counted_in_the_claim_and_the_one_over_the_cap_does_not_begin() {
    for cap in [1, 2, 5] {
        let world = World::new(8);
        let log = Log::default();
        let build = |process: &str| {
            let wait = body!(
                [log] | ctx | {
                    log.note(format!("{}", ctx.attempt()));
                    ctx.sleep(secs(500)).await?;
                    Ok(())
                }
            );
            world.builder(process).register(Registration::function("wait", wait).max_attempts(cap))
        };
        let engine = world.launch(build("p0"));
        world.run(engine.start(call::<()>("wait")).id("w")).expect("start");
        for n in 0..cap {
            world.pass(secs(2));
            assert_eq!((world.status("w"), world.row("w").attempts), (Status::Pending, n + 1));
            world.sim.kill(&format!("p{n}"));
            world.launch(build(&format!("p{}", n + 1)));
            world.until("it moves on", || world.row("w").attempts > n + 1 || world.status("w") == Status::Parked);
        }
        assert_eq!(world.status("w"), Status::Parked);
        assert_eq!(log.all(), (1..=cap).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn many_workflows_end_well_while_hints_are_lost_and_processes_die() {
    for seed in 0..4 {
        let world = World::troubled(seed, Trouble { lost: 0.5, ..Trouble::default() });
        let log = Log::default();
        let mut engine = world.launch(long(&world, &log, "p0"));
        for n in 0..20 {
            let start = engine.start(call::<u32>("steps")).id(format!("w{n}"));
            let start = if n % 2 == 0 { start.queue("jobs") } else { start };
            world.run(start).expect("start");
        }
        for n in 0..3 {
            world.pass(Duration::from_millis(25 + 15 * n));
            world.sim.kill(&format!("p{n}"));
            engine = world.launch(long(&world, &log, &format!("p{}", n + 1)));
            world.pass(secs(11));
        }
        for n in 0..20 {
            assert_eq!(world.run(engine.handle_by_id::<u32>(format!("w{n}")).result()).expect("result"), 7);
        }
        world.memory.check_invariants().expect("the store is sound");
        assert!(world.sim.panics().is_empty());
    }
}

#[test]
fn an_engine_works_on_when_its_last_handle_is_dropped() {
    let world = World::new(11);
    let wait = body!(
        [] | ctx | {
            ctx.sleep(secs(5)).await?;
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").queue(Queue::new("jobs")).function("wait", wait));
    world.run(engine.start(call::<()>("wait")).id("later").queue("jobs").delay(secs(20))).expect("start");
    drop(engine);
    world.until("its end", || world.status("later") == Status::Success);
    assert_eq!(world.row("later").attempts, 1);
}

#[test]
fn a_process_serves_queues_that_come_later_narrows_them_if_told_and_always_the_internal_one() {
    let world = World::new(12);
    let log = Log::default();
    let build = |process: &'static str| {
        let work = body!([log] | ctx | { Ok(log.note(format!("{process} {}", ctx.workflow_id()))) });
        world.builder(process).function("work", work)
    };
    let all = world.launch(build("all"));
    let none = world.launch(build("none").listen_queues([""; 0]));
    let narrow =
        world.launch(build("narrow").queue(Queue::new("late")).queue(Queue::new("other")).listen_queues(["other"]));
    // Of another application, and so of nobody here.
    let foreign = mainstay_runtime::Engine::builder(world.memory.attach(world.env("foreign"))).app("bank");
    let foreign = world.launch(foreign.queue(Queue::new("theirs")).function("else", body!([] | _ctx | { Ok(()) })));
    for n in 0..20 {
        for queue in ["late", "other", "theirs"] {
            let start = narrow.start(call::<()>("work")).id(format!("{queue}{n}")).queue(queue);
            world.run(start).expect("start");
        }
    }
    world.pass(secs(5));
    assert!((0..20).all(|n| log.count(&format!("all late{n}")) == 1), "{:?}", log.all());
    for n in 0..20 {
        let by = ["all", "narrow"].map(|process| log.count(&format!("{process} other{n}")));
        assert_eq!(by[0] + by[1], 1);
        assert_eq!(world.status(&format!("theirs{n}")), Status::Enqueued);
    }
    world.run(all.shutdown(secs(1))).expect("shutdown");
    world.run(narrow.shutdown(secs(1))).expect("shutdown");
    let start = foreign.start(call::<()>("work")).id("left").queue("late");
    world.run(start).expect("start");
    world.run(none.handle_by_id::<()>("late0").cancel()).expect("cancel");
    world.run(none.start(call::<()>("work")).id("direct").queue("unregistered")).expect("start");
    world.run(none.resume("direct")).expect("resume");
    world.run(none.handle_by_id::<()>("direct").result()).expect("the internal queue is served");
    assert_eq!((world.status("left"), log.count("none direct")), (Status::Enqueued, 1));
}
