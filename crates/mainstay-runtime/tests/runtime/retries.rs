//! Attempts of a step: how often, after what wait, how long, and what each is told.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_runtime::{Attempt, Error, ErrorKind, StepCall};

use crate::support::{Log, World};
use crate::tools::{Gone, body, call, poll_once, secs};

/// Notes the virtual time since `from`, in milliseconds.
fn note_time(log: &Log, env: &mainstay_env::Env, from: Duration) {
    log.note((env.monotonic().0 - from).as_millis().to_string());
}

/// When the attempts of a step were made that always fails, in milliseconds from the first.
fn times_of_failures(seed: u64, set: fn(StepCall<'_, ()>) -> StepCall<'_, ()>) -> Vec<u64> {
    let world = World::new(seed);
    let (log, env) = (Log::default(), world.env("web"));
    let work = body!(
        [log, env] | ctx | {
            let from = env.monotonic().0;
            let step = ctx.step("fails", || {
                note_time(&log, &env, from);
                async { Err::<(), _>(Error::new("down")) }
            });
            set(step).await.expect_err("it always fails");
            Ok(())
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<()>("work"))).expect("start");
    world.run(handle.result()).expect("result");
    millis(&log)
}

fn millis(log: &Log) -> Vec<u64> {
    log.all().iter().map(|text| text.parse().expect("milliseconds")).collect()
}

#[test]
fn a_third_attempt_that_succeeds_leaves_one_checkpoint() {
    let world = World::new(1);
    let log = Log::default();
    let work = body!(
        [log] | ctx | {
            let step = ctx.step("flaky", |attempt: Attempt| {
                log.note(format!("{} of {}", attempt.number, attempt.most));
                async move { if attempt.number < 3 { Err(Error::new("not yet")) } else { Ok(attempt.number) } }
            });
            step.retries(5).await
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<u32>("work")).id("w")).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 3);
    assert_eq!(log.all(), ["1 of 6", "2 of 6", "3 of 6"]);
    let steps = world.steps("w");
    assert_eq!((steps.len(), steps[0].result.payload().map(|value| value.as_str())), (1, Some("3")));
}

#[test]
fn a_step_without_retries_runs_once_and_its_error_is_not_wrapped() {
    let world = World::new(2);
    let log = Log::default();
    let work = body!(
        [log] | ctx | {
            ctx.step("once", || async {
                log.note("run");
                Err::<(), _>(Error::named("Closed", "the shop is closed"))
            })
            .await
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<()>("work"))).expect("start");
    let error = world.run(handle.result()).expect_err("an error");
    assert_eq!((error.name(), error.message(), error.kind()), ("Closed", "the shop is closed", ErrorKind::App));
    assert_eq!(log.count("run"), 1);
}

#[test]
fn an_exhausted_step_gives_its_last_error_at_the_moment_of_that_error() {
    let world = World::new(3);
    let (log, env) = (Log::default(), world.env("web"));
    let work = body!(
        [log, env] | ctx | {
            let from = env.monotonic().0;
            let step = ctx.step("fails", |attempt: Attempt| {
                note_time(&log, &env, from);
                async move { Err::<(), _>(Error::named("Down", format!("down {}", attempt.number))) }
            });
            let error = step.retries(3).backoff(secs(10)).jitter(0.0).await.expect_err("it always fails");
            note_time(&log, &env, from);
            assert_eq!((error.name(), error.message()), ("Down", "down 4"));
            Ok(error.earlier().to_vec())
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<Vec<String>>("work"))).expect("start");
    let earlier = world.run(handle.result()).expect("result");
    assert_eq!(earlier, ["Down: down 1", "Down: down 2", "Down: down 3"]);
    // Ten seconds, twice, and twice again; nothing after the last.
    assert_eq!(millis(&log), [0, 10_000, 30_000, 70_000, 70_000]);
}

#[test]
fn waits_grow_by_the_rate_up_to_the_longest() {
    let times = times_of_failures(4, |step| {
        step.retries(5).backoff(secs(1)).backoff_rate(3.0).max_backoff(secs(10)).jitter(0.0)
    });
    assert_eq!(times, [0, 1_000, 4_000, 13_000, 23_000, 33_000]);
}

