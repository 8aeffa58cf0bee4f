//! Simulated processes that run programs over one store, and what is done to them.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mainstay_env::{Clock, Env, Monotonic, Sim};
use mainstay_memory::{Memory, Trouble};
use mainstay_runtime::{Ctx, Engine, ErrorKind, Queue};
use mainstay_store::wrap::{Fault, FaultPlan, Faults, Rates, WithFaults};
use mainstay_store::{ExecutorStore, Maintenance, StoreClock, TakeOver, TakenOver, Tick, WorkflowId};

use super::body::{self, JOBS, NARROW, Probe};
use super::ledger::{Amidst, Ledger, Run};
use super::link::{Calls, Linked};
use super::program::Program;

/// Id of the workflow that all others come from.
pub(crate) const ROOT: &str = "w";
const APP: &str = "shop";
/// Pause of a process before it tries again to launch, to start or to wait.
const PAUSE: Duration = Duration::from_millis(500);
/// What a shutdown may take beyond its limit, by its documentation.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// Polls without a move of the clock after which something runs in circles.
const LIVELOCK: u64 = 200_000;

/// What all processes have in common.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) trouble: Trouble,
    pub(crate) faults: Rates,
    pub(crate) max_running: u32,
    /// The root is enqueued, not started by its process.
    pub(crate) by_queue: bool,
}

impl Setting {
    /// One without any trouble.
    pub(crate) fn calm() -> Self {
        Self { trouble: Trouble::none(), faults: Rates::default(), max_running: 1024, by_queue: false }
    }
}

/// A process that is up.
struct Up {
    run: Run,
    faults: Faults,
    engine: Arc<Mutex<Option<Engine>>>,
}

/// A world of processes.
pub(crate) struct Fleet {
    pub(crate) sim: Sim,
    pub(crate) memory: Memory,
    pub(crate) ledger: Ledger,
    program: Program,
    setting: Setting,
    processes: Vec<(String, u32, Option<Up>)>,
    /// Polls since the clock last moved.
    polls: u64,
    /// Faults are over: processes that are launched meet none.
    calm: bool,
}

impl Fleet {
    /// Processes that are not up yet, for one program.
    pub(crate) fn new(seed: u64, processes: usize, program: &Program, setting: Setting) -> Self {
        let sim = Sim::new(seed);
        let clock = StoreClock::Manual(sim.clock().clone());
        // The links yield instead, so that the ledger hears of a write before anything else happens.
        let trouble = Trouble { yields: false, ..setting.trouble };
        let memory = Memory::troubled(sim.env("store"), clock, seed, trouble);
        let processes = (0..processes).map(|number| (format!("p{number}"), 0, None)).collect();
        let (ledger, program) = (Ledger::default(), program.clone());
        Self { sim, memory, ledger, program, setting, processes, polls: 0, calm: false }
    }

    pub(crate) fn now(&self) -> Monotonic {
        self.sim.clock().monotonic()
    }

    /// Starts a process, unless it is up.
    pub(crate) fn launch(&mut self, process: usize) {
        let (name, launches, up) = &mut self.processes[process];
        if up.is_some() {
            return;
        }
        *launches += 1;
        let run: Run = format!("{name}#{launches}").into();
        let env = self.sim.env(name);
        let (ledger, calls) = (self.ledger.clone(), Calls::default());
        let linked = Linked { inner: self.memory.attach(env.clone()), run: run.clone(), ledger, calls };
        let rates = if self.calm { Rates::default() } else { self.setting.faults };
        let plan = FaultPlan::new(env.rng().child("faults").u64()).everywhere(rates);
        let (store, faults) = WithFaults::new(Arc::new(linked), plan);
        let engine = Arc::default();
        let main = Main {
            env: env.clone(),
            store,
            name: name.clone(),
            probe: Probe { env: env.clone(), run: run.clone(), ledger: self.ledger.clone() },
            setting: self.setting.clone(),
            program: (process == 0).then(|| self.program.clone()),
            engine: Arc::clone(&engine),
        };
        drop(env.tasks().spawn("main", main.run()));
        *up = Some(Up { run, faults, engine });
    }

