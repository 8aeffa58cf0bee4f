//! What watches over workflows: waits for their ends, and looks at what runs here for rows that have left it.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mainstay_env::{Env, block_on};
use mainstay_memory::Memory;
use mainstay_runtime::{Attempt, Builder, Call, Engine, Error, ErrorKind, Handle, Queue, Status};
use mainstay_store::wrap::{Fault, FaultPlan, Method, Rates, WithFaults};
use mainstay_store::{Store, StoreClock, Wakeup};
use tracing::Level;

use crate::logs::{count, logged};
use crate::support::{Log, World};
use crate::tools::{body, call, poll_once, secs};

#[test]
fn a_row_that_cannot_be_read_holds_up_no_other_wait() {
    let world = World::silent(1);
    let nap = body!(
        [] | ctx | {
            ctx.sleep(secs(5)).await?;
            Ok(7_u32)
        }
    );
    let runner = world.launch(world.builder("runner").function("nap", nap));
    let watcher = world.launch(world.builder("watcher"));
    for id in ["a", "bad", "z"] {
        world.run(runner.start(call::<u32>("nap")).id(id)).expect("start");
    }
    let mended = world.memory.damage_standing("bad");
    let ((), lines) = logged(|| {
        let handles = ["a", "z"].map(|id| watcher.handle_by_id::<u32>(id));
        let bad = watcher.handle_by_id::<u32>("bad");
        let waits = async {
            let all = futures_util::future::join(handles[0].result().into_future(), handles[1].result().into_future());
            let bad = bad.result().timeout(secs(300));
            futures_util::future::join(all, bad.into_future()).await
        };
        let ((a, z), bad) = world.run(waits);
        assert_eq!((a.expect("a"), z.expect("z")), (7, 7));
        assert_eq!(bad.expect_err("it cannot be read").kind(), ErrorKind::Timeout);
    });
    assert_eq!(count(&lines, Level::WARN, "cannot be read"), 1, "{lines:?}");
    drop(mended);
    assert_eq!(world.run(watcher.handle_by_id::<u32>("bad").result()).expect("mended"), 7);
}

