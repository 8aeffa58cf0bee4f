//! Steps: positions, replay, where a call is made, and what a call leaves that is dropped or refused.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, join, join_all};
use mainstay_runtime::{Builder, Ctx, Error, ErrorKind, Result, Status};

use crate::support::{Log, World};
use crate::tools::{body, call, poll_once, secs};

#[test]
fn a_recorded_value_or_error_is_replayed_without_its_body() {
    let world = World::new(1);
    let log = Log::default();
    let build = |process: &str| {
        let work = body!(
            [log] | ctx | {
                let value: u32 = ctx
                    .step("value", || async {
                        log.note("value");
                        Ok(5)
                    })
                    .await?;
                let failed = ctx
                    .call("error", || async {
                        log.note("error");
                        "five".parse::<u32>()
                    })
                    .await;
                let error = failed.expect_err("no number");
                ctx.sleep(secs(20)).await?;
                Ok((value, error.name().to_owned(), error.kind() == ErrorKind::App))
            }
        );
        world.builder(process).function("work", work)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<(u32, String, bool)>("work")).id("w")).expect("start");
    world.pass(secs(2));
    world.sim.kill("first");
    let second = world.launch(build("second"));
    let result = world.run(second.handle_by_id::<(u32, String, bool)>("w").result()).expect("result");
    assert_eq!(result, (5, "ParseIntError".to_owned(), true));
    assert_eq!(log.all(), ["value", "error"]);
}

#[test]
fn a_renamed_step_sets_its_workflow_aside_and_names_both() {
    let world = World::new(2);
    let build = |process: &str, name: &'static str| {
        let work = body!(
            [] | ctx | {
                ctx.step(name, || async { Ok(()) }).await?;
                ctx.sleep(secs(20)).await
            }
        );
        world.builder(process).function("work", work)
    };
    let first = world.launch(build("first", "old"));
    world.run(first.start(call::<()>("work")).id("w")).expect("start");
    world.pass(secs(2));
    world.sim.kill("first");
    let second = world.launch(build("second", "new"));
    assert_eq!(world.run(second.handle_by_id::<()>("w").result()).expect_err("set aside").kind(), ErrorKind::Parked);
    let failure = world.failure("w");
    let message = failure["message"].as_str().expect("a text");
    assert!(message.contains("\"old\"") && message.contains("\"new\"") && message.contains("position 0"), "{message}");
    assert_eq!((world.status("w"), failure["name"].as_str()), (Status::Parked, Some("Mismatch")));
}

