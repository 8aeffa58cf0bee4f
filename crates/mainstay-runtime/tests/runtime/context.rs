//! The context: positions, the guard that knows whose code runs, keys, and waits for what is no durable call.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use futures_util::future::join;
use mainstay_runtime::{Attempt, Ctx, Engine, Error, ErrorKind, Status};
use tokio::sync::oneshot;
use tracing::Level;

use crate::logs::{count, logged};
use crate::support::{Log, World};
use crate::tools::{body, call, secs};

#[test]
fn positions_count_from_zero_in_the_order_of_making() {
    let world = World::new(1);
    let work = body!(
        [] | ctx | {
            let (a, b) = (ctx.step("a", || async { Ok(()) }), ctx.step("b", || async { Ok(()) }));
            let c = ctx.sleep(secs(1));
            b.await?;
            c.await?;
            a.await
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<()>("work")).id("w")).expect("start");
    world.run(handle.result()).expect("result");
    let rows: Vec<_> = world.steps("w").iter().map(|row| (row.position.0, row.name.to_string())).collect();
    assert_eq!(rows, [(0, "a".to_owned()), (1, "b".to_owned()), (2, "DBOS.sleep".to_owned())]);
}

#[test]
fn a_step_inside_a_step_runs_inline_without_a_position_of_its_own() {
    let world = World::new(2);
    let log = Log::default();
    let work = body!(
        [log] | ctx | {
            let outer = ctx.step("outer", || async {
                let one: u32 = ctx
                    .step("inner", || async {
                        log.note("inner");
                        Ok(1)
                    })
                    .await?;
                let two: u32 = ctx
                    .call("deeper", || async {
                        let two = ctx
                            .step("deepest", || async {
                                log.note("deepest");
                                Ok(2)
                            })
                            .await;
                        two.map_err(|error| std::io::Error::other(error.to_string()))
                    })
                    .await?;
                ctx.sleep(secs(5)).await?;
                Ok(one + two)
            });
            let three = outer.await?;
            ctx.step("after", || async move { Ok(three) }).await
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<u32>("work")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 3);
    let rows: Vec<_> = world.steps("w").iter().map(|row| (row.position.0, row.name.to_string())).collect();
    assert_eq!(rows, [(0, "outer".to_owned()), (1, "after".to_owned())]);
    assert_eq!(log.all(), ["inner", "deepest"]);
}

#[test]
fn every_call_in_a_spawned_task_is_refused_and_told_of_ctx_spawn() {
    let world = World::new(3);
    let log = Log::default();
    let env = world.env("web");
    let work = body!(
        [log, env] | ctx | {
            let child = ctx.start(call::<()>("child")).await?;
            let (stray, notes) = (ctx.clone(), log.clone());
            let task = env.tasks().spawn("stray", async move {
                let refused = [
                    stray.step("step", || async { Ok(()) }).await.expect_err("a step"),
                    stray.call("call", || async { Ok::<_, std::fmt::Error>(()) }).await.expect_err("a call"),
                    stray.sleep(secs(1)).await.expect_err("a sleep"),
                    stray.start(call::<()>("child")).await.expect_err("a start"),
                    stray.run(call::<()>("child")).await.expect_err("a run"),
                    stray.spawn(|_| async { Ok(()) }).await.expect_err("a branch"),
                    stray.race([stray.sleep(secs(1))]).await.expect_err("a race"),
                    child.result().await.expect_err("a wait"),
                    child.status().await.expect_err("a status"),
                    child.cancel().await.expect_err("a cancel"),
                ];
                for error in refused {
                    notes.note(format!("{:?}: {}", error.kind(), error.message().contains("ctx.spawn")));
                }
            });
            task.await.expect("the task ends");
            ctx.step("after", || async { Ok(()) }).await
        }
    );
    let child = body!([] | _ctx | { Ok(()) });
    let engine = world.launch(world.builder("web").function("work", work).function("child", child));
    let handle = world.run(engine.start(call::<()>("work")).id("w")).expect("start");
    world.run(handle.result()).expect("result");
    assert_eq!(log.all(), ["Refused: true"; 10]);
    // None of them spent a position.
    let rows: Vec<_> = world.steps("w").iter().map(|row| (row.position.0, row.name.to_string())).collect();
    assert_eq!(rows, [(0, "child".to_owned()), (1, "after".to_owned())]);
    assert_eq!(world.memory.rows().len(), 2);
}

#[test]
fn a_wait_for_something_foreign_is_reported_once_an_execution_and_fails_nothing() {
    let world = World::new(4);
    let env = world.env("web");
    let waits = |foreign: u32| {
        body!(
            [env] | ctx | {
                for n in 0..foreign {
                    // A task of the process tells it: no durable call of the body is pending meanwhile.
                    let (sender, receiver) = oneshot::channel();
                    let timer = env.clone();
                    drop(env.tasks().spawn("teller", async move {
                        timer.sleep(secs(5)).await;
                        sender.send(n).expect("the body waits");
                    }));
                    receiver.await?;
                    ctx.step("between", || async { Ok(()) }).await?;
                }
                ctx.step("slow", || async {
                    env.sleep(secs(5)).await;
                    Ok(())
                })
                .await?;
                ctx.sleep(secs(5)).await?;
                ctx.run(call::<()>("child")).await
            }
        )
    };
    let child = body!([] | ctx | { ctx.sleep(secs(5)).await });
    let builder = world.builder("web").function("never", waits(0)).function("thrice", waits(3));
    let engine = world.launch(builder.function("child", child));
    let report = "no durable call";
    let run = |name: &str, id: &str| {
        logged(|| {
            let handle = world.run(engine.start(call::<()>(name)).id(id)).expect("start");
            world.run(handle.result()).expect("result");
        })
        .1
    };
    let lines = run("never", "a");
    assert_eq!(count(&lines, Level::WARN, report), 0, "{lines:?}");
    for id in ["b", "c"] {
        let lines = run("thrice", id);
        assert_eq!(count(&lines, Level::WARN, report), 1, "{lines:?}");
        assert_eq!(count(&lines, Level::WARN, &format!("workflow={id} ")), 1, "{lines:?}");
        assert_eq!(world.status(id), Status::Success);
    }
}

#[test]
fn branches_and_results_of_workflows_that_were_there_before_are_no_foreign_waits() {
    let world = World::new(14);
    let env = world.env("web");
    let branches = body!(
        [env] | ctx | {
            let quick = ctx.spawn(|ctx| async move { ctx.step("quick", || async { Ok(1) }).await });
            let slow = ctx.spawn(|ctx| {
                let env = env.clone();
                async move {
                    ctx.step("slow", || async {
                        env.sleep(secs(5)).await;
                        Ok(2)
                    })
                    .await
                }
            });
            Ok(quick.await? + slow.await?)
        }
    );
    let child = body!([] | ctx | { ctx.step("value", || async { Ok(3) }).await });
    let before = body!([] | ctx | { ctx.start(call::<u32>("child")).id("before").await?.result().await });
    let builder = world.builder("web").function("branches", branches).function("child", child);
    let engine = world.launch(builder.function("awaits", before));
    let (results, lines) = logged(|| {
        ["child", "branches", "awaits"].map(|name| {
            let id = if name == "child" { "before" } else { name };
            let handle = world.run(engine.start(call::<u32>(name)).id(id)).expect("start");
            world.run(handle.result()).expect("result")
        })
    });
    assert_eq!(results, [3, 3, 3]);
    assert_eq!(count(&lines, Level::WARN, "no durable call"), 0, "{lines:?}");
}

#[test]
fn an_attempt_has_a_number_and_a_key_that_is_its_steps_alone() {
    let world = World::new(5);
    let log = Log::default();
    let build = |process: &str| {
        let work = body!(
            [log] | ctx | {
                for _ in 0..2 {
                    let step = ctx.step("step", |attempt: Attempt| {
                        let (log, ctx) = (log.clone(), ctx.clone());
                        async move {
                            log.note(format!("{} {}", attempt.number, attempt.key));
                            for name in ["one", "two"] {
                                let inner = ctx.step(name, |inner: Attempt| {
                                    let log = log.clone();
                                    async move {
                                        log.note(format!("{name} {} {}", inner.number, inner.key));
                                        if inner.number == 1 { Err(Error::new("again")) } else { Ok(()) }
                                    }
                                });
                                inner.retries(1).await?;
                            }
                            if attempt.number == 1 { Err(Error::new("again")) } else { Ok(()) }
                        }
                    });
                    step.retries(1).await?;
                }
                Ok(())
            }
        );
        world.builder(process).function("work", work)
    };
    let engine = world.launch(build("web"));
    let handle = world.run(engine.start(call::<()>("work")).id("w")).expect("start");
    world.run(handle.result()).expect("result");
    let attempt = |step: u32, number: u32| {
        let key = format!("w-{step}");
        let mut lines = vec![format!("{number} {key}")];
        lines.extend([1, 2].map(|inner| format!("one {inner} {key}.0")));
        lines.extend([1, 2].map(|inner| format!("two {inner} {key}.1")));
        lines
    };
    assert_eq!(log.all(), [attempt(0, 1), attempt(0, 2), attempt(1, 1), attempt(1, 2)].concat());
}

#[test]
fn the_workflow_is_known_in_its_body_in_its_steps_and_in_its_branches() {
    let world = World::new(6);
    let work = body!(
        [] | ctx | {
            let in_step = ctx.step("id", || async { Ok(ctx.workflow_id().to_string()) }).await?;
            let in_branch = ctx.spawn(|ctx| async move { Ok(ctx.workflow_id().to_string()) }).await?;
            Ok([ctx.workflow_id().to_string(), ctx.workflow_name().to_owned(), in_step, in_branch])
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<[String; 4]>("work")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), ["w", "work", "w", "w"]);
}

#[test]
fn a_running_step_does_not_make_the_body_look_nested_nor_does_an_ended_one_the_others() {
    let world = World::new(7);
    let env = world.env("web");
    let work = body!(
        [env] | ctx | {
            let slow = ctx.step("slow", || async {
                env.sleep(secs(10)).await;
                // The step beside it has ended long ago, and this is still inside.
                ctx.step("inside", || async { Ok(1_u32) }).await
            });
            let quick = ctx.step("quick", || async {
                env.sleep(secs(1)).await;
                Ok(1_u32)
            });
            let body = async {
                env.sleep(secs(2)).await;
                ctx.step("of the body", || async { Ok(1_u32) }).await
            };
            let ((slow, quick), body) = join(join(slow.into_future(), quick.into_future()), body).await;
            Ok(slow? + quick? + body?)
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<u32>("work")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 3);
    assert_eq!(world.step_names("w"), ["slow", "quick", "of the body"]);
}

#[test]
fn a_context_is_for_its_own_execution_and_branch() {
    let world = World::new(8);
    let lent: Arc<Mutex<Option<Ctx>>> = Arc::default();
    let lends = body!(
        [lent] | ctx | {
            *lent.lock().expect("lock") = Some(ctx.clone());
            ctx.sleep(secs(60)).await
        }
    );
    let borrows = body!(
        [lent] | ctx | {
            let other = lent.lock().expect("lock").clone().expect("a context");
            let foreign = other.step("foreign", || async { Ok(()) }).await.expect_err("of another workflow");
            assert!(foreign.message().contains("workflow lends") && foreign.message().contains("workflow borrows"));
            let parent = ctx.clone();
            let branch = ctx.spawn(|_| async move {
                let error = parent.step("parents", || async { Ok(()) }).await.expect_err("of another branch");
                Ok(error.kind() == ErrorKind::Refused && error.message().contains("ctx.spawn"))
            });
            assert!(branch.await?);
            Ok(foreign.kind() == ErrorKind::Refused)
        }
    );
    let engine = world.launch(world.builder("web").function("lends", lends).function("borrows", borrows));
    world.run(engine.start(call::<()>("lends")).id("lends")).expect("start");
    world.pass(secs(1));
    let handle = world.run(engine.start(call::<bool>("borrows")).id("borrows")).expect("start");
    assert!(world.run(handle.result()).expect("result"));
    assert_eq!((world.steps("borrows").len(), world.step_names("lends").len()), (0, 1));
}

#[test]
fn a_deadline_is_the_same_after_steps_and_in_branches() {
    let world = World::new(9);
    let work = body!(
        [] | ctx | {
            ctx.start(call::<()>("child")).id("before").await?;
            ctx.step("step", || async { Ok(()) }).await?;
            ctx.sleep(secs(5)).await?;
            ctx.start(call::<()>("child")).id("after").await?;
            ctx.spawn(|ctx| async move { ctx.start(call::<()>("child")).id("branch").await.map(drop) }).await
        }
    );
    let child = body!([] | _ctx | { Ok(()) });
    let engine = world.launch(world.builder("web").function("work", work).function("child", child));
    let handle = world.run(engine.start(call::<()>("work")).id("w").timeout(secs(600))).expect("start");
    world.run(handle.result()).expect("result");
    let deadline = world.row("w").deadline;
    assert!(deadline.is_some());
    for child in ["before", "after", "branch"] {
        assert_eq!(world.row(child).deadline, deadline, "{child}");
    }
}

/// Runs a body that has the engine itself at hand, and gives the kinds and texts of the errors that it met.
fn refusals(world: &World) -> Vec<(String, String)> {
    let lent: Arc<Mutex<Option<Engine>>> = Arc::default();
    let work = body!(
        [lent] | ctx | {
            let engine = lent.lock().expect("lock").clone().expect("an engine");
            let mut refused = Vec::new();
            for in_step in [false, true] {
                let tries = || async {
                    let errors = [
                        engine.start(call::<()>("work")).await.expect_err("a start"),
                        engine.shutdown(secs(1)).await.expect_err("a shutdown"),
                        engine.resume("w").await.expect_err("a resume"),
                    ];
                    Ok::<_, Error>(errors.map(|error| (error.name().to_owned(), error.to_string())))
                };
                refused.extend(if in_step { ctx.step("in a step", tries).await? } else { tries().await? });
            }
            Ok(refused)
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    *lent.lock().expect("lock") = Some(engine.clone());
    let handle = world.run(engine.start(call("work")).id("w")).expect("start");
    let refused = world.run(handle.result());
    lent.lock().expect("lock").take();
    refused.expect("result")
}

#[test]
fn the_engine_itself_is_refused_in_a_body_and_the_start_names_ctx_start() {
    let world = World::new(10);
    let refused = refusals(&world);
    assert!(refused.len() == 6 && refused.iter().all(|(name, _)| name == "Refused"), "{refused:?}");
    for texts in refused.chunks(3) {
        assert!(texts[0].1.contains("ctx.start") && texts[0].1.contains("workflow w"), "{texts:?}");
        assert!(texts[1].1.contains("engine.shutdown was called in the body of workflow w"), "{texts:?}");
        assert!(texts[2].1.contains("engine.resume was called in the body of workflow w"), "{texts:?}");
    }
    assert_eq!(world.memory.rows().len(), 1);
}
