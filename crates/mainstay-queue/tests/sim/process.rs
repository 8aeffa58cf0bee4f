//! One simulated process: its engine, its launcher, its line to the store, and the faults on it.

use crate::bodies::FakeLauncher;
use crate::link::{Linked, Switch};
use crate::plan::{Call, Fail, MAX_ATTEMPTS, Member};
use crate::seen::{Run, Seen};
use mainstay_env::{Env, Sim};
use mainstay_memory::Memory;
use mainstay_queue::{Config, Dispatch};
use mainstay_store::wrap::{Fault, FaultPlan, Faults, Method, Rates, with_faults};
use mainstay_store::{Registered, Store};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pause between two tries to launch an engine.
const LAUNCH_PAUSE: Duration = Duration::from_millis(500);

/// A process and the incarnation of it that is up.
#[derive(Debug)]
pub(crate) struct Process {
    /// The simulation's name for it.
    pub(crate) name: String,
    /// What its executors are called; two processes may share it.
    pub(crate) alias: String,
    pub(crate) member: Member,
    pub(crate) launches: u32,
    pub(crate) up: Option<Up>,
}

/// A running incarnation.
#[derive(Clone, Debug)]
pub(crate) struct Up {
    pub(crate) run: Run,
    pub(crate) env: Env,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) launcher: Arc<FakeLauncher>,
    pub(crate) faults: Faults,
    pub(crate) switch: Switch,
    dispatch: Arc<Mutex<Option<Dispatch>>>,
}

impl Up {
    /// The engine, once it is launched.
    pub(crate) fn dispatch(&self) -> Option<Dispatch> {
        self.dispatch.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes one coming call fail.
    pub(crate) fn fail_next(&self, call: Call, fail: Fail) {
        let method = match call {
            Call::Claim => Method::QueueClaim,
            Call::Tick => Method::Tick,
            Call::Commit => Method::Commit,
            Call::Probe => Method::QueueProbe,
            Call::Audit => Method::QueueAudit,
            Call::TakeOver => Method::LeaseTakeOver,
        };
        let fault = match fail {
            Fail::Before => Fault::Before,
            Fail::LoseAck => Fault::After,
            Fail::Delay => Fault::Delay,
            Fail::Hang => Fault::Hang,
        };
        self.faults.next(method, fault);
    }
}

impl Process {
    pub(crate) fn new(name: impl Into<String>, member: Member) -> Process {
        let name = name.into();
        Process { alias: name.clone(), name, member, launches: 0, up: None }
    }

    /// The engine's settings.
    pub(crate) fn config(&self) -> Config {
        Config::new(self.member.app(), self.member.version(), self.alias.clone()).max_running(self.member.max_running)
    }

    /// Starts the process: its engine is launched by a task of its own, which tries again while the store is away.
    pub(crate) fn start_with(&mut self, sim: &Sim, memory: &Memory, seen: &Seen, config: Config) {
        self.launches += 1;
        let run = Run(format!("{}#{}", self.name, self.launches).into());
        let env = sim.env(&self.name);
        let switch = Switch::default();
        let linked = Linked {
            inner: Arc::new(memory.attach(env.clone())),
            switch: switch.clone(),
            run: run.clone(),
            seen: seen.clone(),
            ttl: config.ttl,
        };
        let rates = Rates::each(f64::from(self.member.faults) / 100.0);
        // A hang costs 30 s of virtual time, so that it is rarer than the others.
        let rates = Rates { hang: rates.hang / 20.0, ..rates };
        // An audit rests a hundred times what it took: longer delays would only stretch the drain.
        let (shortest, longest) = (Duration::from_millis(1), Duration::from_millis(100));
        let seed = env.rng().child("faults").u64();
        let plan = FaultPlan::new(seed).everywhere(rates).delay(shortest, longest);
        let (store, faults) = with_faults(Arc::new(linked), plan);
        let names = self.member.knows().map(registered).collect();
        let launcher = Arc::new(FakeLauncher::new(run.clone(), store.clone(), seen.clone(), names));
        let dispatch = Arc::new(Mutex::new(None));
        let up = Up { run, env: env.clone(), store, launcher, faults, switch, dispatch };
        self.up = Some(up.clone());
        drop(env.tasks().spawn("main", async move { launch(up, config).await }));
    }
}

async fn launch(up: Up, config: Config) {
    loop {
        match Dispatch::launch(up.store.clone(), up.launcher.clone(), config.clone()).await {
            Ok(dispatch) => {
                *up.dispatch.lock().unwrap_or_else(PoisonError::into_inner) = Some(dispatch);
                return;
            }
            Err(_) => up.env.sleep(LAUNCH_PAUSE).await,
        }
    }
}

fn registered(name: mainstay_store::WorkflowName) -> Registered {
    Registered { max_attempts: MAX_ATTEMPTS, ..Registered::new(name) }
}
