//! Sleeps and branches of a body.

use std::time::Duration;

use mainstay_runtime::{ErrorKind, Status};

use crate::support::{Log, World};
use crate::tools::{Gone, body, call, secs};

#[test]
fn a_sleep_does_not_begin_again_after_a_crash() {
    let world = World::new(1);
    let wait = || {
        body!(
            [] | ctx | {
                ctx.sleep(secs(100)).await?;
                Ok(())
            }
        )
    };
    let first = world.launch(world.builder("first").function("wait", wait()));
    world.run(first.start(call::<()>("wait")).id("w")).expect("start");
    world.pass(secs(50));
    world.sim.kill("first");
    let second = world.launch(world.builder("second").function("wait", wait()));
    world.run(second.handle_by_id::<()>("w").result()).expect("it wakes");
    assert_eq!(world.seconds(), 100);
    assert_eq!(world.step_names("w"), ["DBOS.sleep"]);
}

#[test]
fn a_moment_of_waking_that_passed_while_nobody_lived_is_over_at_once() {
    let world = World::new(2);
    let wait = || {
        body!(
            [] | ctx | {
                ctx.sleep(secs(30)).await?;
                ctx.sleep(Duration::ZERO).await?;
                Ok(())
            }
        )
    };
    let first = world.launch(world.builder("first").function("wait", wait()));
    world.run(first.start(call::<()>("wait")).id("w")).expect("start");
    world.pass(secs(5));
    world.run(first.shutdown(secs(0))).expect("shutdown");
    world.pass(secs(1_000));
    let before = world.elapsed();
    let second = world.launch(world.builder("second").function("wait", wait()));
    world.run(second.handle_by_id::<()>("w").result()).expect("it wakes");
    assert!(world.elapsed() - before < secs(2), "{:?}", world.elapsed() - before);
}

