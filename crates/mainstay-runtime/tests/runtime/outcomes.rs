//! What ends how: a test for each row of the table, and what a recorded form may be.

use std::collections::BTreeMap;

use mainstay_runtime::{Error, ErrorKind, Queue, Status};
use mainstay_store::wrap::{FaultPlan, Method, Rates, WithFaults};
use mainstay_store::{Place, StepResult, Submit, WriteExt};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::logs::logged;
use crate::support::{Log, World};
use crate::tools::{Gone, body, call, secs};

#[test]
fn a_panic_ends_in_error_with_its_text_and_the_process_goes_on() {
    let world = World::new(1);
    let log = Log::default();
    let panics = body!([log] |ctx, place: String| {
        let _gone = Gone(log.clone(), "dropped");
        assert!(place != "at once", "gives way at once");
        ctx.step("one", || async {
            assert!(place != "in a step", "gives way in a step");
            Ok(())
        })
        .await?;
        assert!(place != "later", "gives way later");
        Ok(())
    });
    let engine = world.launch(world.builder("web").function("panics", panics));
    for (place, steps) in [("at once", 0), ("in a step", 0), ("later", 1)] {
        let handle = world.run(engine.start(call::<()>("panics").arg(place)).id(place)).expect("start");
        let error = world.run(handle.result()).expect_err("a panic");
        assert_eq!((error.kind(), world.status(place)), (ErrorKind::Panic, Status::Error));
        assert!(error.message().contains(&format!("gives way {place}")), "{error:?}");
        assert_eq!(world.steps(place).len(), steps);
        assert_eq!(world.run(engine.resume(place)).expect_err("it has ended").kind(), ErrorKind::Conflict);
    }
    let well = world.run(engine.start(call::<()>("panics").arg("never"))).expect("start");
    world.run(well.result()).expect("the process goes on");
    assert_eq!((log.count("dropped"), engine.stats().running), (4, 0));
    assert!(world.sim.panics().is_empty(), "{:?}", world.sim.panics());
}

struct Trap(bool);

impl Drop for Trap {
    fn drop(&mut self) {
        assert!(!self.0, "gives way when dropped");
    }
}

#[test]
fn a_panic_while_a_body_is_dropped_ends_in_error_and_not_the_process() {
    let world = World::new(2);
    let traps = body!([] |ctx, branch: bool| {
        let trap = Trap(!branch);
        if branch {
            drop(ctx.spawn(|ctx| async move {
                let _trap = Trap(true);
                ctx.sleep(secs(60)).await
            }));
            ctx.sleep(secs(1)).await?;
            return Ok(drop(trap));
        }
        let _held = trap;
        Ok(())
    });
    let engine = world.launch(world.builder("web").function("traps", traps));
    for branch in [true, false] {
        let handle = world.run(engine.start(call::<()>("traps").arg(branch))).expect("start");
        assert_eq!(world.run(handle.result()).expect_err("a panic").kind(), ErrorKind::Panic);
    }
    assert_eq!(engine.stats().running, 0);
}

#[test]
fn an_error_ends_in_error_with_name_message_code_and_data() {
    let world = World::new(3);
    let fails = body!(
        [] | _ctx | {
            Err::<(), _>(
                Error::named("OutOfStock", "none left").with_code(7).with_data(BTreeMap::from([("item", "tea")])),
            )
        }
    );
    let engine = world.launch(world.builder("web").function("fails", fails));
    let handle = world.run(engine.start(call::<()>("fails")).id("w")).expect("start");
    let error = world.run(handle.result()).expect_err("an error");
    assert_eq!((error.kind(), error.name(), error.message()), (ErrorKind::App, "OutOfStock", "none left"));
    assert_eq!(error.decode::<BTreeMap<String, String>>(), Some(BTreeMap::from([("item".into(), "tea".into())])));
    let expected =
        serde_json::json!({"name": "OutOfStock", "message": "none left", "code": 7, "data": {"item": "tea"}});
    assert_eq!((world.failure("w"), world.status("w")), (expected, Status::Error));
}