#[test]
fn a_row_that_cannot_be_read_hides_no_cancellation_of_another() {
    let world = World::silent(2);
    let log = Log::default();
    let nap = body!(
        [log] | ctx | {
            let _gone = crate::tools::Gone(log.clone(), "dropped");
            ctx.sleep(secs(500)).await?;
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("nap", nap));
    for id in ["a", "bad", "z"] {
        world.run(engine.start(call::<()>("nap")).id(id)).expect("start");
    }
    world.pass(secs(1));
    let _damaged = world.memory.damage_standing("bad");
    for id in ["a", "z"] {
        world.run(engine.handle_by_id::<()>(id).cancel()).expect("cancel");
    }
    world.pass(secs(10));
    assert_eq!(log.count("dropped"), 2);
}

/// An engine whose bodies run on a thread of their own, until `work` is through with it.
fn beside<R>(env: &Env, builder: Builder, work: impl FnOnce(Engine) -> R) -> R {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (send, launched) = std::sync::mpsc::channel();
    let (done, over) = tokio::sync::oneshot::channel::<()>();
    let bodies = env.tasks().thread("bodies", move || {
        runtime().block_on(async move {
            send.send(builder.launch().await.expect("launch")).expect("the test waits");
            // Ended by dropping the sender.
            let _ = over.await;
        });
    });
    let bodies = bodies.expect("a thread");
    let engine = launched.recv().expect("an engine");
    let result = work(engine.clone());
    block_on(engine.shutdown(secs(5))).expect("shutdown");
    drop((done, bodies));
    result
}

#[test]
fn a_waiter_hears_of_a_cancellation_while_the_body_blocks_its_thread() {
    let env = Env::system("watching").expect("a system");
    let store: Arc<dyn Store> = Arc::new(Memory::open(env.clone(), StoreClock::Server));
    let (entered, began) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let block = body!(
        [entered, released] | _ctx | {
            entered.send(()).expect("the test waits");
            // Ended by dropping the sender.
            let _ = released.lock().expect("no panic").recv();
            Ok(7_u32)
        }
    );
    let result = beside(&env, Engine::builder(store).app("shop").function("block", block), |engine| {
        let handle = block_on(engine.start(call::<u32>("block")).id("w").into_future()).expect("start");
        began.recv().expect("it blocks");
        let wait = handle.result().timeout(secs(20));
        let cancelled = async { handle.cancel().await.expect("cancel") };
        let (result, ()) = block_on(futures_util::future::join(wait.into_future(), cancelled));
        drop(release);
        result
    });
    assert_eq!(result.expect_err("cancelled").kind(), ErrorKind::Cancelled);
}

#[test]
fn a_body_whose_row_was_taken_up_by_another_process_is_stopped_without_a_hint() {
    for seed in 0..4 {
        let world = World::silent(seed);
        let build = |process: &str| {
            let nap = body!(
                [] | ctx | {
                    ctx.sleep(secs(3_600)).await?;
                    Ok(7_u32)
                }
            );
            world.builder(process).queue(Queue::new("q").worker_concurrency(1)).function("nap", nap)
        };
        let first = world.launch(build("first"));
        world.run(first.start(call::<u32>("nap")).id("w").queue("q")).expect("start");
        world.until("it runs", || first.stats().running == 1);
        // Only the second takes from the internal queue then.
        let second = world.launch(build("second"));
        let mut moved = false;
        for _ in 0..20 {
            world.run(second.handle_by_id::<u32>("w").cancel()).expect("cancel");
            world.run(second.resume("w")).expect("resume");
            world.until("it runs again", || world.status("w") == Status::Pending);
            let owner = world.row("w").executor.expect("an owner");
            if owner == second.executor_id() {
                moved = true;
                break;
            }
            world.pass(secs(6));
        }
        assert!(moved, "the second process never had the row");
        world.pass(secs(12));
        assert_eq!((first.stats().running, second.stats().running), (0, 1), "seed {seed}");
    }
}

#[test]
fn a_cancellation_that_loses_its_race_is_not_carried_out() {
    for cancel_first in [true, false] {
        let world = World::new(4);
        let nap = body!(
            [] | ctx | {
                ctx.sleep(secs(50)).await?;
                Ok(7_u32)
            }
        );
        let race = body!(
            [] | ctx | {
                let child = ctx.start(call::<u32>("nap")).id("child").await?;
                let (quick, cancel) = (Call::from(ctx.step("quick", || async { Ok(()) })), child.cancel());
                let calls = if cancel_first { [cancel, quick] } else { [quick, cancel] };
                Ok((ctx.race(calls).await?.0 == 0) == cancel_first)
            }
        );
        let engine = world.launch(world.builder("web").function("nap", nap).function("race", race));
        let handle = world.run(engine.start(call::<bool>("race")).id("p")).expect("start");
        let cancel_won = world.run(handle.result()).expect("result");
        world.pass(secs(60));
        let expected = if cancel_won { Status::Cancelled } else { Status::Success };
        assert_eq!(world.status("child"), expected, "cancel first: {cancel_first}, won: {cancel_won}");
        assert_eq!(world.step_names("p").contains(&"DBOS.cancelWorkflow".to_owned()), cancel_won);
    }
}

#[test]
fn a_cancellation_that_wins_its_race_commits_with_it() {
    let mut met = [0, 0];
    for polls in 0..60 {
        let world = World::new(5);
        let nap = body!(
            [] | ctx | {
                ctx.sleep(secs(50)).await?;
                Ok(7_u32)
            }
        );
        let race = body!(
            [] | ctx | {
                let child = ctx.start(call::<u32>("nap")).id("child").await?;
                ctx.sleep(secs(1)).await?;
                let slow = ctx.sleep(secs(9));
                Ok(ctx.race([child.cancel(), slow.into()]).await?.0)
            }
        );
        let engine = world.launch(world.builder("web").function("nap", nap).function("race", race));
        world.run(engine.start(call::<usize>("race")).id("p")).expect("start");
        world.pass(Duration::from_millis(990));
        for _ in 0..polls {
            if !world.sim.step() {
                world.sim.clock().advance_to_next();
            }
        }
        world.sim.kill("web");
        let names = world.step_names("p");
        let won = names.contains(&"DBOS.selectStep".to_owned());
        assert_eq!(won, names.contains(&"DBOS.cancelWorkflow".to_owned()), "after {polls} polls: {names:?}");
        assert_eq!(won, world.status("child") == Status::Cancelled, "after {polls} polls: {names:?}");
        met[usize::from(won)] += 1;
    }
    assert!(met[0] > 0 && met[1] > 0, "crashes before and after the commit: {met:?}");
}

#[test]
fn a_limit_that_passed_unwatched_does_not_hide_an_end_that_came_in_time() {
    let world = World::new(6);
    let nap = || {
        body!(
            [] | ctx | {
                ctx.sleep(secs(2)).await?;
                Ok(7_u32)
            }
        )
    };
    let build = |process: &str| {
        let parent = body!(
            [] | ctx | {
                let child = ctx.start(call::<u32>("nap")).await?;
                child.result().timeout(secs(60)).await
            }
        );
        world.builder(process).function("parent", parent).function("nap", nap())
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<u32>("parent")).id("p")).expect("start");
    world.pass(Duration::from_millis(500));
    world.sim.kill("first");
    let other = world.launch(world.builder("other").function("nap", nap()));
    world.pass(secs(100));
    assert_eq!(world.status("p-0"), Status::Success);
    let second = world.launch(build("second"));
    assert_eq!(world.run(second.handle_by_id::<u32>("p").result()).expect("it ended in time"), 7);
    let nothing = |id: &str| world.run(other.handle_by_id::<u32>(id).result().timeout(Duration::ZERO));
    assert_eq!(nothing("p-0").expect("it has ended"), 7);
    assert_eq!(nothing("unknown").expect_err("there is none").kind(), ErrorKind::NotFound);
}

