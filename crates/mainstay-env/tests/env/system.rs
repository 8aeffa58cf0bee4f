//! The real environment: private runtime, timers from anywhere, threads, and the runtime's end.

use crate::support::{Lines, OnDrop};
use mainstay_env::{Env, Monotonic, SimClock, TaskError, Timestamp, block_on};
use std::cell::RefCell;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// Far more than a loaded machine needs for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

const SHORT: Duration = Duration::from_millis(5);

thread_local! {
    static AT_THREAD_END: RefCell<Vec<Box<dyn std::any::Any>>> = const { RefCell::new(Vec::new()) };
}

/// Arranges that `send` hears of the end of the calling thread.
fn tell_at_thread_end(send: mpsc::Sender<()>) {
    AT_THREAD_END.with_borrow_mut(|list| list.push(Box::new(OnDrop(Some(move || _ = send.send(()))))));
}

/// An environment and a receiver that hears of the end of its runtime thread.
fn watched() -> (Env, mpsc::Receiver<()>) {
    let env = Env::system("watched").unwrap();
    let (send, ended) = mpsc::channel();
    block_on(env.tasks().spawn("watch", async move { tell_at_thread_end(send) })).unwrap();
    (env, ended)
}

fn assert_ends(ended: &mpsc::Receiver<()>) {
    ended.recv_timeout(PATIENCE).expect("the runtime thread ends");
}

fn assert_runs(ended: &mpsc::Receiver<()>) {
    assert_eq!(ended.try_recv(), Err(mpsc::TryRecvError::Empty), "the runtime thread runs");
}

#[test]
fn the_clock_agrees_with_the_machines() {
    let env = Env::system("clock").unwrap();
    let reference = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let difference = (env.now().as_millis() - reference).abs();
    assert!(difference < 5_000, "{difference} ms apart");
    assert!(env.monotonic() <= env.monotonic());
}

#[test]
fn tasks_run_on_the_thread_named_after_the_env() {
    let env = Env::system("named-runtime").unwrap();
    let name = block_on(env.tasks().spawn("who", async { thread::current().name().map(str::to_owned) }));
    assert_eq!((name, env.name()), (Ok(Some("named-runtime".to_owned())), "named-runtime"));
}

#[test]
fn a_sleep_works_on_a_foreign_thread_without_a_runtime() {
    let env = Env::system("foreign").unwrap();
    let took = thread::spawn(move || {
        let (start, begin) = (Instant::now(), env.monotonic());
        block_on(env.sleep(SHORT));
        assert!(env.monotonic().since(begin) >= SHORT);
        start.elapsed()
    });
    assert!((SHORT..PATIENCE).contains(&took.join().unwrap()));
}

#[test]
fn a_sleep_works_inside_another_tokio_runtime() {
    let env = Env::system("mine").unwrap();
    let foreign = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let result = foreign.block_on(async {
        env.sleep(SHORT).await;
        env.timeout(SHORT, pending::<()>()).await
    });
    assert_eq!(result, Err(mainstay_env::Elapsed));
}

#[test]
fn a_far_away_sleep_does_not_panic_and_does_not_end() {
    let env = Env::system("far").unwrap();
    let century = Duration::from_secs(100 * 365 * 86_400);
    for far in [century, Duration::from_millis(u64::MAX), Duration::MAX] {
        assert_eq!(block_on(env.timeout(SHORT, env.sleep(far))), Err(mainstay_env::Elapsed), "{far:?}");
    }
    assert_eq!(block_on(env.timeout(SHORT, env.sleep_until(Monotonic::NEVER))), Err(mainstay_env::Elapsed));
}

#[test]
fn a_panic_is_reported_and_the_runtime_goes_on() {
    let env = Env::system("panics").unwrap();
    let bad = env.tasks().spawn("bad", async { panic!("boom") });
    let result: Result<(), TaskError> = block_on(bad);
    assert_eq!(result, Err(TaskError::Panicked("boom".to_owned())));
    assert_eq!(block_on(env.tasks().spawn("good", async { 1 })), Ok(1));
}