#[test]
fn an_input_that_does_not_decode_ends_in_error_and_the_body_never_begins() {
    let world = World::new(4);
    let log = Log::default();
    let takes = body!([log] |_ctx, n: u64, m: u64| { log.note("begun"); Ok(n + m) });
    let engine = world.launch(world.builder("web").queue(Queue::new("jobs")).function("takes", takes));
    let inputs = [
        ("text", r#"{"positionalArgs":["a",1],"namedArgs":{}}"#),
        ("one", r#"{"positionalArgs":[1],"namedArgs":{}}"#),
        ("three", r#"{"positionalArgs":[1,2,3],"namedArgs":{}}"#),
        ("broken", "{\"positional"),
    ];
    for (id, input) in inputs {
        let submit = Submit::new(id, "takes", id, Place::queue("jobs")).app("shop").codec("portable_json").input(input);
        let store = engine.store().clone();
        world.run(async { store.submit(submit).await }).expect("a submit");
        let error = world.run(engine.handle_by_id::<u64>(id).result()).expect_err(id);
        assert_eq!((error.kind(), world.status(id)), (ErrorKind::BadInput, Status::Error), "{id}");
        assert!(!error.message().contains("positional\""), "{error:?}");
    }
    assert_eq!((log.count("begun"), engine.stats().running), (0, 0));
}

#[test]
fn a_recorded_step_that_does_not_decode_sets_aside_and_the_right_code_goes_on() {
    let world = World::new(5);
    let log = Log::default();
    let build = |process: &str, changed: bool| {
        let work = body!(
            [log] | ctx | {
                let n = if changed {
                    ctx.step("one", || async { Ok("text".to_owned()) }).await?.len() as u64
                } else {
                    ctx.step("one", || async {
                        log.note("one");
                        Ok(5_u64)
                    })
                    .await?
                };
                ctx.sleep(secs(20)).await?;
                Ok(n)
            }
        );
        world.builder(process).function("work", work)
    };
    let first = world.launch(build("first", false));
    world.run(first.start(call::<u64>("work")).id("w")).expect("start");
    world.pass(secs(2));
    world.sim.kill("first");
    let wrong = world.launch(build("wrong", true));
    assert_eq!(world.run(wrong.handle_by_id::<u64>("w").result()).expect_err("set aside").kind(), ErrorKind::Parked);
    let failure = world.failure("w");
    assert_eq!((world.status("w"), failure["name"].as_str()), (Status::Parked, Some("Mismatch")));
    let message = failure["message"].as_str().expect("text");
    assert!(message.contains("\"one\"") && message.contains("position 0"), "{message}");
    world.sim.kill("wrong");
    let right = world.launch(build("right", false));
    world.run(right.resume("w")).expect("resume");
    assert_eq!(world.run(right.handle_by_id::<u64>("w").result()).expect("result"), 5);
    assert_eq!(log.count("one"), 1);
}

#[test]
fn an_execution_that_loses_the_race_for_the_outcome_adopts_the_winners() {
    let world = World::new(6);
    let (first_env, log) = (world.env("first"), Log::default());
    let (builder, faults) = world.cuttable("first");
    let slow = body!(
        [first_env, log] | ctx | {
            let _gone = Gone(log.clone(), "dropped");
            // No durable call: the outcome is all that it writes.
            drop(ctx.workflow_id().clone());
            first_env.sleep(secs(30)).await;
            Ok("the loser".to_owned())
        }
    );
    let first = world.launch(builder.function("work", slow));
    let handle = world.run(first.start(call::<String>("work")).id("w")).expect("start");
    world.pass(secs(1));
    faults.start();
    let wins = body!([] | _ctx | { Ok("the winner".to_owned()) });
    let second = world.launch(world.builder("second").function("work", wins));
    assert_eq!(world.run(second.handle_by_id::<String>("w").result()).expect("result"), "the winner");
    world.pass(secs(60));
    faults.stop();
    assert_eq!(world.run(handle.result()).expect("adopted"), "the winner");
    world.pass(secs(30));
    assert_eq!(world.run(second.handle_by_id::<String>("w").result()).expect("it stands"), "the winner");
    assert_eq!(log.count("dropped"), 1);
}

#[test]
fn an_outage_of_the_store_pauses_work_and_ends_nothing() {
    let world = World::new(7);
    let log = Log::default();
    let plan = FaultPlan::new(3).everywhere(Rates { before: 0.5, after: 0.5, ..Rates::default() });
    let (store, faults) = WithFaults::new(Arc::new(world.memory.attach(world.env("web"))), plan);
    faults.stop();
    let env = world.env("web");
    let none = body!([] | _ctx | { Ok(1_u64) });
    let work = body!(
        [log, env] | ctx | {
            for name in ["one", "two"] {
                ctx.step(name, || async {
                    env.sleep(secs(5)).await;
                    Ok(log.note(name))
                })
                .await?;
            }
            ctx.sleep(secs(5)).await?;
            ctx.run(call::<u64>("none")).await
        }
    );
    let builder = mainstay_runtime::Engine::builder(store).app("shop").executor("web");
    let engine = world.launch(builder.function("work", work).function("none", none));
    let handle = world.run(engine.start(call::<u64>("work")).id("w")).expect("start");
    world.pass(secs(2));
    faults.start();
    world.pass(secs(300));
    assert_eq!(log.all(), ["one"], "the body waits for its first checkpoint");
    assert_eq!(world.status("w"), Status::Pending);
    let status = world.run(handle.status()).expect_err("a caller outside hears of it");
    assert_eq!(status.kind(), ErrorKind::Unavailable);
    let start = world.run(engine.start(call::<u64>("none")).id("late"));
    assert_eq!(start.expect_err("after 30 s").kind(), ErrorKind::Unavailable);
    faults.stop();
    assert_eq!(world.run(handle.result()).expect("it goes on"), 1);
    // The process was away for longer than its lease, but nobody took its work over.
    assert_eq!(log.all(), ["one", "two"]);
    let positions: Vec<_> = world.steps("w").iter().map(|step| step.position.0).collect();
    assert_eq!(positions, [0, 1, 2, 3, 4], "the numbers of a run without faults");
}

#[test]
fn lost_answers_at_any_rate_change_neither_numbers_nor_values() {
    for seed in 0..6 {
        let world = World::new(seed);
        let log = Log::default();
        let rates = Rates { before: 0.15, after: 0.15, delay: 0.1, hang: 0.0 };
        let plan = FaultPlan::new(seed).on(Method::Commit, rates).on(Method::QueueClaim, rates);
        let (store, _faults) = WithFaults::new(Arc::new(world.memory.attach(world.env("web"))), plan);
        let double = body!([] |_ctx, n: u64| { Ok(2 * n) });
        let work = body!(
            [log] | ctx | {
                let mut sum = 0;
                for n in 0..5_u64 {
                    sum += ctx
                        .step("step", || async {
                            log.note(format!("{n}"));
                            Ok(n)
                        })
                        .await?;
                    sum += ctx.run(call::<u64>("double").arg(n)).await?;
                    ctx.sleep(secs(1)).await?;
                }
                Ok(sum)
            }
        );
        let builder = mainstay_runtime::Engine::builder(store).app("shop").executor("web").queue(Queue::new("jobs"));
        let engine = world.launch(builder.function("work", work).function("double", double));
        let handle = world.run(engine.start(call::<u64>("work")).id("w").queue("jobs")).expect("start");
        assert_eq!(world.run(handle.result()).expect("result"), 30);
        let positions: Vec<_> = world.steps("w").iter().map(|step| step.position.0).collect();
        assert_eq!(positions, (0..20).collect::<Vec<_>>());
        assert_eq!(log.all(), ["0", "1", "2", "3", "4"], "seed {seed}");
    }
}

#[test]
fn a_result_that_cannot_be_encoded_ends_in_error() {
    let world = World::new(8);
    let engine = world.launch(
        world
            .builder("web")
            .function("nan", body!([] | _ctx | { Ok(f64::NAN) }))
            .function("huge", body!([] | _ctx | { Ok("x".repeat(64 << 20)) })),
    );
    for name in ["nan", "huge"] {
        let handle = world.run(engine.start(call::<serde_json::Value>(name)).id(name)).expect("start");
        let error = world.run(handle.result()).expect_err(name);
        assert_eq!((error.kind(), world.status(name)), (ErrorKind::BadOutput, Status::Error), "{name}");
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Measure {
    value: f64,
}

#[test]
fn a_step_value_that_cannot_be_encoded_is_the_steps_recorded_error() {
    let world = World::new(9);
    let log = Log::default();
    let build = |process: &str| {
        let work = body!(
            [log] | ctx | {
                let nan = ctx
                    .step("nan", || async {
                        log.note("nan");
                        Ok(Measure { value: f64::NAN })
                    })
                    .await;
                let huge = ctx
                    .step("huge", || async {
                        log.note("huge");
                        Ok("x".repeat(64 << 20))
                    })
                    .await;
                let kinds =
                    [nan.map(drop), huge.map(drop)].map(|result| format!("{:?}", result.expect_err("refused").kind()));
                ctx.sleep(secs(20)).await?;
                ctx.step("well", || async { Ok(Measure { value: 1.5 }) }).await?;
                Ok(kinds)
            }
        );
        world.builder(process).function("work", work)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<[String; 2]>("work")).id("w")).expect("start");
    world.pass(secs(5));
    let steps = world.steps("w");
    assert!(steps[..2].iter().all(|step| matches!(step.result, StepResult::Failure(_))), "{steps:?}");
    world.sim.kill("first");
    let second = world.launch(build("second"));
    let kinds = world.run(second.handle_by_id::<[String; 2]>("w").result()).expect("caught");
    assert_eq!(kinds, ["BadOutput", "BadOutput"]);
    assert_eq!(log.all(), ["nan", "huge"]);
    assert_eq!(world.status("w"), Status::Success);
}

#[test]
fn values_are_handed_back_as_they_were_stored_on_the_first_run_too() {
    #[derive(Debug, Serialize, Deserialize, PartialEq)]
    struct Half {
        kept: u32,
        #[serde(skip)]
        lost: u32,
    }
    let world = World::new(10);
    let build = |process: &str| {
        let work = body!(
            [] | ctx | {
                let half = ctx.step("half", || async { Ok(Half { kept: 1, lost: 2 }) }).await?;
                let error = ctx
                    .call("io", || async { Err::<(), _>(std::io::Error::other("away")) })
                    .await
                    .expect_err("an error");
                let source = error.downcast_ref::<std::io::Error>().is_some();
                ctx.sleep(secs(20)).await?;
                Ok((half.kept, half.lost, source, error.message().to_owned()))
            }
        );
        world.builder(process).function("work", work)
    };
    type Told = (u32, u32, bool, String);
    let first = world.launch(build("first"));
    let handle = world.run(first.start(call::<Told>("work")).id("fresh")).expect("start");
    let fresh = world.run(handle.result()).expect("result");
    world.run(first.start(call::<Told>("work")).id("again")).expect("start");
    world.pass(secs(5));
    world.sim.kill("first");
    let second = world.launch(build("second"));
    let replayed = world.run(second.handle_by_id::<Told>("again").result()).expect("result");
    assert_eq!((&fresh, fresh.1, fresh.2), (&replayed, 0, false));
}

#[test]
fn recorded_steps_that_the_code_no_longer_asks_for_do_not_fail_it() {
    let world = World::new(11);
    let build = |process: &str, steps: u32| {
        let work = body!(
            [] | ctx | {
                for n in 0..steps {
                    ctx.step(format!("s{n}"), || async { Ok(()) }).await?;
                }
                if steps == 3 {
                    ctx.sleep(secs(60)).await?;
                }
                Ok(steps)
            }
        );
        world.builder(process).function("work", work)
    };
    let first = world.launch(build("first", 3));
    world.run(first.start(call::<u32>("work")).id("w")).expect("start");
    world.pass(secs(2));
    world.sim.kill("first");
    let second = world.launch(build("second", 2));
    assert_eq!(world.run(second.handle_by_id::<u32>("w").result()).expect("result"), 2);
}

#[test]
fn code_that_blocks_its_thread_is_named_once_an_execution() {
    let world = World::new(12);
    let clock = world.sim.clock().clone();
    // As code does that knows nothing of tasks: time passes inside one poll.
    let blocks = body!([clock] |ctx, place: String, millis: u64| {
        let block = |here: &str| {
            if here == place { clock.advance(std::time::Duration::from_millis(millis)); }
        };
        for _ in 0..2 {
            ctx.step("digest", || async { Ok(block("a step")) }).await?;
        }
        block("the body");
        let clock = clock.clone();
        ctx.spawn(move |ctx| async move {
            if place == "a branch" { clock.advance(std::time::Duration::from_millis(millis)); }
            ctx.step("after", || async { Ok(()) }).await
        })
        .await
    });
    let engine = world.launch(world.builder("web").function("blocks", blocks));
    for (place, millis, warnings) in
        [("a step", 2_000, 1), ("the body", 2_000, 1), ("a branch", 2_000, 1), ("a step", 900, 0), ("nowhere", 0, 0)]
    {
        let id = format!("{place} {millis}");
        let ((), lines) = logged(|| {
            let start = engine.start(call::<()>("blocks").arg(place).arg(millis)).id(id.as_str());
            world.run(async { start.await?.result().await }).expect("result");
        });
        let about: Vec<_> = lines.iter().filter(|line| line.text.contains("blocked its thread")).collect();
        assert_eq!(about.len(), warnings, "{id}: {lines:?}");
        for line in about {
            assert!(line.text.contains(&format!("workflow={id}")), "{line:?}");
            assert_eq!(line.text.contains("step=digest"), place == "a step", "{line:?}");
        }
    }
}
