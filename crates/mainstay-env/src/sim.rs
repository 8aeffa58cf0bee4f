//! The simulation: processes as groups of tasks on one thread, a virtual clock, and a schedule drawn from a seed.

mod executor;

use crate::clock::{BoxFuture, Clock};
use crate::env::Env;
use crate::rng::Rng;
use crate::sim_clock::SimClock;
use crate::sync::lock;
use crate::tasks::{Spawner, Tasks};
use crate::{Monotonic, Timestamp};
use executor::{Executor, Picked};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Where the wall clock of a simulation starts: 2024-01-01 00:00 UTC.
const START: Timestamp = Timestamp::from_millis(1_704_067_200_000);

/// Polls without a move of the clock that are taken for a livelock.
const STALL_POLLS: u64 = 1_000_000;

/// Polls of one `block_on` after which it is taken to wait for what never comes.
const BLOCK_ON_POLLS: u64 = 10_000_000;

/// A seeded world of simulated processes.
///
/// Everything runs on the thread that calls; the same seed and the same calls give the same schedule. Synchronisation by
/// `tokio::sync` works in it; tokio's timers, I/O and spawning do not.
///
/// ```
/// use mainstay_env::{Sim, yield_now};
///
/// let sim = Sim::new(42);
/// let task = sim.env("shop").tasks().spawn("step", async {
///     yield_now().await;
///     7
/// });
/// assert!(sim.step(), "polls the task once");
/// sim.kill("shop");
/// assert!(sim.block_on(task).is_err(), "it died between two polls");
/// ```
pub struct Sim {
    seed: u64,
    clock: SimClock,
    rng: Rng,
    executor: Arc<Executor>,
    processes: Mutex<BTreeMap<String, Process>>,
    stall_polls: AtomicU64,
}

/// A process by name: how often it was started, and its running incarnation.
#[derive(Default)]
struct Process {
    incarnation: u64,
    running: Option<(Arc<SimProcess>, Env)>,
}

impl Sim {
    /// A world whose clock starts on 2024-01-01.
    pub fn new(seed: u64) -> Sim {
        Sim::starting_at(seed, START)
    }

