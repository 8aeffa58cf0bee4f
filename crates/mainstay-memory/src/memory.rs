//! The handle: one process's view of a state, and the frame in which every operation runs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mainstay_env::SimClock;
use mainstay_store::{
    AdminStore, Capabilities, Capability, Env, ErrorKind, Result, ScheduleStore, SignalStore, Store, StoreClock,
    StoreError, Timestamp, Wakeup, Wakeups,
};

use crate::operation::Operation;
use crate::state::State;
use crate::trouble::{Maker, Trouble};

/// A store in memory. Clones are one process; [`Memory::attach`] makes another.
///
/// ```
/// use mainstay_env::Sim;
/// use mainstay_memory::Memory;
/// use mainstay_store::{Place, Submit, WriteExt};
/// let sim = Sim::new(1);
/// let memory = Memory::strict(sim.env("shop"), 1, sim.clock().clone());
/// let submit = Submit::new("order-42", "checkout", "token-1", Place::queue("orders"));
/// assert!(sim.block_on(memory.submit(submit)).is_ok_and(|reply| reply.is_done()));
/// ```
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
    process: Arc<Process>,
}

/// What all processes have in common.
struct Shared {
    state: Mutex<State>,
    processes: Mutex<Processes>,
    seed: u64,
}

/// Every process that is attached; one that is gone has no hints to hear.
#[derive(Default)]
struct Processes {
    attached: u64,
    alive: Vec<Weak<Process>>,
}

/// What one process has of its own.
struct Process {
    env: Env,
    clock: StoreClock,
    wakeups: Wakeups,
    maker: Maker,
}

impl Memory {
    /// A new, empty store without seeded trouble. It keeps no history.
    #[must_use]
    pub fn open(env: Env, clock: StoreClock) -> Self {
        Self::new(env, clock, 0, Trouble::none(), State::new(false))
    }

    /// A new, empty store for tests, with the trouble of [`Trouble::default`] drawn from `seed`; time is `clock`'s alone.
    #[must_use]
    pub fn strict(env: Env, seed: u64, clock: SimClock) -> Self {
        Self::troubled(env, StoreClock::Manual(clock), seed, Trouble::default())
    }

    /// A new, empty store for tests with other trouble. It keeps a history.
    #[must_use]
    pub fn troubled(env: Env, clock: StoreClock, seed: u64, trouble: Trouble) -> Self {
        Self::new(env, clock, seed, trouble, State::new(true))
    }

    /// The same state as another process has it: in its own environment and with its own hub, which hears every hint.
    ///
    /// With `StoreClock::Server` it reads its own environment's clock.
    #[must_use]
    pub fn attach(&self, env: Env) -> Self {
        let (clock, settings) = (self.process.clock.clone(), self.process.maker.settings());
        Self { shared: self.shared.clone(), process: self.shared.process(env, clock, settings) }
    }

    fn new(env: Env, clock: StoreClock, seed: u64, trouble: Trouble, state: State) -> Self {
        let shared = Arc::new(Shared { state: Mutex::new(state), processes: Mutex::default(), seed });
        let process = shared.process(env, clock, trouble);
        Self { shared, process }
    }

    /// Runs one operation: pauses if trouble says so, locks, reads the clock once, works, and hints after the lock.
    pub(crate) async fn run<T>(
        &self,
        op: &'static str,
        work: impl FnOnce(&mut Operation<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        self.process.maker.pause().await;
        let result = self.run_now(op, work);
        self.process.maker.pause().await;
        result
    }

    fn run_now<T>(&self, op: &'static str, work: impl FnOnce(&mut Operation<'_>) -> Result<T>) -> Result<T> {
        let (result, hints) = {
            let mut state = self.shared.state.lock().map_err(|_| poisoned(op))?;
            let failure = state.damage.of(op);
            if let Some(error) = failure.clone().filter(|error| !error.kind().outcome_unknown()) {
                return Err(error);
            }
            let now = self.clock_reads().max(state.latest);
            let mut operation = Operation::new(&mut state, now);
            let result = work(&mut operation).and_then(|answer| failure.map_or(Ok(answer), Err));
            (result, operation.into_hints())
        };
        self.shared.publish(hints);
        result
    }

    /// Whether this claim is to be answered `Contended`.
    pub(crate) fn misses_claim(&self) -> bool {
        self.process.maker.misses_claim()
    }

    /// The state as it is, for what no clock and no hint belongs to.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock_reads(&self) -> Timestamp {
        match &self.process.clock {
            StoreClock::Server => self.process.env.now(),
            StoreClock::Manual(clock) => mainstay_env::Clock::now(clock),
        }
    }
}

/// A panic inside an operation is a bug, and the state behind it is not to be trusted.
fn poisoned(op: &'static str) -> StoreError {
    StoreError::new(ErrorKind::Bug, op).with_source("an earlier operation panicked")
}

impl Shared {
    fn process(&self, env: Env, clock: StoreClock, settings: Trouble) -> Arc<Process> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let maker = Maker::new(settings, self.seed, processes.attached);
        let process = Arc::new(Process { env, clock, wakeups: Wakeups::new(), maker });
        processes.attached += 1;
        processes.alive.push(Arc::downgrade(&process));
        process
    }

    fn publish(&self, hints: Vec<Wakeup>) {
        let hints: BTreeSet<Wakeup> = hints.into_iter().collect();
        if hints.is_empty() {
            return;
        }
        let hearers: Vec<Arc<Process>> = {
            let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
            processes.alive.retain(|process| process.strong_count() > 0);
            processes.alive.iter().filter_map(Weak::upgrade).collect()
        };
        for hint in &hints {
            for process in &hearers {
                process.maker.publish(&process.wakeups, hint);
            }
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process { env, clock, maker, .. } = &*self.process;
        f.debug_struct("Memory")
            .field("env", env)
            .field("clock", clock)
            .field("trouble", &maker.settings())
            .finish_non_exhaustive()
    }
}

impl SignalStore for Memory {}

impl ScheduleStore for Memory {}

impl AdminStore for Memory {}

impl Store for Memory {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(Capability::Shared)
    }

    fn env(&self) -> &Env {
        &self.process.env
    }

    fn wakeups(&self) -> &Wakeups {
        &self.process.wakeups
    }
}
