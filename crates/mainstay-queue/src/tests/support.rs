//! A process of the simulation: a memory store, a counting wrapper around it, and a launcher whose bodies are told when to end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_env::{Sim, Task};
use mainstay_memory::{Memory, Trouble};
use mainstay_store::*;

use crate::{Config, Dispatch, Launcher, Work, renewal};

/// What happens to calls of one method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It never answers.
    Hang,
    /// It fails without having been executed.
    Fail,
    /// It is executed, and its answer is lost.
    Lose,
    /// It is executed at once and answered two seconds later.
    Late,
    /// It panics.
    Panic,
}

/// Counts calls by method and applies faults to them.
#[derive(Debug)]
pub(super) struct Probe {
    inner: Memory,
    pub(super) calls: Mutex<BTreeMap<&'static str, u64>>,
    pub(super) faults: Mutex<BTreeMap<&'static str, (Fault, u32)>>,
    pub(super) claims: Mutex<Vec<Claim>>,
}

impl Probe {
    pub(super) fn fault(&self, op: &'static str, fault: Fault, times: u32) {
        self.faults.lock().unwrap().insert(op, (fault, times));
    }

    pub(super) fn heal(&self) {
        self.faults.lock().unwrap().clear();
    }

    pub(super) fn count(&self, op: &str) -> u64 {
        self.calls.lock().unwrap().get(op).copied().unwrap_or(0)
    }

    pub(super) fn total(&self) -> u64 {
        self.calls.lock().unwrap().values().sum()
    }

    async fn run<T>(&self, op: &'static str, call: impl Future<Output = Result<T>>) -> Result<T> {
        *self.calls.lock().unwrap().entry(op).or_default() += 1;
        let fault = {
            let mut faults = self.faults.lock().unwrap();
            let fault = faults.get_mut(op).filter(|(_, left)| *left > 0);
            fault.map(|(fault, left)| {
                *left -= 1;
                *fault
            })
        };
        match fault {
            None => call.await,
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Fail) => Err(StoreError::new(ErrorKind::Unavailable, op)),
            Some(Fault::Lose) => {
                call.await?;
                Err(StoreError::new(ErrorKind::Unavailable, op))
            }
            Some(Fault::Late) => {
                let answer = call.await;
                self.env().sleep(Duration::from_secs(2)).await;
                answer
            }
            Some(Fault::Panic) => panic!("a call of {op} panics on purpose"),
        }
    }
}

#[async_trait]
impl WriteStore for Probe {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        self.run("commit", self.inner.commit(units)).await
    }
}

#[async_trait]
impl QueueStore for Probe {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        self.claims.lock().unwrap().push(request.clone());
        self.run("queue_claim", self.inner.queue_claim(request)).await
    }
    async fn queue_probe(&self, request: mainstay_store::Probe) -> Result<Probed> {
        self.run("queue_probe", self.inner.queue_probe(request)).await
    }
    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        self.run("queue_audit", self.inner.queue_audit(request)).await
    }
}

mainstay_store::pass_on! { Probe => inner: WorkflowStore, Registry, Store }
mainstay_store::pass_on! { Probe => inner via run: ExecutorStore }

#[async_trait]
impl Maintenance for Probe {
    async fn tick(&self, request: Tick) -> Result<Ticked> {
        self.run("tick", self.inner.tick(request)).await
    }
    async fn collect(&self, request: Collect) -> Result<Collected> {
        self.inner.collect(request).await
    }
}

impl SignalStore for Probe {}
impl ScheduleStore for Probe {}
impl AdminStore for Probe {}

/// Bodies that take so long and then succeed; they live as tasks of the process.
#[derive(Debug)]
pub(super) struct Bodies {
    store: Arc<Probe>,
    takes: Duration,
    live: Mutex<BTreeMap<WorkflowId, Task<()>>>,
    pub(super) started: Mutex<Vec<WorkflowId>>,
    pub(super) panics: AtomicBool,
    pub(super) most: Mutex<usize>,
    /// The engine whose first lease is lost in the middle of a launch.
    pub(super) loses: OnceLock<Dispatch>,
}

