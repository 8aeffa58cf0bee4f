//! A world of simulated processes over one memory store.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_env::{Env, Sim};
use mainstay_memory::Memory;
use mainstay_runtime::{Builder, Engine};
use mainstay_store::{ReadSteps, RecordedStep, StoreClock, WorkflowStore};

/// Simulated time, processes and store.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) memory: Memory,
}

impl World {
    /// A world without seeded trouble.
    pub(crate) fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let memory = Memory::open(sim.env("store"), StoreClock::Manual(sim.clock().clone()));
        Self { sim, memory }
    }

    /// The environment of a process.
    pub(crate) fn env(&self, process: &str) -> Env {
        self.sim.env(process)
    }

    /// A builder for an engine of a process, for the application `shop`.
    pub(crate) fn builder(&self, process: &str) -> Builder {
        Engine::builder(self.memory.attach(self.env(process))).app("shop").executor(process)
    }

    /// Launches what a builder describes.
    pub(crate) fn launch(&self, builder: Builder) -> Engine {
        self.sim.block_on(builder.launch()).expect("launch")
    }

    /// Runs until a future is ready; virtual time passes as it must.
    pub(crate) fn run<F: IntoFuture>(&self, future: F) -> F::Output {
        self.sim.block_on(future.into_future())
    }

    /// The recorded steps of a workflow.
    pub(crate) fn steps(&self, id: &str) -> Vec<RecordedStep> {
        let store = self.memory.attach(self.env("reader"));
        let steps = self.run(store.workflow_steps(ReadSteps::new(id).bytes(u64::MAX))).expect("steps");
        steps.here().to_vec()
    }

    /// Names of the recorded steps of a workflow.
    pub(crate) fn step_names(&self, id: &str) -> Vec<String> {
        self.steps(id).iter().map(|step| step.name.to_string()).collect()
    }

    /// Lets virtual time pass.
    pub(crate) fn pass(&self, by: Duration) {
        self.sim.advance(by);
    }
}

/// Notes what bodies did, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.0.lock().expect("no panic under the lock").push(text.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic under the lock").clone()
    }

    pub(crate) fn count(&self, text: &str) -> usize {
        self.all().iter().filter(|line| *line == text).count()
    }
}
