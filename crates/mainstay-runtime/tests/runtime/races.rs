//! Races: the winner and that it won are one unit, a loser leaves nothing, and a replay runs the winner alone.

use std::time::Duration;

use mainstay_runtime::{Call, ErrorKind, Status};

use crate::support::{Log, World};
use crate::tools::{Gone, body, call, secs};

/// Three steps that take so many seconds each, raced; then a sleep.
fn raced(world: &World, log: &Log, process: &str, takes: [u64; 3]) -> mainstay_runtime::Builder {
    let env = world.env(process);
    let race = body!(
        [log, env] | ctx | {
            let step = |name: &'static str, seconds: u64| {
                let (log, env) = (log.clone(), env.clone());
                ctx.step(name, move || {
                    let (log, env) = (log.clone(), env.clone());
                    async move {
                        log.note(format!("{name} begun"));
                        env.sleep(secs(seconds)).await;
                        Ok(log.note(format!("{name} done")))
                    }
                })
            };
            let (index, ()) = ctx.race([step("a", takes[0]), step("b", takes[1]), step("c", takes[2])]).await?;
            ctx.sleep(secs(30)).await?;
            Ok(index)
        }
    );
    world.builder(process).function("race", race)
}

#[test]
fn a_winner_is_recorded_and_the_losers_leave_nothing() {
    let world = World::new(1);
    let log = Log::default();
    let engine = world.launch(raced(&world, &log, "web", [20, 5, 10]));
    let handle = world.run(engine.start(call::<usize>("race")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 1);
    let rows: Vec<_> = world.steps("w").iter().map(|step| (step.position.0, step.name.to_string())).collect();
    let expected = [(1, "b"), (3, "DBOS.selectStep"), (4, "DBOS.sleep")];
    assert_eq!(rows, expected.map(|(position, name)| (position, name.to_owned())));
    assert_eq!(log.all(), ["a begun", "b begun", "c begun", "b done"]);
}

#[test]
fn a_crash_at_any_poll_finds_a_winner_and_its_race_or_neither() {
    let mut met = [0, 0];
    for polls in 0..120 {
        let world = World::new(2);
        let log = Log::default();
        let first = world.launch(raced(&world, &log, "first", [20, 5, 10]));
        world.run(first.start(call::<usize>("race")).id("w")).expect("start");
        world.pass(Duration::from_millis(4_990));
        for _ in 0..polls {
            if !world.sim.step() {
                world.sim.clock().advance_to_next();
            }
        }
        world.sim.kill("first");
        let names = world.step_names("w");
        let (won, raced) = (names.contains(&"b".to_owned()), names.contains(&"DBOS.selectStep".to_owned()));
        assert_eq!(won, raced, "after {polls} polls: {names:?}");
        met[usize::from(won)] += 1;
    }
    assert!(met[0] > 0 && met[1] > 0, "crashes before and after the commit: {met:?}");
}

#[test]
fn a_replay_runs_the_recorded_winner_alone() {
    let world = World::new(3);
    let log = Log::default();
    let first = world.launch(raced(&world, &log, "first", [20, 5, 10]));
    world.run(first.start(call::<usize>("race")).id("w")).expect("start");
    world.pass(secs(10));
    world.sim.kill("first");
    // Here another one would win.
    let second = world.launch(raced(&world, &log, "second", [1, 5, 10]));
    assert_eq!(world.run(second.handle_by_id::<usize>("w").result()).expect("result"), 1);
    assert_eq!(log.all(), ["a begun", "b begun", "c begun", "b done"]);
}

#[test]
fn a_race_that_was_not_recorded_is_run_again() {
    let world = World::new(4);
    let log = Log::default();
    let first = world.launch(raced(&world, &log, "first", [20, 15, 18]));
    world.run(first.start(call::<usize>("race")).id("w")).expect("start");
    world.pass(secs(10));
    world.sim.kill("first");
    let second = world.launch(raced(&world, &log, "second", [1, 5, 10]));
    assert_eq!(world.run(second.handle_by_id::<usize>("w").result()).expect("result"), 0);
    assert_eq!(world.step_names("w"), ["a", "DBOS.selectStep", "DBOS.sleep"]);
}

#[test]
fn a_sleep_in_a_race_is_a_limit_that_holds_through_restarts() {
    let world = World::new(5);
    let log = Log::default();
    let build = |process: &str| {
        let env = world.env(process);
        let limited = body!(
            [log, env] | ctx | {
                let work = ctx.step("work", || async {
                    let _gone = Gone(log.clone(), "dropped");
                    env.sleep(secs(500)).await;
                    Ok(())
                });
                let (index, ()) = ctx.race([Call::from(work), ctx.sleep(secs(60)).into()]).await?;
                ctx.sleep(secs(20)).await?;
                Ok(index)
            }
        );
        world.builder(process).function("limited", limited)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<usize>("limited")).id("w")).expect("start");
    world.pass(secs(30));
    world.sim.kill("first");
    let second = world.launch(build("second"));
    world.pass(secs(32));
    assert_eq!(world.step_names("w"), ["DBOS.sleep", "DBOS.selectStep", "DBOS.sleep"]);
    world.sim.kill("second");
    let third = world.launch(build("third"));
    assert_eq!(world.run(third.handle_by_id::<usize>("w").result()).expect("result"), 1);
    assert_eq!((world.seconds(), log.count("dropped")), (80, 2));
    drop(second);
}

