//! One simulated process: a memory store behind a script that says what happens to each commit, and a recorder over it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_env::{Env, Sim};
use mainstay_memory::Memory;
use mainstay_store::*;

use super::super::{Answer, Patience, Recorder};

/// What happens to one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It is executed.
    Pass,
    /// It fails with this kind and is not executed.
    Fail(ErrorKind),
    /// It is executed and then fails with this kind.
    Lose(ErrorKind),
    /// It never answers.
    Hang,
    /// It panics.
    Panic,
    /// It is executed, and an answer is missing.
    Miscount,
}

type Script = Box<dyn FnMut(&[Unit]) -> Act + Send>;

/// The store under the recorder.
pub(super) struct Scripted {
    inner: Memory,
    env: Env,
    script: Mutex<Script>,
    /// Every batch as it came, as labels of its units.
    pub(super) batches: Mutex<Vec<Vec<String>>>,
    /// Labels of the units that were written, in order.
    pub(super) written: Mutex<Vec<String>>,
    pub(super) commits: AtomicUsize,
    /// Counts commits and notes no labels, for a measurement.
    pub(super) counts_only: AtomicBool,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").finish_non_exhaustive()
    }
}

/// Names a unit: the workflow and the position of its first step, its outcome, or the workflow it submits.
pub(super) fn label(unit: &Unit) -> String {
    let id = unit.fence.as_ref().map_or("", |fence| fence.workflow().as_str());
    match (unit.steps.first(), unit.effects.first()) {
        (Some(step), _) => format!("{id}/{}", step.position),
        (None, Some(Effect::Submit(submit))) => format!("submit {}", submit.id),
        (None, Some(Effect::Rewind { id, .. })) => format!("rewind {id}"),
        _ => format!("{id}/end"),
    }
}

impl Scripted {
    pub(super) fn new(inner: Memory, env: Env) -> Arc<Self> {
        let script: Script = Box::new(|_| Act::Pass);
        let (batches, written) = (Mutex::default(), Mutex::default());
        let (commits, counts_only) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { inner, env, script: Mutex::new(script), batches, written, commits, counts_only })
    }

    pub(super) fn script(&self, script: impl FnMut(&[Unit]) -> Act + Send + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    pub(super) fn heal(&self) {
        self.script(|_| Act::Pass);
    }

    pub(super) fn batches(&self) -> Vec<Vec<String>> {
        self.batches.lock().unwrap().clone()
    }

    pub(super) fn written(&self) -> Vec<String> {
        self.written.lock().unwrap().clone()
    }

    async fn execute(&self, units: &[Unit]) -> Result<Committed> {
        let committed = self.inner.commit(units).await?;
        let done =
            units.iter().zip(&committed.units).filter(|(_, reply)| matches!(reply, Ok(reply) if reply.is_done()));
        self.written.lock().unwrap().extend(done.map(|(unit, _)| label(unit)));
        Ok(committed)
    }
}

impl Store for Scripted {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn env(&self) -> &Env {
        &self.env
    }
    fn wakeups(&self) -> &Wakeups {
        self.inner.wakeups()
    }
}

#[async_trait]
impl WriteStore for Scripted {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        if self.counts_only.load(Ordering::Relaxed) {
            return self.inner.commit(units).await;
        }
        self.batches.lock().unwrap().push(units.iter().map(label).collect());
        let act = (self.script.lock().unwrap())(units);
        match act {
            Act::Pass => self.execute(units).await,
            Act::Fail(kind) => Err(StoreError::new(kind, "commit").with_source("scripted")),
            Act::Lose(kind) => {
                self.execute(units).await?;
                Err(StoreError::new(kind, "commit").with_source("scripted"))
            }
            Act::Hang => std::future::pending().await,
            Act::Panic => panic!("a commit panics on purpose"),
            Act::Miscount => {
                let mut committed = self.execute(units).await?;
                committed.units.pop();
                Ok(committed)
            }
        }
    }
}

/// Traits that no recorder needs. The attribute stands inside, because it must see the methods.
macro_rules! refused {
    ($($trait:ident { $($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)* })*) => {
        $(#[async_trait]
        impl $trait for Scripted {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$answer> {
                $(let _ = $arg;)*
                Err(StoreError::unsupported(stringify!($name), "a recorder only commits"))
            })*
        })*
    };
}

refused! {
    WorkflowStore {
        workflow_standing(ids: &[WorkflowId]) -> Vec<Standing>;
        workflow_rows(ids: &[WorkflowId]) -> Vec<Option<WorkflowRow>>;
        workflow_steps(request: ReadSteps) -> Steps;
        workflow_input(id: &WorkflowId) -> Option<Payload>;
        workflow_holder(queue: &QueueName, key: &DedupKey) -> Option<WorkflowId>;
    }
    QueueStore {
        queue_claim(request: Claim) -> Claimed;
        queue_probe(request: Probe) -> Probed;
        queue_audit(request: Audit) -> Audited;
    }
    Registry {
        queue_register(request: RegisterQueue) -> QueueReply;
        queue_update(request: UpdateQueue) -> QueueReply;
        queue_delete(app: &AppName, name: &QueueName) -> bool;
        queue_list(app: &AppName) -> Vec<Queue>;
        version_register(app: &AppName, version: &VersionName) -> VersionReply;
        version_promote(app: &AppName, version: &VersionName) -> VersionReply;
        version_list(app: &AppName) -> Vec<Version>;
    }
    ExecutorStore {
        lease_beat(request: Beat) -> Beaten;
        lease_list(app: &AppName) -> Leases;
        lease_take_over(request: TakeOver) -> TakenOver;
    }
    Maintenance {
        tick(request: Tick) -> Ticked;
        collect(request: Collect) -> Collected;
    }
}