    /// A world whose wall clock starts at `start`.
    pub fn starting_at(seed: u64, start: Timestamp) -> Sim {
        let rng = Rng::seeded(seed).child("sim");
        let executor = Executor::new(rng.child("schedule"));
        Sim {
            seed,
            clock: SimClock::new(start),
            rng,
            executor,
            processes: Mutex::default(),
            stall_polls: AtomicU64::new(STALL_POLLS),
        }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The clock of every process.
    pub fn clock(&self) -> &SimClock {
        &self.clock
    }

    /// A random source for what the test itself decides.
    pub fn rng(&self) -> &Rng {
        &self.rng
    }

    /// The process `name`: the running one, else a new incarnation with randomness of its own.
    pub fn env(&self, name: &str) -> Env {
        let mut processes = lock(&self.processes);
        let process = processes.entry(name.to_owned()).or_default();
        if let Some((_, env)) = &process.running {
            return env.clone();
        }
        process.incarnation += 1;
        let rng = self.rng.child("process").child(name).child(&process.incarnation.to_string());
        let spawner = Arc::new(SimProcess {
            id: self.executor.new_process(),
            name: name.into(),
            executor: Arc::downgrade(&self.executor),
        });
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let tasks = Tasks::new(spawner.clone(), clock.clone());
        let env = Env::new(name.into(), clock, rng, tasks);
        process.running = Some((spawner, env.clone()));
        env
    }

    /// Kills the process `name`, if it runs: every task of it is dropped now, none is polled again, and what its `Env` spawns
    /// from now on is dropped at once.
    pub fn kill(&self, name: &str) {
        let running = lock(&self.processes).get_mut(name).and_then(|process| process.running.take());
        let Some((process, _env)) = running else { return };
        drop(self.executor.kill(process.id));
    }

    /// The names of the running processes.
    pub fn processes(&self) -> Vec<String> {
        let processes = lock(&self.processes);
        processes.iter().filter(|(_, process)| process.running.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// Polls one ready task; false when none is ready.
    pub fn step(&self) -> bool {
        match self.executor.pick(false) {
            Some(Picked::Task(task)) => {
                self.executor.poll(task);
                true
            }
            _ => false,
        }
    }

    /// Polls ready tasks until none is ready. Time stands still.
    ///
    /// Panics after a million polls (see [`set_stall_polls`](Self::set_stall_polls)), naming the ready tasks.
    pub fn run_until_stalled(&self) {
        let limit = self.stall_polls.load(Ordering::Relaxed);
        let mut polls = 0;
        while self.step() {
            polls += 1;
            assert!(polls < limit, "livelock: {polls} polls at one time, still ready: {:?}", self.executor.ready());
        }
    }

    /// Runs until stalled, and moves time to every due waiter on the way, until `by` has passed.
    pub fn advance(&self, by: Duration) {
        let target = self.clock.monotonic() + by;
        self.run_until_stalled();
        while self.clock.next_due().is_some_and(|due| due <= target) {
            self.clock.advance_to_next();
            self.run_until_stalled();
        }
        self.clock.advance_until(target);
        self.run_until_stalled();
    }

    /// Drives `future` together with all tasks to its end. When all is stalled, time moves to the next due waiter.
    ///
    /// Panics with the names of the live tasks when nothing is ready and nobody waits for a time (a deadlock), and after ten
    /// million polls, or a million at one time.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let root = Arc::new(Root { ready: AtomicBool::new(true) });
        let waker = Waker::from(root.clone());
        let mut cx = Context::from_waker(&waker);
        let mut future = pin!(future);
        let mut cap = Cap::new(self.stall_polls.load(Ordering::Relaxed));
        loop {
            match self.executor.pick(root.ready.load(Ordering::Acquire)) {
                Some(Picked::Root) => {
                    root.ready.store(false, Ordering::Release);
                    if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
                        return value;
                    }
                }
                Some(Picked::Task(task)) => self.executor.poll(task),
                None if self.clock.advance_to_next() => {}
                None => panic!("deadlock: nothing is ready, nobody waits for a time; live tasks: {:?}", self.live()),
            }
            cap.count(self.clock.monotonic(), self);
        }
    }

    /// The tasks that have not ended, as `process:task`, in the order in which they were spawned.
    pub fn live(&self) -> Vec<String> {
        self.executor.live()
    }

    /// The panics of tasks so far, as `process:task: text`. A test of the whole asserts that there is none.
    pub fn panics(&self) -> Vec<String> {
        self.executor.panics()
    }

    /// Polls of tasks so far.
    pub fn polls(&self) -> u64 {
        self.executor.polls()
    }

    /// Begins to note every poll of a task.
    pub fn record_trace(&self) {
        self.executor.record_trace();
    }

    /// The polls noted since the last call, as `process:task`.
    pub fn take_trace(&self) -> Vec<String> {
        self.executor.take_trace()
    }

    /// Sets how many polls without a move of the clock are taken for a livelock.
    pub fn set_stall_polls(&self, polls: u64) {
        self.stall_polls.store(polls, Ordering::Relaxed);
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let names = self.processes();
        for name in names {
            self.kill(&name);
        }
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim")
            .field("seed", &self.seed)
            .field("clock", &self.clock)
            .field("live", &self.live())
            .finish_non_exhaustive()
    }
}

/// The limits of one `block_on`.
struct Cap {
    stall_polls: u64,
    total: u64,
    at_one_time: u64,
    time: Monotonic,
}

impl Cap {
    fn new(stall_polls: u64) -> Cap {
        Cap { stall_polls, total: 0, at_one_time: 0, time: Monotonic::default() }
    }

    fn count(&mut self, time: Monotonic, sim: &Sim) {
        if time != self.time {
            (self.time, self.at_one_time) = (time, 0);
        }
        self.total += 1;
        self.at_one_time += 1;
        let (total, now) = (self.total, self.at_one_time);
        assert!(now < self.stall_polls, "livelock: {now} polls at one time, still ready: {:?}", sim.executor.ready());
        assert!(total < BLOCK_ON_POLLS, "no end after {total} polls at {:?}; live tasks: {:?}", time.0, sim.live());
    }
}

/// Wakes the future that `block_on` drives.
struct Root {
    ready: AtomicBool,
}

impl Wake for Root {
    fn wake(self: Arc<Self>) {
        self.ready.store(true, Ordering::Release);
    }
}

/// One incarnation of a simulated process.
struct SimProcess {
    id: u64,
    name: Arc<str>,
    executor: Weak<Executor>,
}

impl SimProcess {
    fn label(&self, task: &str) -> String {
        format!("{}:{task}", self.name)
    }
}

impl fmt::Debug for SimProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimProcess").field("name", &self.name).field("id", &self.id).finish_non_exhaustive()
    }
}

impl Spawner for SimProcess {
    fn spawn(&self, name: &Arc<str>, future: BoxFuture<'static, ()>) {
        if let Some(executor) = self.executor.upgrade() {
            executor.spawn(self.id, self.label(name).into(), future);
        }
    }

    fn has_threads(&self) -> bool {
        false
    }

    fn panicked(&self, name: &Arc<str>, text: &str) {
        if let Some(executor) = self.executor.upgrade() {
            executor.panicked(format!("{}: {text}", self.label(name)));
        }
    }
}
