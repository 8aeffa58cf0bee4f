//! The simulation: schedule, time, processes and their death.

use crate::support::{Lines, OnDrop};
use mainstay_env::{Env, Sim, TaskError, yield_now};
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify, Semaphore, mpsc, oneshot};

const SECOND: Duration = Duration::from_secs(1);

fn panic_text(body: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(body)).expect_err("a panic");
    panic.downcast_ref::<String>().expect("a formatted text").clone()
}

/// A small busy world: workers that sleep, yield, hand on a permit and kill each other's process.
fn busy_run(seed: u64) -> (Vec<String>, Vec<String>, u64) {
    let sim = Sim::new(seed);
    let (lines, permits) = (Lines::default(), Arc::new(Semaphore::new(2)));
    sim.record_trace();
    for process in ["a", "b", "c"] {
        let env = sim.env(process);
        for worker in ["one", "two", "three"] {
            let (env2, lines, permits) = (env.clone(), lines.clone(), permits.clone());
            env.tasks().spawn(worker, async move {
                let rng = env2.rng().child(worker);
                for round in 0..5 {
                    let _permit = permits.acquire().await;
                    env2.sleep(rng.between(Duration::ZERO, SECOND)).await;
                    yield_now().await;
                    lines.push(format!("{} {worker} {round} {}", env2.name(), env2.now()));
                }
            });
        }
    }
    sim.advance(2 * SECOND);
    sim.kill("b");
    sim.advance(60 * SECOND);
    assert_eq!(sim.live(), [""; 0]);
    (sim.take_trace(), lines.take(), sim.rng().u64())
}

#[test]
fn the_same_seed_gives_the_same_polls_and_another_seed_others() {
    let first = busy_run(21);
    assert!(first.0.len() > 60, "{} polls", first.0.len());
    assert_eq!(first, busy_run(21));
    assert_ne!(first.0, busy_run(22).0);
}

#[test]
fn every_order_of_two_ready_tasks_comes_up() {
    let order = |seed| {
        let (sim, lines) = (Sim::new(seed), Lines::default());
        for name in ["x", "y"] {
            let lines = lines.clone();
            sim.env("p").tasks().spawn(name, async move { lines.push(name) });
        }
        sim.run_until_stalled();
        lines.take().concat()
    };
    let orders: Vec<String> = (0..32).map(order).collect();
    assert!(orders.contains(&"xy".to_owned()) && orders.contains(&"yx".to_owned()), "{orders:?}");
}

#[test]
fn timers_fire_in_due_order_each_at_its_own_time() {
    let (sim, lines) = (Sim::new(1), Lines::default());
    let env = sim.env("p");
    for secs in [5, 1, 4, 2, 3] {
        let (env2, lines) = (env.clone(), lines.clone());
        env.tasks().spawn("timer", async move {
            env2.sleep(Duration::from_secs(secs)).await;
            lines.push(format!("{secs} at {}", env2.monotonic().0.as_secs()));
        });
    }
    sim.advance(10 * SECOND);
    assert_eq!(lines.take(), ["1 at 1", "2 at 2", "3 at 3", "4 at 4", "5 at 5"]);
    assert_eq!(env.monotonic().0, 10 * SECOND);
}

#[test]
fn an_advance_goes_no_further_than_asked() {
    let sim = Sim::new(1);
    let env = sim.env("p");
    let task = env.tasks().spawn("nap", env.sleep(3 * SECOND));
    sim.advance(2 * SECOND);
    assert_eq!((task.is_finished(), env.monotonic().0), (false, 2 * SECOND));
    sim.advance(SECOND);
    assert!(task.is_finished());
}

#[test]
fn time_stands_still_while_tasks_run() {
    let sim = Sim::new(1);
    let env = sim.env("p");
    env.tasks().spawn("nap", env.sleep(SECOND));
    sim.run_until_stalled();
    assert_eq!((sim.clock().waiters(), env.monotonic().0, sim.step()), (1, Duration::ZERO, false));
}

#[test]
fn a_step_polls_exactly_one_task_once() {
    let (sim, lines) = (Sim::new(1), Lines::default());
    let seen = lines.clone();
    sim.env("p").tasks().spawn("three", async move {
        for part in ["a", "b", "c"] {
            seen.push(part);
            yield_now().await;
        }
    });
    assert!(sim.step());
    assert_eq!(lines.take(), ["a"]);
    assert!(sim.step());
    assert_eq!((lines.take(), sim.polls()), (vec!["b".to_owned()], 2));
    assert!(sim.step() && sim.step() && !sim.step());
}