impl SignalStore for Scripted {}
impl ScheduleStore for Scripted {}
impl AdminStore for Scripted {}

/// What a unit was answered; the order of the list is that of the answers.
pub(super) type Heard = Arc<Mutex<Vec<(String, std::result::Result<Answer, StoreError>)>>>;

/// A process with a recorder.
pub(super) struct World {
    pub(super) sim: Sim,
    pub(super) memory: Memory,
    pub(super) store: Arc<Scripted>,
    pub(super) recorder: Recorder,
    pub(super) heard: Heard,
}

impl World {
    /// One lane over the scripted store itself: what it answers is what the lane sees.
    pub(super) fn new(seed: u64) -> Self {
        Self::with(seed, 1, |store| store)
    }

    pub(super) fn with(seed: u64, lanes: usize, wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>) -> Self {
        let sim = Sim::new(seed);
        let memory = Memory::strict(sim.env("shop"), seed, sim.clock().clone());
        sim.block_on(memory.lease_beat(Beat::new("web~1", "shop", 1_u64))).expect("a first beat");
        let env = sim.env("shop");
        let store = Scripted::new(memory.clone(), env.clone());
        let recorder = Recorder::start(wrap(store.clone()), &env.tasks().group("engine"), lanes);
        Self { sim, memory, store, recorder, heard: Heard::default() }
    }

    /// A workflow that runs here.
    pub(super) fn begin(&self, id: &str) -> Fence {
        let submit = Submit::new(id, "job", format!("t-{id}"), Place::Run("web~1".into())).app("shop");
        let reply = self.sim.block_on(self.memory.submit(submit)).expect("submitted");
        let UnitReply::Done { effects } = reply else { panic!("{reply:?}") };
        let [EffectReply::Created(created)] = &effects[..] else { panic!("{effects:?}") };
        created.fence.clone().expect("it runs at once")
    }

    /// Sends a unit; its answer goes to `heard`.
    pub(super) fn send(&self, id: &str, unit: Unit, patience: Patience) {
        let (heard, label) = (self.heard.clone(), label(&unit));
        let done = Box::new(move |answer| heard.lock().unwrap().push((label, answer)));
        self.recorder.send(&id.into(), unit, patience, done);
    }

    /// Sends a step of an execution.
    pub(super) fn step(&self, fence: &Fence, position: i32) {
        self.send(fence.workflow().as_str(), step(fence, position), Patience::Forever);
    }

    pub(super) fn flush(&self) {
        self.sim.block_on(self.recorder.flushed());
    }

    /// The answers so far, shortened.
    pub(super) fn answers(&self) -> Vec<(String, String)> {
        let short = |answer: &std::result::Result<Answer, StoreError>| match answer {
            Ok(Answer { reply: UnitReply::Done { .. }, .. }) => "done".to_owned(),
            Ok(Answer { reply: UnitReply::Recorded { .. }, .. }) => "recorded".to_owned(),
            Ok(Answer { reply: UnitReply::Superseded { .. }, .. }) => "superseded".to_owned(),
            Ok(Answer { reply, .. }) => format!("{reply:?}"),
            Err(error) => error.to_string(),
        };
        self.heard.lock().unwrap().iter().map(|(label, answer)| (label.clone(), short(answer))).collect()
    }

    /// Positions that the store has recorded for a workflow.
    pub(super) fn recorded(&self, id: &str) -> Vec<i32> {
        let steps = self.sim.block_on(self.memory.workflow_steps(ReadSteps::new(id))).expect("read");
        steps.here().iter().map(|step| step.position.0).collect()
    }

    pub(super) fn lives(&self) -> bool {
        self.sim.live().iter().any(|name| name.contains("recorder"))
    }
}

/// A step of an execution.
pub(super) fn step(fence: &Fence, position: i32) -> Unit {
    Unit::by(fence).step(StepRow::new(position, "s", StepOutput::Value(position.to_string().into())))
}

/// A unit of a caller outside that is safe to repeat.
pub(super) fn submit(id: &str) -> Unit {
    Unit::new().effect(Submit::new(id, "job", format!("t-{id}"), Place::queue("jobs")).app("shop"))
}

/// A unit of a caller outside that is not.
pub(super) fn rewind(id: &str) -> Unit {
    Unit::new().effect(Effect::Rewind { id: id.into(), below: Position(0) })
}

/// Answers `act` to so many commits and executes those after.
pub(super) fn first(times: usize, act: Act) -> impl FnMut(&[Unit]) -> Act + Send + 'static {
    let seen = AtomicUsize::new(0);
    move |_| if seen.fetch_add(1, Ordering::Relaxed) < times { act } else { Act::Pass }
}

pub(super) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