#[test]
fn a_handle_of_another_engine_is_refused_in_a_body_and_used_in_a_step() {
    let world = World::new(7);
    let other = Memory::open(world.env("other store"), StoreClock::Manual(world.sim.clock().clone()));
    let theirs = Engine::builder(other.attach(world.env("theirs"))).app("shop").executor("theirs");
    let theirs = world.launch(theirs.function("kid", body!([] | _ctx | { Ok(42_u32) })));
    let foreign = world.run(theirs.start(call::<u32>("kid")).id("k")).expect("start");
    world.run(foreign.result()).expect("result");
    let asks = body!(
        [foreign] | ctx | {
            let mut kinds = Vec::new();
            kinds.push(foreign.result().await.map(|_| ()).expect_err("a result").kind());
            kinds.push(foreign.status().await.map(|_| ()).expect_err("a status").kind());
            kinds.push(foreign.cancel().await.expect_err("a cancel").kind());
            let result = ctx.step("inside", || async { foreign.result().await }).await?;
            Ok((kinds.iter().all(|kind| *kind == ErrorKind::Refused), result))
        }
    );
    let ours = world.builder("ours").function("asks", asks).function("kid", body!([] | _ctx | { Ok(1_u32) }));
    let ours = world.launch(ours);
    // Here too there is a workflow of that id.
    let same = world.run(ours.start(call::<u32>("kid")).id("k")).expect("start");
    assert_eq!(world.run(same.result()).expect("result"), 1);
    let handle = world.run(ours.start(call::<(bool, u32)>("asks"))).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), (true, 42));
    assert_eq!(other.rows().len(), 1);
}