/// A body that makes steps and a nested group of them in one order and awaits them in another.
fn joined(world: &World, log: &Log, process: &str, order: u64) -> Builder {
    let env = world.env(process);
    let work = body!(
        [log, env] | ctx | {
            let mut calls: Vec<(usize, BoxFuture<'_, Result<usize>>)> = Vec::new();
            for n in 0..6_usize {
                let (log, env) = (&log, &env);
                let step = ctx.step(format!("step {n}"), move || async move {
                    env.sleep(Duration::from_millis(env.rng().below(50) + 20 * u64::from(n % 2 == 0))).await;
                    log.note(format!("{n}"));
                    Ok(10 * n)
                });
                calls.push((n, step.into_future()));
            }
            // Another order of polls in every process; the order of making is the same.
            calls.sort_by_key(|(n, _)| (*n as u64 * 7 + order * 5) % 11);
            let mut values =
                join_all(calls.into_iter().map(|(n, call)| async move { Ok::<_, Error>((n, call.await?)) }))
                    .await
                    .into_iter()
                    .collect::<Result<Vec<(usize, usize)>>>()?;
            values.sort_unstable();
            ctx.step("last", || async { Ok(()) }).await?;
            Ok(values.into_iter().map(|(_, value)| value).collect::<Vec<_>>())
        }
    );
    world.builder(process).function("work", work)
}

#[test]
fn joined_calls_replay_the_same_whatever_the_order_of_their_polls_and_ends() {
    let mut parts = 0;
    for seed in 0..24 {
        let world = World::new(seed);
        let log = Log::default();
        let first = world.launch(joined(&world, &log, "first", seed));
        world.run(first.start(call::<Vec<usize>>("work")).id("w")).expect("start");
        world.pass(Duration::from_millis(30 + seed));
        let done = world.steps("w").len();
        parts += usize::from(done > 0 && done < 7);
        world.sim.kill("first");
        let second = world.launch(joined(&world, &log, "second", seed + 3));
        let values = world.run(second.handle_by_id::<Vec<usize>>("w").result()).expect("result");
        assert_eq!(values, [0, 10, 20, 30, 40, 50]);
        let rows: Vec<_> = world.steps("w").iter().map(|row| (row.position.0, row.name.to_string())).collect();
        let mut expected: Vec<_> = (0..6).map(|n| (n, format!("step {n}"))).collect();
        expected.push((6, "last".to_owned()));
        assert_eq!(rows, expected, "seed {seed}");
    }
    assert!(parts > 12, "only {parts} of 24 crashed among the steps");
}

#[test]
fn a_call_that_is_dropped_leaves_nothing_and_has_spent_its_position() {
    let world = World::new(3);
    let log = Log::default();
    let work = body!(
        [log] | ctx | {
            drop(ctx.step("not awaited", || async { Ok(log.note("not awaited")) }));
            let endless = ctx.step("begun", || async {
                log.note("begun");
                std::future::pending::<Result<()>>().await
            });
            assert!(poll_once(endless).await.is_none());
            drop(ctx.sleep(secs(5)));
            ctx.step("kept", || async { Ok(()) }).await
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<()>("work")).id("w")).expect("start");
    world.run(handle.result()).expect("result");
    assert_eq!(log.all(), ["begun"]);
    let rows: Vec<_> = world.steps("w").iter().map(|row| (row.position.0, row.name.to_string())).collect();
    assert_eq!(rows, [(3, "kept".to_owned())]);
}

#[test]
fn a_call_that_is_refused_when_it_is_made_spends_no_position() {
    let world = World::new(4);
    let work = body!(
        [] | ctx | {
            let long = "n".repeat(10_000);
            for name in ["DBOS.sleep", "", "nul\0", long.as_str()] {
                let error = ctx.step(name, || async { Ok(()) }).await.expect_err("a name that no row can have");
                assert_eq!(error.kind(), ErrorKind::Refused, "{name:?}");
            }
            let none: [mainstay_runtime::Sleep; 0] = [];
            assert_eq!(ctx.race(none).await.expect_err("a race of nothing").kind(), ErrorKind::Refused);
            let refused = ctx.step("outer", || async {
                let error = ctx.spawn(|_| async { Ok(()) }).await.expect_err("a branch inside a step");
                let run = ctx.run(call::<()>("work")).await.expect_err("a child inside a step");
                Ok((error.kind(), run.kind()) == (ErrorKind::Refused, ErrorKind::Refused))
            });
            assert!(refused.await?);
            ctx.step("next", || async { Ok(()) }).await
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<()>("work")).id("w")).expect("start");
    world.run(handle.result()).expect("result");
    let rows: Vec<_> = world.steps("w").iter().map(|row| (row.position.0, row.name.to_string())).collect();
    assert_eq!(rows, [(0, "outer".to_owned()), (1, "next".to_owned())]);
}

#[test]
fn a_step_that_a_body_of_a_step_makes_belongs_to_the_attempt() {
    let world = World::new(5);
    let log = Log::default();
    let work = body!(
        [log] | ctx | {
            // Made by the closure itself, not inside a future of it.
            let inner = || {
                log.note("inner");
                ctx.step("inner", || async { Ok(4) }).into_future()
            };
            let four: u32 = ctx.step("outer", inner).await?;
            ctx.step("after", || async move { Ok(four + 1) }).await
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<u32>("work")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 5);
    assert_eq!((world.step_names("w"), log.count("inner")), (vec!["outer".to_owned(), "after".to_owned()], 1));
}

#[test]
fn a_step_that_is_made_while_another_runs_is_recorded() {
    let world = World::new(6);
    let env = world.env("web");
    let work = body!(
        [env] | ctx | {
            let slow = ctx.step("slow", || async {
                env.sleep(secs(10)).await;
                Ok(1)
            });
            let beside = async {
                env.sleep(secs(2)).await;
                let one: u32 = ctx.step("made meanwhile", || async { Ok(1) }).await?;
                ctx.step("and another", || async move { Ok(one + 1) }).await
            };
            let (slow, beside): (Result<u32>, Result<u32>) = join(slow.into_future(), beside).await;
            Ok(slow? + beside?)
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<u32>("work")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 3);
    assert_eq!(world.step_names("w"), ["slow", "made meanwhile", "and another"]);
}

#[test]
fn a_step_made_in_a_step_cannot_be_awaited_by_the_body() {
    let world = World::new(7);
    let log = Log::default();
    let work = body!(
        [log] | ctx | {
            let smuggled: Arc<Mutex<Option<BoxFuture<'static, Result<()>>>>> = Arc::default();
            let (keep, inner, notes) = (smuggled.clone(), ctx.clone(), log.clone());
            ctx.step("outer", move || {
                let notes = notes.clone();
                let step = inner.step("inner", move || {
                    notes.note("inner");
                    async { Ok(()) }
                });
                *keep.lock().expect("lock") = Some(step.into_future());
                async { Ok(()) }
            })
            .await?;
            let step = smuggled.lock().expect("lock").take().expect("the step");
            let error = step.await.expect_err("awaited in another place");
            assert!(error.kind() == ErrorKind::Refused && error.message().contains("inner"), "{error:?}");
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<()>("work")).id("w")).expect("start");
    world.run(handle.result()).expect("result");
    assert_eq!((world.step_names("w"), log.all().len()), (vec!["outer".to_owned()], 0));
}

#[test]
fn a_call_that_the_body_made_is_its_own_wherever_it_is_awaited() {
    let world = World::new(8);
    let log = Log::default();
    let build = |process: &str| {
        let env = world.env(process);
        let work = body!(
            [log, env] | ctx | {
                let notes = log.clone();
                let first = ctx.step("first", move || {
                    notes.note("first");
                    async { Ok(1) }
                });
                let (inner, notes) = (ctx.clone(), log.clone());
                let nested = ctx.step("second", move || {
                    let (inner, notes) = (inner.clone(), notes.clone());
                    async move {
                        inner
                            .step("in it", move || {
                                notes.note("in it");
                                async { Ok(2) }
                            })
                            .await
                    }
                });
                let elsewhere = async move { Ok::<_, Error>((nested.await?, first.await?)) };
                let values: (u32, u32) = env.tasks().spawn("stray", elsewhere).await.expect("it ends")?;
                ctx.sleep(secs(20)).await?;
                Ok(values)
            }
        );
        world.builder(process).function("work", work)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<(u32, u32)>("work")).id("w")).expect("start");
    world.pass(secs(2));
    assert_eq!(world.step_names("w"), ["first", "second", "DBOS.sleep"]);
    world.sim.kill("first");
    let second = world.launch(build("second"));
    assert_eq!(world.run(second.handle_by_id::<(u32, u32)>("w").result()).expect("result"), (2, 1));
    assert_eq!(log.all(), ["in it", "first"]);
}

/// A step written as a function: it makes the call where it is called, and can be awaited later.
fn doubled(ctx: &Ctx, n: u32) -> mainstay_runtime::StepCall<'static, u32> {
    ctx.step("doubled", move || async move { Ok(2 * n) })
}

#[test]
fn a_function_that_makes_a_step_is_called_in_the_body_alone() {
    let world = World::new(9);
    let lent: Arc<Mutex<Option<Ctx>>> = Arc::default();
    let work = body!(
        [lent] | ctx | {
            *lent.lock().expect("lock") = Some(ctx.clone());
            let n = doubled(&ctx, 4).await?;
            ctx.sleep(secs(10)).await?;
            Ok(n)
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<u32>("work")).id("w")).expect("start");
    world.pass(secs(1));
    let outside = lent.lock().expect("lock").take().expect("a context");
    let error = world.run(doubled(&outside, 5)).expect_err("outside of the body");
    assert!(error.kind() == ErrorKind::Refused && error.message().contains("ctx.spawn"), "{error:?}");
    assert_eq!(world.run(handle.result()).expect("result"), 8);
    assert_eq!(world.step_names("w"), ["doubled", "DBOS.sleep"]);
}