#[test]
fn the_wait_is_a_second_doubled_and_moved_by_a_tenth_unless_set_and_an_hour_at_most() {
    let times = times_of_failures(5, |step| step.retries(14));
    assert_eq!(times.len(), 15);
    let mut moved = false;
    for (n, pair) in times.windows(2).enumerate() {
        let (wait, usual) = (pair[1] - pair[0], (1_000_u64 << n).min(3_600_000));
        assert!(wait >= usual * 89 / 100 && wait <= (usual * 111 / 100).min(3_600_000), "wait {n} is {wait} ms");
        moved |= wait != usual;
    }
    assert!(moved, "no wait was moved: {times:?}");
}

#[test]
fn the_predicate_sees_the_source_and_stops_at_once() {
    let world = World::new(6);
    let log = Log::default();
    let work = body!([log] |ctx, last_good: u32| {
        let step = ctx.call("reads", |attempt: Attempt| {
            log.note(format!("{}", attempt.number));
            let kind = if attempt.number <= last_good { io::ErrorKind::Interrupted } else { io::ErrorKind::NotFound };
            async move { Err::<(), _>(io::Error::new(kind, format!("{kind}"))) }
        });
        let interrupted = |error: &Error| {
            error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::Interrupted)
        };
        let error = step.retries(10).retry_if(interrupted).await.expect_err("it always fails");
        Ok((error.message().to_owned(), error.earlier().len()))
    });
    let engine = world.launch(world.builder("web").function("work", work));
    for (last_good, attempts) in [(0_u32, vec!["1"]), (2, vec!["1", "1", "2", "3"])] {
        let handle = world.run(engine.start(call::<(String, usize)>("work").arg(last_good))).expect("start");
        let (message, earlier) = world.run(handle.result()).expect("result");
        assert_eq!((message, earlier), (io::ErrorKind::NotFound.to_string(), last_good as usize));
        assert_eq!(log.all(), attempts);
    }
}

#[test]
fn a_timeout_drops_each_attempt_anew_and_is_an_error_that_can_be_retried() {
    let world = World::new(7);
    let (log, env) = (Log::default(), world.env("web"));
    let work = body!(
        [log, env] | ctx | {
            let from = env.monotonic().0;
            let step = ctx.step("hangs", |attempt: Attempt| {
                let (log, env) = (log.clone(), env.clone());
                async move {
                    let _gone = Gone(log.clone(), "dropped");
                    log.note("begun");
                    env.sleep(if attempt.number < 4 { secs(1_000) } else { secs(4) }).await;
                    Ok(attempt.number)
                }
            });
            let number = step.retries(3).backoff(secs(1)).backoff_rate(1.0).jitter(0.0).timeout(secs(5)).await?;
            let took = env.monotonic().0 - from;
            assert_eq!((number, took), (4, secs(5 + 1 + 5 + 1 + 5 + 1 + 4)));
            let hangs = ctx.step("hangs", || async {
                env.sleep(secs(1_000)).await;
                Ok(())
            });
            let error = hangs.retries(2).timeout(secs(5)).await.expect_err("it hangs");
            assert_eq!(error.earlier(), ["Timeout: an attempt took longer than 5s"; 2]);
            Err::<(), _>(error)
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<()>("work")).id("w")).expect("start");
    let error = world.run(handle.result()).expect_err("a timeout");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Timeout, "an attempt took longer than 5s"));
    assert_eq!(log.all(), ["begun", "dropped"].repeat(4));
    assert_eq!(world.step_names("w"), ["hangs", "hangs"]);
}

/// Notes, when it is dropped, whether its attempt had been told.
struct Told(Attempt, Log);

impl Drop for Told {
    fn drop(&mut self) {
        self.1.note(if self.0.is_abandoned() { "told" } else { "not told" });
    }
}