#[test]
fn a_kill_drops_the_tasks_before_any_further_poll_and_runs_their_guards() {
    let (sim, lines) = (Sim::new(3), Lines::default());
    let env = sim.env("p");
    let mut tasks = Vec::new();
    for name in ["x", "y", "z"] {
        let (held, lines) = (lines.on_drop(&format!("{name} dropped")), lines.clone());
        tasks.push(env.tasks().spawn(name, async move {
            let _held = held;
            yield_now().await;
            lines.push(format!("{name} went on"));
        }));
    }
    while sim.polls() < 3 {
        assert!(sim.step());
    }
    lines.take();
    sim.kill("p");
    assert_eq!(sim.live(), [""; 0]);
    sim.run_until_stalled();
    assert!(lines.take().iter().all(|line| line.ends_with("dropped")));
    for task in tasks {
        assert!(task.is_finished());
    }
}

#[test]
fn a_kill_drops_in_the_order_of_spawning() {
    let (sim, lines) = (Sim::new(3), Lines::default());
    for name in ["x", "y", "z"] {
        let held = lines.on_drop(name);
        sim.env("p").tasks().spawn(name, async move {
            let _held = held;
            pending::<()>().await;
        });
    }
    sim.kill("p");
    assert_eq!(lines.take(), ["x", "y", "z"]);
}

#[test]
fn the_awaiter_of_a_killed_task_is_told_and_other_processes_go_on() {
    let sim = Sim::new(4);
    let doomed = sim.env("doomed").tasks().spawn("wait", pending::<()>());
    let watcher = sim.env("watcher").tasks().spawn("watch", doomed);
    sim.run_until_stalled();
    sim.kill("doomed");
    assert_eq!(sim.block_on(watcher), Ok(Err(TaskError::Aborted)));
    assert_eq!(sim.processes(), ["watcher"]);
}

#[test]
fn a_dead_processs_env_spawns_nothing_and_a_new_incarnation_does() {
    let (sim, lines) = (Sim::new(5), Lines::default());
    let old = sim.env("p");
    sim.kill("p");
    let (held, seen) = (lines.on_drop("dropped"), lines.clone());
    let late = old.tasks().spawn("late", async move {
        let _held = held;
        seen.push("ran");
    });
    assert_eq!(lines.take(), ["dropped"]);
    assert_eq!(sim.block_on(late), Err(TaskError::Aborted));
    let new = sim.env("p");
    assert_ne!(old.nonce(), new.nonce());
    assert_eq!(sim.block_on(new.tasks().spawn("work", async { 1 })), Ok(1));
    let again = old.tasks().group("inner").spawn("still late", async { 1 });
    assert_eq!(sim.block_on(again), Err(TaskError::Aborted));
}

#[test]
fn env_of_a_running_process_is_the_same_process() {
    let sim = Sim::new(5);
    sim.env("p").tasks().spawn("wait", pending::<()>());
    assert_eq!(sim.env("p").tasks().live(), ["wait"]);
    sim.kill("nobody");
    assert_eq!(sim.live(), ["p:wait"]);
}

#[test]
fn guards_that_spawn_or_wake_during_a_kill_do_no_harm() {
    let (sim, lines) = (Sim::new(6), Lines::default());
    let (dying, other) = (sim.env("dying"), sim.env("other"));
    let notify = Arc::new(Notify::new());
    let (heard, seen) = (notify.clone(), lines.clone());
    other.tasks().spawn("listen", async move {
        heard.notified().await;
        seen.push("woken");
    });
    let (env, refused) = (dying.clone(), lines.on_drop("late spawn dropped"));
    let held = OnDrop(Some(move || {
        env.tasks().spawn("late", async move {
            let _refused = refused;
            pending::<()>().await;
        });
        notify.notify_one();
    }));
    dying.tasks().spawn("held", async move {
        let _held = held;
        pending::<()>().await;
    });
    sim.run_until_stalled();
    sim.kill("dying");
    assert_eq!(lines.take(), ["late spawn dropped"]);
    sim.run_until_stalled();
    assert_eq!(lines.take(), ["woken"]);
}

#[test]
fn a_task_that_kills_its_own_process_ends_with_that_poll() {
    let (sim, lines) = (Arc::new(Sim::new(7)), Lines::default());
    let (inner, held, seen) = (Arc::downgrade(&sim), lines.on_drop("dropped"), lines.clone());
    let task = sim.env("p").tasks().spawn("killer", async move {
        let _held = held;
        inner.upgrade().unwrap().kill("p");
        seen.push("rest of the poll");
        yield_now().await;
        seen.push("never");
    });
    assert!(sim.step());
    assert_eq!(lines.take(), ["rest of the poll", "dropped"]);
    assert!(task.is_finished() && !sim.step());
}