#[test]
fn an_abort_from_another_thread_drops_the_task() {
    let (env, lines) = (Env::system("abort").unwrap(), Lines::default());
    let (started, running) = oneshot::channel();
    let held = lines.on_drop("dropped");
    let task = env.tasks().spawn("wait", async move {
        let _held = held;
        started.send(()).unwrap();
        pending::<()>().await;
    });
    block_on(running).unwrap();
    task.abort();
    assert_eq!(block_on(task), Err(TaskError::Aborted));
    assert_eq!((lines.take(), env.tasks().live().len()), (vec!["dropped".to_owned()], 0));
}

#[test]
fn the_thread_ends_with_the_last_clone_and_its_tasks_are_dropped() {
    let (env, ended) = watched();
    let (clone, lines) = (env.clone(), Lines::default());
    let held = lines.on_drop("dropped");
    let task = env.tasks().spawn("wait", async move {
        let _held = held;
        pending::<()>().await;
    });
    drop(env);
    assert_eq!(block_on(clone.tasks().spawn("alive", async { 1 })), Ok(1));
    assert_runs(&ended);
    drop(clone);
    assert_ends(&ended);
    assert_eq!(block_on(task), Err(TaskError::Aborted));
    assert_eq!(lines.take(), ["dropped"]);
}

#[test]
fn the_thread_ends_when_its_own_task_drops_the_last_clone() {
    let (env, ended) = watched();
    let (go, wait) = oneshot::channel::<()>();
    let clone = env.clone();
    let task = env.tasks().spawn("last", async move {
        wait.await.unwrap();
        drop(clone);
    });
    drop(env);
    assert_runs(&ended);
    go.send(()).unwrap();
    assert_ends(&ended);
    assert_eq!(block_on(task), Ok(()));
}

#[test]
fn a_sleeping_task_does_not_keep_the_thread_and_a_foreign_sleeper_does() {
    let (env, ended) = watched();
    let sleep = env.sleep(Duration::from_millis(50));
    let (send, polled) = mpsc::channel();
    let mut nap = env.sleep(Duration::from_secs(86_400));
    let task = env.tasks().spawn("day", async move {
        std::future::poll_fn(|cx| {
            let poll = nap.as_mut().poll(cx);
            send.send(()).unwrap();
            poll
        })
        .await;
    });
    polled.recv_timeout(PATIENCE).unwrap();
    drop(env);
    block_on(sleep);
    assert_ends(&ended);
    assert_eq!(block_on(task), Err(TaskError::Aborted));
}

#[test]
fn a_group_or_a_clock_keeps_the_thread() {
    let (env, ended) = watched();
    let (group, clock) = (env.tasks().group("engine"), env.clock().clone());
    drop(env);
    assert_eq!(block_on(group.spawn("on", async { 1 })), Ok(1));
    drop(group);
    block_on(clock.sleep_until(clock.monotonic() + SHORT));
    assert_runs(&ended);
    drop(clock);
    assert_ends(&ended);
}

#[test]
fn a_drain_waits_for_a_thread_and_joins_it() {
    let env = Env::system("threads").unwrap();
    let (send, receive) = mpsc::channel::<u32>();
    let gone = Arc::new(AtomicBool::new(false));
    let flag = gone.clone();
    let thread = env.tasks().thread("writer", move || {
        let (tell, _) = mpsc::channel();
        tell_at_thread_end(tell);
        AT_THREAD_END.with_borrow_mut(|list| {
            list.push(Box::new(OnDrop(Some(move || {
                (0..2_000).for_each(|_| thread::yield_now());
                flag.store(true, Ordering::SeqCst);
            }))));
        });
        assert_eq!(thread::current().name(), Some("writer"));
        receive.iter().sum::<u32>()
    });
    assert_eq!(env.tasks().live(), ["writer"]);
    send.send(2).unwrap();
    send.send(3).unwrap();
    drop(send);
    assert_eq!(block_on(env.tasks().drain(env.deadline(PATIENCE))), [""; 0]);
    assert!(gone.load(Ordering::SeqCst), "the drain has joined the thread");
    assert_eq!(block_on(thread.unwrap()), Ok(5));
}