#[test]
fn an_error_can_win_and_is_replayed() {
    let world = World::new(6);
    let build = |process: &str| {
        let wait = body!(
            [] | ctx | {
                ctx.sleep(secs(500)).await?;
                Ok(())
            }
        );
        let parent = body!(
            [] | ctx | {
                let short = ctx.start(call::<()>("wait")).timeout(secs(5)).await?;
                let long = ctx.start(call::<()>("wait")).await?;
                let error = ctx.race([long.result(), short.result()]).await.expect_err("the short one is cancelled");
                ctx.sleep(secs(60)).await?;
                Ok(format!("{:?} {}", error.kind(), long.status().await?))
            }
        );
        world.builder(process).function("wait", wait).function("parent", parent)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<String>("parent")).id("p")).expect("start");
    world.pass(secs(20));
    let names = world.step_names("p");
    assert_eq!(names, ["wait", "wait", "DBOS.getResult", "DBOS.selectStep", "DBOS.sleep"]);
    world.sim.kill("first");
    let second = world.launch(build("second"));
    assert_eq!(world.run(second.handle_by_id::<String>("p").result()).expect("result"), "Cancelled PENDING");
}

#[test]
fn a_body_that_is_cancelled_in_a_race_records_no_winner() {
    let world = World::new(7);
    let log = Log::default();
    let engine = world.launch(raced(&world, &log, "web", [20, 15, 10]));
    let handle = world.run(engine.start(call::<usize>("race")).id("w")).expect("start");
    world.pass(secs(5));
    world.run(handle.cancel()).expect("cancel");
    world.pass(secs(100));
    assert_eq!((world.status("w"), world.steps("w").len()), (Status::Cancelled, 0));
    assert_eq!(log.all(), ["a begun", "b begun", "c begun"]);
}

#[test]
fn calls_that_are_ready_at_once_win_in_their_order_and_forty_may_run() {
    let world = World::new(8);
    let many = body!(
        [] | ctx | {
            let steps = (0..40_usize).map(|n| ctx.step(format!("s{n}"), move || async move { Ok(n) }));
            ctx.race(steps.collect::<Vec<_>>()).await
        }
    );
    let engine = world.launch(world.builder("web").function("many", many));
    let handle = world.run(engine.start(call::<(usize, usize)>("many")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), (0, 0));
    let rows: Vec<_> = world.steps("w").iter().map(|step| step.position.0).collect();
    assert_eq!(rows, [0, 40]);
}

#[test]
fn a_race_in_a_step_is_a_part_of_the_step_and_one_of_nothing_is_refused() {
    let world = World::new(9);
    let inside = body!(
        [] | ctx | {
            ctx.step("outer", || async {
                let race = ctx.race([ctx.step("x", || async { Ok(1) }), ctx.step("y", || async { Ok(2) })]);
                let won = race.await?;
                let error = ctx.race(Vec::<Call<'_, ()>>::new()).await.expect_err("of nothing");
                assert_eq!(error.kind(), ErrorKind::Refused);
                Ok(won)
            })
            .await
        }
    );
    let engine = world.launch(world.builder("web").function("inside", inside));
    let handle = world.run(engine.start(call::<(usize, u32)>("inside")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), (0, 1));
    assert_eq!(world.step_names("w"), ["outer"]);
}

#[test]
fn a_race_whose_recorded_winner_is_gone_is_set_aside_with_the_reason() {
    let world = World::new(10);
    let build = |process: &str, calls: usize| {
        let env = world.env(process);
        let race = body!(
            [env] | ctx | {
                let mut steps = Vec::new();
                for n in 0..calls {
                    let env = env.clone();
                    steps.push(ctx.step(format!("s{n}"), move || {
                        let env = env.clone();
                        async move {
                            env.sleep(secs(9 - n as u64)).await;
                            Ok(())
                        }
                    }));
                }
                // The race keeps its position.
                for _ in calls..3 {
                    drop(ctx.step("spent", || async { Ok(()) }));
                }
                let won = ctx.race(steps).await?;
                ctx.sleep(secs(60)).await?;
                Ok(won.0)
            }
        );
        world.builder(process).function("race", race)
    };
    let first = world.launch(build("first", 3));
    world.run(first.start(call::<usize>("race")).id("w")).expect("start");
    world.pass(secs(20));
    world.sim.kill("first");
    let second = world.launch(build("second", 2));
    let error = world.run(second.handle_by_id::<usize>("w").result()).expect_err("set aside");
    assert_eq!(error.kind(), ErrorKind::Parked);
    let failure = world.failure("w");
    assert_eq!(failure["name"], "Mismatch");
    assert!(failure["message"].as_str().expect("text").contains("won by a call"), "{failure}");
}