impl Launcher for Bodies {
    fn registered(&self) -> Arc<[Registered]> {
        [Registered::new("job")].into()
    }

    fn launch(&self, work: Work) {
        let id = work.claimed.row.id.clone();
        self.started.lock().unwrap().push(id.clone());
        assert!(!self.panics.load(Ordering::Relaxed), "a launch panics on purpose");
        if let Some(dispatch) = self.loses.get() {
            renewal::lose(&dispatch.shared, 0);
        }
        let (store, takes) = (self.store.clone(), self.takes);
        let body = async move {
            let _slot = work.slot;
            store.env().sleep(takes).await;
            while store.inner.settle(&work.claimed.fence, Outcome::Success("1".into())).await.is_err() {
                store.env().sleep(Duration::from_millis(10)).await;
            }
        };
        let task = self.store.env().tasks().spawn(format!("body/{id}"), body);
        let mut live = self.live.lock().unwrap();
        live.retain(|_, task| !task.is_finished());
        assert!(live.insert(id, task).is_none(), "two bodies of one workflow");
        let mut most = self.most.lock().unwrap();
        *most = (*most).max(live.len());
    }

    fn evict(&self, id: &WorkflowId) {
        if let Some(task) = self.live.lock().unwrap().remove(id) {
            task.abort();
        }
    }
}

/// One process with its engine.
pub(super) struct Process {
    pub(super) memory: Memory,
    pub(super) probe: Arc<Probe>,
    pub(super) bodies: Arc<Bodies>,
    pub(super) dispatch: Dispatch,
}

/// A store without troubles of its own.
pub(super) fn calm(sim: &Sim, name: &str) -> Memory {
    Memory::troubled(sim.env(name), StoreClock::Manual(sim.clock().clone()), sim.seed(), Trouble::none())
}

/// Launches an engine whose bodies take so long.
pub(super) fn launch(sim: &Sim, memory: Memory, takes: Duration, config: Config) -> Process {
    let probe = Arc::new(Probe {
        inner: memory.clone(),
        calls: Mutex::default(),
        faults: Mutex::default(),
        claims: Mutex::default(),
    });
    let bodies = Arc::new(Bodies {
        store: probe.clone(),
        takes,
        live: Mutex::default(),
        started: Mutex::default(),
        panics: AtomicBool::new(false),
        most: Mutex::default(),
        loses: OnceLock::new(),
    });
    let launched = sim.block_on(Dispatch::launch(probe.clone(), bodies.clone(), config));
    Process { memory, probe, bodies, dispatch: launched.expect("the first beat is answered") }
}

/// The settings that the tests start from.
pub(super) fn config() -> Config {
    Config::new("shop", "shop@1", "web")
}

impl Process {
    pub(super) fn register(&self, sim: &Sim, queue: &str, limits: Limits) {
        let request = RegisterQueue::new(queue, "shop").limits(limits);
        sim.block_on(self.memory.queue_register(request)).expect("the queue is valid");
    }

    pub(super) fn enqueue(&self, sim: &Sim, queue: &str, ids: impl IntoIterator<Item = String>) {
        for id in ids {
            let token = format!("t-{id}");
            let submit = Submit::new(id, "job", token, Place::queue(queue)).app("shop");
            assert!(sim.block_on(self.memory.submit(submit)).expect("submitted").is_done());
        }
    }

    pub(super) fn status(&self, sim: &Sim, id: &str) -> Status {
        let rows = sim.block_on(self.memory.workflow_rows(&[id.into()])).expect("read");
        rows[0].as_ref().expect("the row exists").status
    }

    pub(super) fn started(&self) -> Vec<WorkflowId> {
        self.bodies.started.lock().unwrap().clone()
    }
}

/// Ids `prefix-00` and so on.
pub(super) fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|index| format!("{prefix}-{index:03}")).collect()
}