#[test]
fn a_stuck_thread_is_named_at_the_deadline_and_not_waited_for() {
    let env = Env::system("stuck").unwrap();
    let (release, wait) = mpsc::channel::<()>();
    let thread = env.tasks().group("db").thread("stuck", move || _ = wait.recv()).unwrap();
    let begin = Instant::now();
    assert_eq!(block_on(env.tasks().drain(env.deadline(SHORT))), ["db/stuck"]);
    assert!(begin.elapsed() < PATIENCE && !thread.is_finished());
    drop(release);
    assert_eq!(block_on(thread), Ok(()));
}

#[test]
fn a_threads_panic_is_reported_and_a_closed_group_starts_no_thread() {
    let env = Env::system("panicking").unwrap();
    let thread = env.tasks().thread("bad", || -> u8 { panic!("no {}", "luck") }).unwrap();
    assert_eq!(block_on(thread), Err(TaskError::Panicked("no luck".to_owned())));
    env.tasks().close();
    let late = env.tasks().thread("late", || 1).unwrap();
    assert_eq!(block_on(late), Err(TaskError::Aborted));
    assert_eq!(env.tasks().live(), [""; 0]);
}

#[test]
fn a_drain_names_the_stuck_task_on_the_real_clock() {
    let env = Env::system("drain").unwrap();
    env.tasks().spawn("stuck", pending::<()>());
    assert_eq!(block_on(env.tasks().drain(env.deadline(SHORT))), ["stuck"]);
    assert_eq!(env.tasks().live(), [""; 0]);
}

#[test]
fn a_virtual_clock_serves_over_the_real_runtime() {
    let real = Env::system("virtual").unwrap();
    let clock = SimClock::new(Timestamp::from_millis(7));
    let env = real.with_clock(Arc::new(clock.clone()));
    let (waiting, waits) = mpsc::channel();
    let mut sleep = env.sleep(Duration::from_secs(3_600));
    let task = env.tasks().spawn("hour", async move {
        std::future::poll_fn(|cx| {
            let poll = sleep.as_mut().poll(cx);
            waiting.send(()).unwrap();
            poll
        })
        .await;
    });
    waits.recv_timeout(PATIENCE).unwrap();
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(block_on(task), Ok(()));
    assert_eq!(env.now(), Timestamp::from_millis(3_600_007));
}

#[test]
fn block_on_is_refused_on_the_runtime_thread() {
    let env = Env::system("refuse").unwrap();
    let result = block_on(env.tasks().spawn("nested", async { block_on(async { 1 }) }));
    let Err(TaskError::Panicked(text)) = result else { panic!("{result:?}") };
    assert!(text.starts_with("block_on was called on the runtime thread"), "{text}");
}

#[test]
fn tasks_of_the_caller_run_on_its_runtime_and_are_owned_like_others() {
    let env = Env::system("callers").unwrap();
    let caller = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let group = env.tasks().group("bodies");
    let (mine, blocked) = caller.block_on(async {
        let bodies = group.on_caller();
        let mine = bodies.spawn("where", async { thread::current().id() }).await.unwrap();
        (mine, bodies.spawn("blocked", pending::<()>()))
    });
    assert_eq!(mine, thread::current().id(), "a runtime of one thread polls on the thread that drives it");
    assert_eq!(group.live(), ["bodies/blocked"]);
    drop(caller);
    assert_eq!(block_on(blocked), Err(TaskError::Aborted));
    assert!(group.live().is_empty(), "what is dropped with its runtime is gone");
}

#[test]
fn without_a_runtime_the_caller_has_the_private_one() {
    let env = Env::system("private").unwrap();
    let here = env.tasks().on_caller().spawn("where", async { thread::current().id() });
    assert_ne!(block_on(here), Ok(thread::current().id()));
    let nested = env.tasks().spawn("outer", {
        let tasks = env.tasks().clone();
        async move { tasks.on_caller().spawn("inner", async { thread::current().id() }).await }
    });
    let own = block_on(env.tasks().spawn("own", async { thread::current().id() })).unwrap();
    assert_eq!(block_on(nested).unwrap(), Ok(own));
}