#[test]
fn a_sleep_goes_by_the_clock_of_the_store_and_not_by_the_wall() {
    let world = World::new(3);
    let wait = body!(
        [] | ctx | {
            ctx.sleep(secs(60)).await?;
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("wait", wait));
    let handle = world.run(engine.start(call::<()>("wait")).id("w")).expect("start");
    world.pass(secs(10));
    world.sim.clock().skew_wall(3_600_000);
    world.run(handle.result()).expect("it wakes");
    assert_eq!(world.seconds(), 60);
}

#[test]
fn branches_take_blocks_of_positions_and_nest() {
    let world = World::new(4);
    let nested = body!(
        [] | ctx | {
            let outer = ctx.spawn(|ctx| async move {
                ctx.step("outer", || async { Ok(()) }).await?;
                let inner = ctx.spawn(|ctx| async move { ctx.step("inner", || async { Ok(1) }).await }).positions(8);
                ctx.step("outer again", || async { Ok(()) }).await?;
                inner.await
            });
            ctx.step("body", || async { Ok(()) }).await?;
            let wide = ctx.spawn(|ctx| async move {
                let inner = ctx.spawn(|ctx| async move { ctx.step("in the wide", || async { Ok(2) }).await });
                ctx.step("wide", || async { Ok(()) }).await?;
                inner.await
            });
            let wide = wide.positions(5_000);
            ctx.step("last", || async { Ok(()) }).await?;
            Ok(outer.await? + wide.await?)
        }
    );
    let engine = world.launch(world.builder("web").function("nested", nested));
    let handle = world.run(engine.start(call::<u32>("nested")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 3);
    let rows: Vec<_> = world.steps("w").iter().map(|step| (step.position.0, step.name.to_string())).collect();
    let expected = [
        (0, "outer"),
        (1, "inner"),
        (9, "outer again"),
        (1024, "body"),
        (1025, "in the wide"),
        (1025 + 1024, "wide"),
        (1025 + 5_000, "last"),
    ];
    assert_eq!(rows, expected.map(|(position, name)| (position, name.to_owned())));
}

#[test]
fn a_branch_without_positions_left_is_told_how_to_get_more() {
    let world = World::new(5);
    let full = body!(
        [] | ctx | {
            let branch = ctx.spawn(|ctx| async move {
                ctx.step("one", || async { Ok(()) }).await?;
                ctx.step("two", || async { Ok(()) }).await?;
                ctx.step("three", || async { Ok(()) }).await
            });
            let error = branch.positions(2).await.expect_err("two are not enough");
            let late = ctx.spawn(|_| async move { Ok(()) });
            ctx.step("between", || async { Ok(()) }).await?;
            let late = late.positions(4_000).await.expect_err("said too late");
            Ok((error.message().to_owned(), format!("{:?} {:?}", error.kind(), late.kind())))
        }
    );
    let engine = world.launch(world.builder("web").function("full", full));
    let handle = world.run(engine.start(call::<(String, String)>("full")).id("w")).expect("start");
    let (message, kinds) = world.run(handle.result()).expect("result");
    assert!(message.contains(".positions("), "{message}");
    assert_eq!(kinds, "Refused Refused");
    assert_eq!(world.step_names("w"), ["one", "two", "between"]);
}

#[test]
fn branches_replay_whatever_the_order_in_which_they_are_polled() {
    for crash in [2_500, 4_500, 7_500, 11_000] {
        let world = World::new(crash);
        let log = Log::default();
        let build = |process: &str, turned: bool| {
            let env = world.env(process);
            let branches = body!(
                [log, env] | ctx | {
                    let mut branches = Vec::new();
                    for name in ["a", "b", "c"] {
                        let (log, env) = (log.clone(), env.clone());
                        branches.push(ctx.spawn(move |ctx| async move {
                            for turn in 0..4_u64 {
                                // What comes first differs between the processes.
                                let pause = if (name == "a") == turned { 1_000 } else { 2_000 };
                                let step = format!("{name}{turn}");
                                ctx.step(step.as_str(), || async {
                                    env.sleep(Duration::from_millis(pause)).await;
                                    Ok(log.note(step.as_str()))
                                })
                                .await?;
                            }
                            Ok(name.to_owned())
                        }));
                    }
                    let mut all = String::new();
                    while let Some(branch) = if turned { branches.pop() } else { Some(branches.remove(0)) } {
                        all = if turned { branch.await? + &all } else { all + &branch.await? };
                        if branches.is_empty() {
                            break;
                        }
                    }
                    Ok(all)
                }
            );
            world.builder(process).function("branches", branches)
        };
        let first = world.launch(build("first", false));
        world.run(first.start(call::<String>("branches")).id("w")).expect("start");
        world.pass(Duration::from_millis(crash));
        world.sim.kill("first");
        let recorded = world.step_names("w");
        let second = world.launch(build("second", true));
        assert_eq!(world.run(second.handle_by_id::<String>("w").result()).expect("result"), "abc");
        assert_eq!(world.steps("w").len(), 12);
        assert!(recorded.iter().all(|name| log.count(name) == 1), "{recorded:?} {:?}", log.all());
        for (block, name) in ["a", "b", "c"].into_iter().enumerate() {
            let rows: Vec<_> =
                world.steps("w").into_iter().filter(|step| step.name.as_str().starts_with(name)).collect();
            let positions: Vec<_> = rows.iter().map(|row| row.position.0).collect();
            let from = 1024 * i32::try_from(block).expect("a few");
            assert_eq!(positions, (from..from + 4).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_panic_in_a_branch_is_the_panic_of_its_workflow() {
    let world = World::new(6);
    let log = Log::default();
    let panics = body!(
        [log] | ctx | {
            let _gone = Gone(log.clone(), "body dropped");
            let branch = ctx.spawn(|ctx| async move {
                ctx.sleep(secs(1)).await?;
                assert!(ctx.attempt() == 0, "the branch gives way");
                Ok(())
            });
            branch.await?;
            Ok(log.note("went on"))
        }
    );
    let engine = world.launch(world.builder("web").function("panics", panics));
    let handle = world.run(engine.start(call::<()>("panics")).id("w")).expect("start");
    let error = world.run(handle.result()).expect_err("a panic");
    assert_eq!(error.kind(), ErrorKind::Panic);
    assert!(error.message().contains("the branch gives way"), "{error:?}");
    assert_eq!((world.status("w"), log.all()), (Status::Error, vec!["body dropped".to_owned()]));
}

#[test]
fn a_branch_ends_with_its_body() {
    let world = World::new(7);
    let (log, env) = (Log::default(), world.env("web"));
    let leaves = body!(
        [log, env] | ctx | {
            let (log, env) = (log.clone(), env.clone());
            let branch = ctx.spawn(move |ctx| async move {
                let _gone = Gone(log.clone(), "branch dropped");
                ctx.step("quick", || async { Ok(()) }).await?;
                ctx.step("long", || async {
                    env.sleep(secs(60)).await;
                    Ok(log.note("long"))
                })
                .await
            });
            drop(branch);
            ctx.sleep(secs(1)).await?;
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("leaves", leaves));
    let handle = world.run(engine.start(call::<()>("leaves")).id("w")).expect("start");
    world.run(handle.result()).expect("result");
    assert_eq!(world.seconds(), 1);
    world.pass(secs(100));
    assert_eq!(log.all(), ["branch dropped"]);
    assert_eq!(world.step_names("w"), ["quick", "DBOS.sleep"]);
}

#[test]
fn an_error_of_a_branch_is_what_awaiting_it_gives() {
    let world = World::new(8);
    let fails = body!(
        [] | ctx | {
            let awaited = ctx.spawn(|_| async move { Err::<(), _>(mainstay_runtime::Error::new("awaited")) });
            let dropped = ctx.spawn(|_| async move { Err::<(), _>(mainstay_runtime::Error::new("dropped")) });
            drop(dropped);
            ctx.sleep(secs(1)).await?;
            Ok(awaited.await.expect_err("an error").message().to_owned())
        }
    );
    let engine = world.launch(world.builder("web").function("fails", fails));
    let handle = world.run(engine.start(call::<String>("fails"))).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), "awaited");
}

#[test]
fn a_cancelled_workflow_takes_its_branches_along() {
    let world = World::new(9);
    let log = Log::default();
    let both = body!(
        [log] | ctx | {
            let log_of_branch = log.clone();
            let branch = ctx.spawn(move |ctx| async move {
                let _gone = Gone(log_of_branch.clone(), "branch dropped");
                ctx.sleep(secs(50)).await?;
                Ok(log_of_branch.note("woke"))
            });
            ctx.sleep(secs(50)).await?;
            branch.await
        }
    );
    let engine = world.launch(world.builder("web").function("both", both));
    let handle = world.run(engine.start(call::<()>("both")).id("w")).expect("start");
    world.pass(secs(1));
    world.run(handle.cancel()).expect("cancel");
    assert_eq!(world.run(handle.result()).expect_err("cancelled").kind(), ErrorKind::Cancelled);
    world.pass(secs(100));
    assert_eq!(log.all(), ["branch dropped"]);
}