    /// Ends a process between two polls; says whether it was up.
    pub(crate) fn kill(&mut self, process: usize) -> bool {
        let Some(up) = self.processes[process].2.as_ref() else { return false };
        let amidst = self.ledger.all_amidst(&up.run);
        let mut state = self.ledger.lock();
        state.met.add("kill", 1);
        for what in Amidst::ALL.into_iter().filter(|what| amidst.contains(what)) {
            state.met.add(what.label(), 1);
        }
        drop(state);
        self.end(process)
    }

    fn end(&mut self, process: usize) -> bool {
        let Some(up) = self.processes[process].2.take() else { return false };
        self.note_faults(&up);
        // The engine goes with its process: nothing of it may be dropped later.
        drop(up);
        self.sim.kill(&self.processes[process].0);
        true
    }

    fn note_faults(&self, up: &Up) {
        let labels = ["fault: before", "fault: after", "fault: delay", "fault: hang"];
        let mut state = self.ledger.lock();
        for (label, fault) in labels.into_iter().zip(Fault::ALL) {
            state.met.add(label, up.faults.total(fault));
        }
    }

    /// Adds what the processes that are up have met to the statistics.
    pub(crate) fn note_all(&self) {
        for up in self.processes.iter().filter_map(|(_, _, up)| up.as_ref()) {
            self.note_faults(up);
            let engine = up.engine.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let stats = engine.map(|engine| engine.stats()).unwrap_or_default();
            let mut state = self.ledger.lock();
            state.met.add("bodies evicted", stats.evicted);
            state.met.add("rows given back", stats.given_back);
            state.met.add("leases renewed", stats.renewals);
        }
    }

    /// Whether no process is up.
    pub(crate) fn is_down(&self) -> bool {
        self.processes.iter().all(|(_, _, up)| up.is_none())
    }

    /// The process of an incarnation.
    pub(crate) fn process_of(&self, run: &Run) -> Option<usize> {
        self.processes.iter().position(|(_, _, up)| up.as_ref().is_some_and(|up| up.run == *run))
    }

    /// Takes the lease of a process that lives; says whether there was one.
    pub(crate) fn lose_lease(&mut self, process: usize) -> bool {
        let Some(run) = self.processes[process].2.as_ref().map(|up| up.run.clone()) else { return false };
        let ticked = instantly(self.memory.tick(Tick::new(APP))).expect("a tick");
        self.ledger.ended(&ticked.cancelled);
        let lease = ticked.leases.into_iter().find(|lease| self.ledger.run_of(&lease.executor).as_ref() == Some(&run));
        let Some(lease) = lease else { return false };
        let take_over = TakeOver::new(lease.executor, lease.beat);
        let Ok(TakenOver::Rows { ids, .. }) = instantly(self.memory.lease_take_over(take_over)) else { return false };
        self.ledger.taken(&ids);
        self.ledger.note("lease of a living process taken");
        true
    }

    /// Polls one task, or moves the clock to where one is due; says whether it polled.
    pub(crate) fn step(&mut self) -> bool {
        if self.sim.step() {
            self.polls += 1;
            assert!(self.polls < LIVELOCK, "livelock: {:?}", self.sim.live());
            return true;
        }
        self.polls = 0;
        assert!(self.sim.clock().advance_to_next(), "deadlock: nobody waits for a time: {:?}", self.sim.live());
        false
    }