#[test]
fn an_attempt_is_told_before_it_is_dropped_whatever_the_reason_and_never_when_it_ends() {
    for (reason, expected) in [
        ("ends", "not told"),
        ("fails", "not told"),
        ("timeout", "told"),
        ("dropped", "told"),
        ("race", "told"),
        ("cancel", "told"),
        ("shutdown", "told"),
    ] {
        let world = World::new(8);
        let (log, env) = (Log::default(), world.env("web"));
        let work = body!([log, env] |ctx, reason: String| {
            let (why, ends) = (reason.as_str(), reason == "ends" || reason == "fails");
            let step = ctx.step("work", |attempt: Attempt| {
                let (told, env, fails) = (Told(attempt, log.clone()), env.clone(), why == "fails");
                async move {
                    env.sleep(if ends { secs(1) } else { secs(1_000) }).await;
                    drop(told);
                    if fails { Err(Error::new("no")) } else { Ok(()) }
                }
            });
            match why {
                "timeout" => drop(step.timeout(secs(2)).await.expect_err("a timeout")),
                "dropped" => assert!(poll_once(step).await.is_none()),
                "race" => {
                    let other = ctx.step("other", || async { env.sleep(secs(2)).await; Ok(()) });
                    assert_eq!(ctx.race([step, other]).await?.0, 1);
                }
                _ => drop(step.await),
            }
            Ok(())
        });
        let engine = world.launch(world.builder("web").function("work", work));
        let handle = world.run(engine.start(call::<()>("work").arg(reason)).id("w")).expect("start");
        world.pass(secs(5));
        match reason {
            "cancel" => world.run(handle.cancel()).expect("cancel"),
            "shutdown" => world.run(engine.shutdown(secs(1))).expect("shutdown"),
            _ => world.run(handle.result()).expect("result"),
        }
        world.pass(secs(5));
        assert_eq!(log.all(), [expected], "{reason}");
    }
}

#[test]
fn an_attempt_that_has_ended_is_never_told_afterwards() {
    let world = World::new(9);
    let kept: Arc<Mutex<Option<Attempt>>> = Arc::default();
    let work = body!(
        [kept] | ctx | {
            let keep = |attempt: Attempt| {
                *kept.lock().expect("lock") = Some(attempt);
                async { Ok(()) }
            };
            ctx.step("keeps", keep).timeout(secs(5)).await?;
            ctx.sleep(secs(20)).await
        }
    );
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<()>("work"))).expect("start");
    world.pass(secs(10));
    world.run(handle.cancel()).expect("cancel");
    world.pass(secs(10));
    let attempt = kept.lock().expect("lock").take().expect("an attempt");
    assert!(!attempt.is_abandoned());
    assert!(world.run(poll_once(attempt.abandoned())).is_none());
}

#[test]
fn a_remote_cancellation_ends_a_step_that_runs_or_waits_for_its_next_attempt() {
    for waits in [false, true] {
        let world = World::new(10);
        let (log, env) = (Log::default(), world.env("web"));
        let work = body!(
            [log, env] | ctx | {
                let step = ctx.step("long", || {
                    let (log, env) = (log.clone(), env.clone());
                    async move {
                        log.note("begun");
                        if waits {
                            return Err(Error::new("again"));
                        }
                        let _gone = Gone(log.clone(), "dropped");
                        env.sleep(secs(1_000)).await;
                        Ok(log.note("ended"))
                    }
                });
                step.retries(100).backoff(secs(3_600)).await?;
                Ok(log.note("went on"))
            }
        );
        let engine = world.launch(world.builder("web").function("work", work));
        world.run(engine.start(call::<()>("work")).id("w")).expect("start");
        world.pass(secs(5));
        let other = world.launch(world.builder("other"));
        world.run(other.handle_by_id::<()>("w").cancel()).expect("cancel");
        world.pass(secs(1));
        assert_eq!(log.all(), if waits { vec!["begun"] } else { vec!["begun", "dropped"] });
        assert_eq!((world.steps("w").len(), engine.stats().running), (0, 0));
        world.pass(secs(5_000));
        assert_eq!(log.count("begun"), 1, "it was tried again after its end");
    }
}

#[test]
fn a_crash_between_attempts_begins_again_at_the_first() {
    let world = World::new(11);
    let log = Log::default();
    let build = |process: &str| {
        let work = body!(
            [log] | ctx | {
                let step = ctx.step("fails", |attempt: Attempt| {
                    log.note(format!("{} {}", attempt.number, attempt.key));
                    async { Err::<(), _>(Error::new("down")) }
                });
                step.retries(2).backoff(secs(100)).jitter(0.0).await
            }
        );
        world.builder(process).function("work", work)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<()>("work")).id("w")).expect("start");
    world.pass(secs(150));
    world.sim.kill("first");
    let second = world.launch(build("second"));
    world.run(second.handle_by_id::<()>("w").result()).expect_err("down");
    assert_eq!(log.all(), ["1 w-0", "2 w-0", "1 w-0", "2 w-0", "3 w-0"]);
}
