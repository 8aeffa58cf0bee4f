//! Tasks, groups, drain and abort, under the simulation where they are exact.

use crate::support::{Lines, captured};
use mainstay_env::{Sim, TaskError, Tasks, yield_now};
use std::future::{Future, pending};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tokio::sync::Notify;

const SECOND: Duration = Duration::from_secs(1);

fn world() -> (Sim, Tasks) {
    let sim = Sim::new(11);
    let tasks = sim.env("p").tasks().clone();
    (sim, tasks)
}

#[test]
fn a_task_gives_its_value_after_it_left_the_living() {
    let (sim, tasks) = world();
    let task = tasks.spawn("sum", async { 2 + 3 });
    assert_eq!((task.name(), task.is_finished(), tasks.live()), ("sum", false, vec!["sum".to_owned()]));
    let observer = tasks.clone();
    let value = sim.block_on(async move { (task.await, observer.live().len()) });
    assert_eq!(value, (Ok(5), 0));
}

#[test]
fn whoever_is_woken_by_the_result_no_longer_finds_the_task() {
    struct Looks(Tasks, Lines);
    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            self.1.push(format!("{:?}", self.0.live()));
        }
    }
    let (sim, tasks) = world();
    let lines = Lines::default();
    let mut task = tasks.spawn("sum", async { 2 + 3 });
    let waker = Waker::from(Arc::new(Looks(tasks, lines.clone())));
    assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
    sim.run_until_stalled();
    assert_eq!(lines.take(), ["[]"]);
}

#[test]
fn a_panic_is_caught_logged_with_the_tasks_name_and_told_to_the_awaiter() {
    let logged = captured(|| {
        let (sim, tasks) = world();
        let guard = Lines::default();
        let held = guard.on_drop("dropped");
        let task = tasks.group("engine").spawn("worker", async move {
            let _held = held;
            yield_now().await;
            panic!("queue {} is odd", 7)
        });
        let result: Result<(), TaskError> = sim.block_on(task);
        assert_eq!(result, Err(TaskError::Panicked("queue 7 is odd".to_owned())));
        assert_eq!(guard.take(), ["dropped"]);
        assert_eq!(sim.panics(), ["p:engine/worker: queue 7 is odd"]);
        assert_eq!(tasks.live(), [""; 0]);
    });
    assert_eq!(logged, ["message=task panicked task=engine/worker panic=queue 7 is odd"]);
}

#[test]
fn a_panic_while_dropping_is_a_panic_of_the_task() {
    let (sim, tasks) = world();
    let task = tasks.spawn("bad", async {
        let _guard = crate::support::OnDrop(Some(|| panic!("in drop")));
        pending::<()>().await;
    });
    sim.run_until_stalled();
    task.abort();
    assert_eq!(sim.block_on(task), Err(TaskError::Panicked("in drop".to_owned())));
}

#[test]
fn an_aborted_task_is_dropped_before_it_is_reported() {
    let (sim, tasks) = world();
    let lines = Lines::default();
    let held = lines.on_drop("dropped");
    let task = tasks.spawn("wait", async move {
        let _held = held;
        pending::<()>().await;
    });
    sim.run_until_stalled();
    task.abort();
    assert!(!task.is_finished(), "an abort takes effect at the task's next poll");
    assert_eq!(sim.block_on(task), Err(TaskError::Aborted));
    assert_eq!(lines.take(), ["dropped"]);
}

#[test]
fn an_abort_before_the_first_poll_means_no_poll() {
    let (sim, tasks) = world();
    let lines = Lines::default();
    let seen = lines.clone();
    let task = tasks.spawn("late", async move { seen.push("ran") });
    task.abort();
    assert_eq!(sim.block_on(task), Err(TaskError::Aborted));
    assert_eq!(lines.take(), [""; 0]);
}

#[test]
fn a_dropped_handle_leaves_the_task_running_and_owned() {
    let (sim, tasks) = world();
    let lines = Lines::default();
    let seen = lines.clone();
    drop(tasks.spawn("work", async move {
        yield_now().await;
        seen.push("done");
    }));
    assert_eq!(tasks.live(), ["work"]);
    sim.run_until_stalled();
    assert_eq!((lines.take(), tasks.live().len()), (vec!["done".to_owned()], 0));
}

#[test]
fn a_result_is_given_once() {
    let (sim, tasks) = world();
    let mut task = tasks.spawn("once", async { 1 });
    assert_eq!(sim.block_on(&mut task), Ok(1));
    assert_eq!(sim.block_on(&mut task), Err(TaskError::Aborted));
}

#[test]
fn a_drain_waits_for_all_also_for_what_is_spawned_meanwhile() {
    let (sim, tasks) = world();
    let (env, lines) = (sim.env("p"), Lines::default());
    let (inner, seen) = (tasks.clone(), lines.clone());
    tasks.spawn("outer", async move {
        env.sleep(SECOND).await;
        let env2 = env.clone();
        inner.spawn("inner", async move {
            env2.sleep(SECOND).await;
            seen.push("inner done");
        });
    });
    let deadline = sim.env("p").deadline(60 * SECOND);
    assert_eq!(sim.block_on(tasks.drain(deadline)), [""; 0]);
    assert_eq!(lines.take(), ["inner done"]);
    assert_eq!(sim.env("p").monotonic().0, 2 * SECOND, "a drain ends with the last task, not at the deadline");
}