    /// Every workflow has ended, the root among them.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.ledger.lock();
        state.open.is_empty() && state.ended.contains(&WorkflowId::from(ROOT))
    }

    /// Every process is up.
    pub(crate) fn all_up(&mut self) {
        for process in 0..self.processes.len() {
            self.launch(process);
        }
    }

    /// Faults are over.
    pub(crate) fn calm_down(&mut self) {
        self.calm = true;
        for up in self.processes.iter().filter_map(|(_, _, up)| up.as_ref()) {
            up.faults.stop();
        }
    }

    /// Shuts an engine down, then ends its process; says whether there was one.
    pub(crate) fn shut_down(&mut self, process: usize, limit: Duration) -> bool {
        let Some(up) = self.processes[process].2.as_ref() else { return false };
        let (run, engine) = (up.run.clone(), up.engine.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let Some(engine) = engine else { return false };
        let env = self.sim.env(&self.processes[process].0);
        let shutdown = env.tasks().spawn("shutdown", async move { engine.shutdown(limit).await });
        let begun = self.now();
        while !shutdown.is_finished() {
            self.step();
            if self.now().since(begun) > limit + SHUTDOWN_GRACE {
                self.ledger.violation(format!("{run:?} is not shut down {SHUTDOWN_GRACE:?} after its limit"));
                break;
            }
        }
        let left: Vec<_> = self.ledger.lock().alive.values().filter(|who| who.run == run).cloned().collect();
        if !left.is_empty() {
            self.ledger.violation(format!("after a shutdown there runs {left:?}"));
        }
        self.ledger.note("shutdown");
        drop(env);
        self.end(process)
    }

    /// Runs until all is done, at most for so long; says how long it took, and what is left if it took longer.
    pub(crate) fn run(&mut self, limit: Duration) -> Result<Duration, String> {
        let begun = self.now();
        while !self.is_done() {
            if self.now().since(begun) > limit {
                let open = self.ledger.lock().open.clone();
                return Err(format!("after {limit:?} these have not ended: {open:?}; live: {:?}", self.sim.live()));
            }
            self.step();
        }
        Ok(self.now().since(begun))
    }

    /// Lets time pass.
    pub(crate) fn rest(&mut self, time: Duration) {
        let until = self.now() + time;
        while self.now() < until {
            self.step();
        }
    }

    /// What still runs, and who has not been told of the root's end.
    pub(crate) fn left(&self) -> Vec<String> {
        let state = self.ledger.lock();
        let mut left: Vec<String> = state.alive.values().map(|who| format!("{who:?} is still running")).collect();
        let tasks = self.sim.live();
        left.extend(tasks.into_iter().filter(|task| task.contains(&format!(":{}/", body::NAME))));
        for up in self.processes.iter().filter_map(|(_, _, up)| up.as_ref()) {
            if !state.answers.contains_key(&up.run) {
                left.push(format!("{:?} was not told how {ROOT} ended", up.run));
            }
            let engine = up.engine.lock().unwrap_or_else(PoisonError::into_inner);
            let stats = engine.as_ref().map(Engine::stats).unwrap_or_default();
            if stats.running > 0 {
                left.push(format!("{:?} counts {} running, {} active", up.run, stats.running, stats.active));
            }
        }
        left.extend(self.sim.panics());
        left
    }
}

/// What a process does: it launches, starts the root if that is its part, and waits for it.
struct Main {
    env: Env,
    store: Arc<dyn mainstay_store::Store>,
    name: String,
    probe: Probe,
    setting: Setting,
    program: Option<Program>,
    engine: Arc<Mutex<Option<Engine>>>,
}

impl Main {
    async fn run(self) {
        let engine = loop {
            let probe = self.probe.clone();
            let builder = Engine::builder(self.store.clone())
                .app(APP)
                .executor(self.name.as_str())
                .max_running(self.setting.max_running)
                .queue(Queue::new(JOBS))
                .queue(Queue::new(NARROW).concurrency(3).worker_concurrency(2))
                .function(body::NAME, move |ctx: Ctx, program: Program| body::body(probe.clone(), ctx, program));
            match builder.launch().await {
                Ok(engine) => break engine,
                Err(_) => self.env.sleep(PAUSE).await,
            }
        };
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine.clone());
        while let Some(program) = &self.program {
            let start = engine.start(body::call(program)).id(ROOT);
            let start = if self.setting.by_queue { start.queue(JOBS) } else { start };
            match start.await {
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::Unavailable => self.env.sleep(PAUSE).await,
                Err(error) if error.kind() == ErrorKind::Stopped => return,
                Err(error) => return self.probe.ledger.violation(format!("the root cannot be started: {error:?}")),
            }
        }
        let handle = engine.handle_by_id::<body::Lines>(ROOT);
        loop {
            let told = match handle.result().await {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.env.sleep(PAUSE).await;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Stopped => return,
                Ok(lines) => format!("{lines:?}"),
                Err(error) => format!("{}: {} {:?}", error.name(), error.message(), error.data()),
            };
            self.probe.ledger.lock().answers.insert(self.probe.run.clone(), told);
            return;
        }
    }
}

/// The result of a call that never waits.
pub(crate) fn instantly<T>(call: impl Future<Output = T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a call of a store without trouble waits"),
    }
}