#[test]
fn a_body_does_not_wait_for_its_own_end() {
    let world = World::new(9);
    let lent: Arc<OnceLock<Engine>> = Arc::default();
    let own = body!(
        [lent] | ctx | {
            let own: Handle<u32> = lent.get().expect("an engine").handle_by_id(ctx.workflow_id().clone());
            let in_body = own.result().await.expect_err("its own").kind();
            let in_step = ctx.step("inside", || async {
                own.result().await.map(|_| "a result".to_owned()).or_else(|error| Ok(format!("{:?}", error.kind())))
            });
            Ok((in_body == ErrorKind::Refused, in_step.await?))
        }
    );
    let engine = world.launch(world.builder("web").function("own", own));
    assert!(lent.set(engine.clone()).is_ok());
    world.run(engine.start(call::<(bool, String)>("own")).id("w")).expect("start");
    world.pass(secs(10));
    assert_eq!(world.status("w"), Status::Success, "it waits for itself");
    let handle = engine.handle_by_id::<(bool, String)>("w");
    assert_eq!(world.run(handle.result()).expect("result"), (true, "Refused".to_owned()));
}

#[test]
fn a_backoff_of_nothing_stays_nothing_however_many_attempts_fail() {
    let world = World::new(10);
    let stubborn = body!(
        [] | ctx | {
            let step = ctx.step("ask", |attempt: Attempt| async move {
                if attempt.number < 1_030 { Err(Error::new("line busy")) } else { Ok(attempt.number) }
            });
            step.retries(2_000).backoff(Duration::ZERO).await
        }
    );
    let engine = world.launch(world.builder("web").function("stubborn", stubborn));
    let handle = world.run(engine.start(call::<u32>("stubborn"))).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 1_030);
    assert!(world.elapsed() < secs(1), "{:?}", world.elapsed());
}

#[test]
fn a_step_that_waits_for_a_workflow_gives_its_place_to_it() {
    let world = World::new(11);
    let kid = body!([] | ctx | { ctx.step("kid", || async { Ok(7_u32) }).await });
    let parent = body!(
        [] | ctx | {
            ctx.step("waits", || async { ctx.start(call::<u32>("kid")).id("k").await?.result().await }).await
        }
    );
    let builder = world.builder("web").max_running(1).function("parent", parent).function("kid", kid);
    let engine = world.launch(builder);
    world.run(engine.start(call::<u32>("parent")).id("p")).expect("start");
    world.pass(secs(60));
    assert_eq!((world.status("k"), world.status("p")), (Status::Success, Status::Success));
}

#[test]
fn lost_hints_make_the_looks_at_what_runs_no_more_frequent_than_one_a_second() {
    let world = World::new(12);
    // A delay of every read counts them.
    let rates = Rates { delay: 1.0, ..Rates::default() };
    let plan = FaultPlan::new(1).on(Method::WorkflowStanding, rates);
    let plan = plan.delay(Duration::from_millis(1), Duration::from_millis(1));
    let store = world.memory.attach(world.env("web"));
    let hints = store.wakeups().clone();
    let (store, reads) = WithFaults::new(Arc::new(store), plan);
    let nap = body!(
        [] | ctx | {
            ctx.sleep(secs(500)).await?;
            Ok(())
        }
    );
    let engine = world.launch(Engine::builder(store).app("shop").executor("web").function("nap", nap));
    world.run(engine.start(call::<()>("nap"))).expect("start");
    world.pass(secs(20));
    let before = reads.count(Method::WorkflowStanding, Fault::Delay);
    for _ in 0..100 {
        hints.publish(Wakeup::All);
        world.pass(Duration::from_millis(50));
    }
    let looks = reads.count(Method::WorkflowStanding, Fault::Delay) - before;
    assert!((2..=6).contains(&looks), "{looks} reads in five seconds");
}

#[test]
fn a_waiter_is_let_go_when_nobody_is_left_to_tell_it() {
    let world = World::new(13);
    let nap = body!(
        [] | ctx | {
            ctx.sleep(secs(500)).await?;
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("nap", nap));
    let handle = world.run(engine.start(call::<()>("nap"))).expect("start");
    let mut wait = handle.result().into_future();
    assert!(world.run(poll_once(&mut wait)).is_none());
    world.sim.kill("web");
    assert_eq!(world.run(wait).expect_err("its process is gone").kind(), ErrorKind::Stopped);
}