#[test]
fn a_drain_aborts_at_the_deadline_and_names_the_stuck_ones() {
    let (sim, tasks) = world();
    let (env, lines) = (sim.env("p"), Lines::default());
    let held = lines.on_drop("stuck dropped");
    tasks.spawn("quick", env.sleep(SECOND));
    let stuck = tasks.group("engine").spawn("stuck", async move {
        let _held = held;
        pending::<()>().await;
    });
    tasks.spawn("slow", env.sleep(6 * SECOND));
    assert_eq!(sim.block_on(tasks.drain(env.deadline(5 * SECOND))), ["engine/stuck", "slow"]);
    assert_eq!((env.monotonic().0, tasks.live().len()), (5 * SECOND, 0));
    assert_eq!(lines.take(), ["stuck dropped"]);
    assert!(stuck.is_finished());
    assert_eq!(sim.clock().waiters(), 0);
}

#[test]
fn a_drain_whose_deadline_has_passed_still_finds_an_empty_group_empty() {
    let (sim, tasks) = world();
    sim.advance(10 * SECOND);
    assert_eq!(sim.block_on(tasks.drain(mainstay_env::Monotonic::default())), [""; 0]);
}

#[test]
fn a_drained_group_refuses_later_spawns_and_its_parent_does_not() {
    let (sim, tasks) = world();
    let engine = tasks.group("engine");
    assert_eq!(sim.block_on(engine.drain(sim.env("p").deadline(SECOND))), [""; 0]);
    assert!(engine.is_closed() && engine.group("lane").is_closed() && !tasks.is_closed());
    let lines = Lines::default();
    let held = lines.on_drop("dropped");
    let late = engine.group("lane").spawn("late", async move { drop(held) });
    assert_eq!((lines.take(), late.is_finished()), (vec!["dropped".to_owned()], true));
    assert_eq!(sim.block_on(late), Err(TaskError::Aborted));
    assert_eq!(sim.block_on(tasks.spawn("on", async { 1 })), Ok(1));
    assert_eq!((engine.live().len(), tasks.live().len()), (0, 0));
}

#[test]
fn a_spawn_refused_by_an_outer_group_leaves_no_trace_in_the_inner_one() {
    let (sim, tasks) = world();
    let engine = tasks.group("engine");
    tasks.close();
    let late = engine.spawn("late", pending::<()>());
    assert_eq!((engine.live().len(), tasks.live().len()), (0, 0));
    assert_eq!(sim.block_on(late), Err(TaskError::Aborted));
}

#[test]
fn a_group_is_aborted_alone_and_its_parent_covers_it() {
    let (sim, tasks) = world();
    let (one, two) = (tasks.group("one"), tasks.group("two"));
    let a = one.group("deep").spawn("a", pending::<()>());
    let b = two.spawn("b", pending::<()>());
    assert_eq!(tasks.live(), ["one/deep/a", "two/b"]);
    assert_eq!(one.live(), ["one/deep/a"]);
    one.abort_all();
    assert_eq!(sim.block_on(a), Err(TaskError::Aborted));
    assert_eq!(tasks.live(), ["two/b"]);
    tasks.abort_all();
    assert_eq!(sim.block_on(b), Err(TaskError::Aborted));
    assert_eq!(sim.block_on(two.spawn("again", async { 1 })), Ok(1), "an abort leaves the group open");
}

#[test]
fn a_task_may_spawn_while_it_is_dropped() {
    let (sim, tasks) = world();
    let (lines, inner) = (Lines::default(), tasks.clone());
    let seen = lines.clone();
    let held = crate::support::OnDrop(Some(move || {
        inner.spawn("farewell", async move { seen.push("farewell") });
    }));
    let task = tasks.spawn("held", async move {
        let _held = held;
        pending::<()>().await;
    });
    sim.run_until_stalled();
    task.abort();
    sim.run_until_stalled();
    assert_eq!(lines.take(), ["farewell"]);
}

#[test]
fn a_thread_is_refused_in_simulation_by_name() {
    let (_sim, tasks) = world();
    let error = tasks.thread("writer", || ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.to_string(), "thread writer refused: a simulation has no threads");
    assert_eq!(tasks.live(), [""; 0]);
}

#[test]
fn a_timeout_gives_the_value_or_elapsed_and_drops_the_future() {
    let sim = Sim::new(1);
    let (env, lines) = (sim.env("p"), Lines::default());
    assert_eq!(sim.block_on(env.timeout(SECOND, async { 3 })), Ok(3));
    let held = lines.on_drop("dropped");
    let late = async move {
        let _held = held;
        Notify::new().notified().await;
    };
    assert_eq!(sim.block_on(env.timeout(SECOND, late)), Err(mainstay_env::Elapsed));
    assert_eq!((lines.take(), env.monotonic().0), (vec!["dropped".to_owned()], SECOND));
    assert_eq!(sim.block_on(env.timeout(Duration::ZERO, async { 4 })), Ok(4), "what is ready wins");
    assert_eq!(sim.block_on(env.timeout(Duration::MAX, env.sleep(SECOND))), Ok(()));
}

#[test]
fn a_limit_counts_from_the_call_not_from_the_first_poll() {
    let sim = Sim::new(1);
    let env = sim.env("p");
    let (limited, nap) = (env.timeout(3 * SECOND, pending::<()>()), env.sleep(2 * SECOND));
    sim.advance(SECOND);
    sim.block_on(nap);
    assert_eq!(env.monotonic().0, 2 * SECOND);
    assert!(sim.block_on(limited).is_err());
    assert_eq!(env.monotonic().0, 3 * SECOND);
}