#[test]
fn a_task_woken_in_its_own_poll_is_polled_again() {
    let sim = Sim::new(8);
    let task = sim.env("p").tasks().spawn("self", async {
        for _ in 0..10 {
            yield_now().await;
        }
    });
    sim.run_until_stalled();
    assert_eq!((task.is_finished(), sim.polls()), (true, 11));
}

#[test]
fn tokio_sync_works_between_tasks_and_the_driven_future() {
    let sim = Sim::new(9);
    let tasks = sim.env("p").tasks().clone();
    let (sender, mut receiver) = mpsc::channel(1);
    let (shared, finish) = (Arc::new(Mutex::new(0)), oneshot::channel());
    for n in 1..=3 {
        let (sender, shared) = (sender.clone(), shared.clone());
        tasks.spawn("send", async move {
            *shared.lock().await += n;
            sender.send(n).await.unwrap();
        });
    }
    drop(sender);
    tasks.spawn("finish", async move { finish.0.send(9).unwrap() });
    let total = sim.block_on(async {
        let mut sum = 0;
        while let Some(n) = receiver.recv().await {
            sum += n;
        }
        sum + finish.1.await.unwrap()
    });
    assert_eq!((total, sim.block_on(async { *shared.lock().await })), (15, 6));
}

#[test]
fn block_on_may_step_and_kill_from_inside() {
    let sim = Sim::new(10);
    let env = sim.env("p");
    let task = env.tasks().spawn("nap", env.sleep(5 * SECOND));
    let result = sim.block_on(async {
        sim.advance(SECOND);
        sim.kill("p");
        task.await
    });
    assert_eq!((result, sim.clock().monotonic_secs()), (Err(TaskError::Aborted), 1));
}

#[test]
fn a_deadlock_is_named_by_its_live_tasks() {
    let sim = Sim::new(11);
    sim.env("p").tasks().group("engine").spawn("stuck", pending::<()>());
    let text = panic_text(|| sim.block_on(pending()));
    assert_eq!(text, "deadlock: nothing is ready, nobody waits for a time; live tasks: [\"p:engine/stuck\"]");
}

#[test]
fn a_livelock_is_named_by_its_ready_tasks() {
    let spin = |sim: &Sim| {
        sim.set_stall_polls(1_000);
        sim.env("p").tasks().spawn("spin", async {
            loop {
                yield_now().await;
            }
        });
    };
    let sim = Sim::new(12);
    spin(&sim);
    let text = panic_text(|| sim.run_until_stalled());
    assert!(text.starts_with("livelock: 1000 polls at one time, still ready: [\"p:spin\"]"), "{text}");
    let sim = Sim::new(12);
    spin(&sim);
    assert!(panic_text(|| sim.block_on(pending())).starts_with("livelock: 1000 polls at one time"));
}

#[test]
fn polls_at_different_times_are_no_livelock() {
    let sim = Sim::new(13);
    sim.set_stall_polls(50);
    let env = sim.env("p");
    let task = env.tasks().spawn("tick", {
        let env = env.clone();
        async move {
            for _ in 0..500 {
                env.sleep(SECOND).await;
            }
        }
    });
    assert_eq!(sim.block_on(task), Ok(()));
    assert_eq!(env.monotonic().0, 500 * SECOND);
}

#[test]
fn a_dropped_simulation_drops_its_tasks_and_leaves_its_envs_harmless() {
    let (sim, lines) = (Sim::new(14), Lines::default());
    let env = sim.env("p");
    let (held, inner) = (lines.on_drop("dropped"), env.clone());
    env.tasks().spawn("wait", async move {
        let _held = held;
        inner.sleep(SECOND).await;
    });
    sim.run_until_stalled();
    drop(sim);
    assert_eq!(lines.take(), ["dropped"]);
    let late = env.tasks().spawn("late", async { 1 });
    assert!(late.is_finished());
    assert_eq!(mainstay_env::block_on(late), Err(TaskError::Aborted));
}

#[test]
fn handles_may_cross_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Sim>();
    shared::<Env>();
    shared::<mainstay_env::Tasks>();
    shared::<mainstay_env::Task<u8>>();
    shared::<Arc<dyn mainstay_env::Clock>>();
}

trait Secs {
    fn monotonic_secs(&self) -> u64;
}

impl Secs for mainstay_env::SimClock {
    fn monotonic_secs(&self) -> u64 {
        mainstay_env::Clock::monotonic(self).0.as_secs()
    }
}
