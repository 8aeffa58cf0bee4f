//! The shortest ways through: a start, steps, a queue, a sleep, a child, a crash.

use std::time::Duration;

use mainstay_runtime::{Ctx, Invocation, Queue, Result, Status};

use crate::support::{Log, World};

#[test]
fn a_started_workflow_runs_its_steps_and_gives_its_result() {
    let world = World::new(1);
    let log = Log::default();
    let engine = world.launch(world.builder("web").function("greet", {
        let log = log.clone();
        move |ctx: Ctx, name: String| {
            let log = log.clone();
            async move {
                let text = ctx
                    .step("greeting", || async {
                        log.note("greeting");
                        Ok(format!("hello, {name}"))
                    })
                    .await?;
                ctx.sleep(Duration::from_secs(60)).await?;
                Ok(text)
            }
        }
    }));
    let result: Result<String> = world.run(async {
        let start = engine.start(Invocation::named("greet").arg("ada").returning::<String>()).id("w");
        let handle = start.await?;
        assert_eq!(handle.status().await?, Status::Pending);
        handle.result().await
    });
    assert_eq!(result.expect("result"), "hello, ada");
    assert_eq!(log.all(), ["greeting"]);
    assert_eq!(world.step_names("w"), ["greeting", "DBOS.sleep"]);
}

#[test]
fn a_killed_process_is_continued_by_another_from_the_last_finished_step() {
    let world = World::new(2);
    let log = Log::default();
    let build = |process: &str| {
        let log = log.clone();
        world.builder(process).queue(Queue::new("jobs")).function("job", move |ctx: Ctx| {
            let log = log.clone();
            async move {
                ctx.step("one", || async { Ok(log.note("one")) }).await?;
                ctx.sleep(Duration::from_secs(5)).await?;
                ctx.step("two", || async { Ok(log.note("two")) }).await?;
                Ok(7_u32)
            }
        })
    };
    let first = world.launch(build("first"));
    world.run(async { first.start(Invocation::named("job")).id("w").queue("jobs").await }).expect("start");
    world.pass(Duration::from_secs(2));
    assert_eq!(log.all(), ["one"]);
    world.sim.kill("first");
    let second = world.launch(build("second"));
    let result = world.run(second.handle_by_id::<u32>("w").result());
    assert_eq!(result.expect("result"), 7);
    assert_eq!(log.all(), ["one", "two"]);
}

#[test]
fn a_parent_awaits_children_that_derive_their_ids() {
    let world = World::new(3);
    let engine =
        world.launch(world.builder("web").function("double", |_: Ctx, n: u64| async move { Ok(2 * n) }).function(
            "sum",
            |ctx: Ctx, n: u64| async move {
                let mut children = Vec::new();
                for i in 0..n {
                    children.push(ctx.start(Invocation::named("double").arg(i).returning::<u64>()).await?);
                }
                let mut sum = 0;
                for child in &children {
                    sum += child.result().await?;
                }
                Ok((sum, children[0].id().to_string()))
            },
        ));
    let call = Invocation::named("sum").arg(4_u64).returning::<(u64, String)>();
    let result = world.run(async { engine.start(call).id("p").await?.result().await });
    assert_eq!(result.expect("result"), (12, "p-0".to_owned()));
}
