//! What a case works at: an open store with a queue and two leases, a clock that it moves, and short forms of requests.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use mainstay_env::{Env, SimClock, Timestamp};
use mainstay_store::{
    Beat, Beaten, Capabilities, Capability, Claim, Claimed, ClaimedRow, Created, Effect, EffectReply, Fence, Limits,
    Outcome, Place, Queue, QueueReply, ReadSteps, RecordedStep, Refusal, RegisterQueue, Registered, Standing, Status,
    StepOutput, StepRow, Store, StoreClock, Submit, TakeOver, TakenOver, Tick, Ticked, Token, Unit, UnitReply,
    WorkflowId, WorkflowRow, WriteExt,
};

use crate::backend::{Backend, Subject};
use crate::trouble::{Lasting, Trouble};

/// The application of a desk.
pub(crate) const APP: &str = "shop";
/// Its queue, registered without limits.
pub(crate) const Q: &str = "q";
/// Its executors, whose leases are open at beat 1.
pub(crate) const E1: &str = "one~1";
/// The second one.
pub(crate) const E2: &str = "two~1";
/// The version that its claims name; not registered.
pub(crate) const V1: &str = "v1";
/// The function of its workflows.
pub(crate) const WORK: &str = "work";

/// Where the virtual clock begins.
const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Most calls of one take-over: each may bring few rows, or none.
const CALLS: usize = 1_000;

/// How a desk's store is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// With the clock of its environment, itself virtual, instead of a manual one.
    pub(crate) server_clock: bool,
    /// By a handle that works off its calls in order.
    pub(crate) in_order: bool,
    /// Behind a wrapper, for stores that keep something back.
    pub(crate) wrap: fn(Arc<dyn Store>) -> Arc<dyn Store>,
}

impl Opening {
    pub(crate) const MANUAL: Self = Self { server_clock: false, in_order: false, wrap: |store| store };
    pub(crate) const SERVER: Self = Self { server_clock: true, ..Self::MANUAL };
    pub(crate) const IN_ORDER: Self = Self { in_order: true, ..Self::MANUAL };
}

/// See the module.
pub(crate) struct Desk {
    env: Env,
    clock: SimClock,
    opening: Opening,
    store: RefCell<Option<Arc<dyn Store>>>,
    tokens: Cell<u32>,
    subject: Subject,
    // Dropped last: it removes what the store left.
    backend: Box<dyn Backend>,
}

impl Desk {
    /// Opens the store and makes the queue and the leases.
    pub(crate) async fn open(env: Env, subject: &Subject, backend: Box<dyn Backend>, opening: Opening) -> Self {
        let clock = SimClock::new(START);
        let (store, tokens, subject) = (RefCell::new(None), Cell::new(0), subject.clone());
        let desk = Self { env, clock, opening, store, tokens, subject, backend };
        let store = desk.another().await;
        desk.store.replace(Some(store));
        for executor in [E1, E2] {
            desk.lease(executor).await;
        }
        desk.register(Q, Limits::default()).await;
        desk
    }

    /// One more handle on the same store.
    pub(crate) async fn another(&self) -> Arc<dyn Store> {
        let clock = self.clock.clone();
        let (env, clock) = if self.opening.server_clock {
            (self.env.with_clock(Arc::new(clock)), StoreClock::Server)
        } else {
            (self.env.clone(), StoreClock::Manual(clock))
        };
        let opened = if self.opening.in_order {
            self.backend.open_in_order(env, clock).await
        } else {
            self.backend.open(env, clock).await
        };
        let store = opened.expect("the store opens");
        (self.opening.wrap)(store)
    }

    /// Drops the store and opens it again.
    pub(crate) async fn reopen(&self) {
        drop(self.store.take());
        let store = self.another().await;
        self.store.replace(Some(store));
    }

    /// Drops the store; only [`Desk::another`] works from now on.
    pub(crate) fn close(&self) {
        drop(self.store.take());
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store.borrow().clone().expect("the store is open")
    }

    /// The real environment: threads, and time for what no virtual clock moves.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    pub(crate) fn clock(&self) -> &SimClock {
        &self.clock
    }

    /// The name of the backend.
    pub(crate) fn subject(&self) -> &str {
        self.subject.name()
    }

    /// Another store of the backend, not opened yet.
    pub(crate) fn fresh(&self) -> Box<dyn Backend> {
        self.subject.backend()
    }

    /// Another desk, at an empty store of the same backend.
    pub(crate) async fn twin(&self) -> Self {
        Self::open(self.env.clone(), &self.subject, self.fresh(), self.opening).await
    }

    /// Brings the store into trouble until the answer is dropped; for cases that ask for this trouble.
    pub(crate) async fn trouble(&self, trouble: Trouble) -> Lasting {
        self.backend.trouble(trouble).await
    }

    /// What the backend says without a store.
    pub(crate) fn declared(&self) -> Capabilities {
        self.backend.capabilities()
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.store().capabilities().has(capability)
    }

    /// Moves the clock on.
    pub(crate) fn pass(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    /// What the clock reads.
    pub(crate) fn now(&self) -> Timestamp {
        mainstay_env::Clock::now(&self.clock)
    }

    /// A token that was not given before.
    pub(crate) fn token(&self) -> Token {
        self.tokens.set(self.tokens.get() + 1);
        format!("t{}", self.tokens.get()).into()
    }

    // Submits.

    /// A submit to the queue, with a new token.
    pub(crate) fn job(&self, id: &str) -> Submit {
        self.job_on(Q, id)
    }

    /// The same to another queue.
    pub(crate) fn job_on(&self, queue: &str, id: &str) -> Submit {
        Submit::new(id, WORK, self.token(), Place::queue(queue)).app(APP)
    }

    /// A submit with a delay.
    pub(crate) fn later(&self, id: &str, millis: u64) -> Submit {
        let place = Place::Queue { name: Q.into(), key: None, delay: Some(ms(millis).into()) };
        Submit::new(id, WORK, self.token(), place).app(APP)
    }

    /// A direct start in the first executor.
    pub(crate) fn direct(&self, id: &str) -> Submit {
        Submit::new(id, WORK, self.token(), Place::Run(E1.into())).app(APP).version(V1)
    }

    /// Commits a submit that makes its row.
    pub(crate) async fn put(&self, submit: Submit) -> Created {
        match self.unit(Unit::new().effect(submit)).await {
            UnitReply::Done { effects } => match <[EffectReply; 1]>::try_from(effects) {
                Ok([EffectReply::Created(created)]) => created,
                other => panic!("the submit made nothing: {other:?}"),
            },
            other => panic!("the submit was not done: {other:?}"),
        }
    }

    /// Puts a row on the queue.
    pub(crate) async fn enqueue(&self, id: &str) -> Created {
        self.put(self.job(id)).await
    }

    /// Starts a row at once.
    pub(crate) async fn start(&self, id: &str) -> Fence {
        self.put(self.direct(id)).await.fence.expect("a direct start has a fence")
    }

    /// Brings a new row into a state, over a queue of its own named `q-ID`. A pending one comes with its fence.
    pub(crate) async fn make(&self, id: &str, status: Status) -> Option<Fence> {
        let queue = format!("q-{id}");
        self.register(&queue, Limits::default()).await;
        let mut submit = self.job_on(&queue, id);
        if status == Status::Delayed {
            submit.place = Place::Queue { name: queue.as_str().into(), key: None, delay: Some(ms(3_600_000).into()) };
        }
        self.put(submit).await;
        if matches!(status, Status::Delayed | Status::Enqueued) {
            return None;
        }
        let mut claimed = self.take(self.claim_on(&queue)).await;
        let fence = claimed.rows.pop().expect("the row is claimed").fence;
        let outcome = match status {
            Status::Success => success("made"),
            Status::Error => Outcome::Error("\"made\"".into()),
            Status::Parked => Outcome::Parked("\"made\"".into()),
            Status::Cancelled => {
                self.cancel(id).await;
                return None;
            }
            _ => return Some(fence),
        };
        self.settle(&fence, outcome).await;
        None
    }

    // Units.

    /// Commits one unit.
    pub(crate) async fn unit(&self, unit: Unit) -> UnitReply {
        self.store().unit(unit).await.expect("the unit is judged")
    }

    /// Commits a batch; the inner answers.
    pub(crate) async fn units(&self, units: &[Unit]) -> Vec<mainstay_store::Result<UnitReply>> {
        self.store().commit(units).await.expect("the batch is judged").units
    }

    /// Commits a unit that is done.
    pub(crate) async fn done(&self, unit: Unit) -> Vec<EffectReply> {
        match self.unit(unit).await {
            UnitReply::Done { effects } => effects,
            other => panic!("the unit was not done: {other:?}"),
        }
    }

    /// Commits a unit that moves workflows by its one effect; the moved ones.
    pub(crate) async fn moved(&self, effect: Effect) -> Vec<String> {
        match self.done(Unit::new().effect(effect)).await.pop() {
            Some(EffectReply::Moved(ids)) => texts(&ids),
            other => panic!("nothing moved: {other:?}"),
        }
    }

    /// Commits a unit that one of its effects refuses.
    pub(crate) async fn refused(&self, unit: Unit) -> (usize, Refusal) {
        match self.unit(unit).await {
            UnitReply::Refused { effect, why } => (effect, why),
            other => panic!("the unit was not refused: {other:?}"),
        }
    }

    /// Commits a unit under a void fence.
    pub(crate) async fn superseded(&self, unit: Unit) -> Standing {
        match self.unit(unit).await {
            UnitReply::Superseded { by } => by,
            other => panic!("the unit was not superseded: {other:?}"),
        }
    }

    /// Commits a unit of which a position is recorded.
    pub(crate) async fn recorded(&self, unit: Unit) -> Vec<RecordedStep> {
        match self.unit(unit).await {
            UnitReply::Recorded { rows } => rows,
            other => panic!("the unit was not recorded: {other:?}"),
        }
    }

    /// Commits a unit that no backend may take; the field that its error names.
    pub(crate) async fn invalid(&self, unit: Unit) -> String {
        let mut answers = self.units(&[unit]).await;
        match answers.pop() {
            Some(Err(error)) => field(&error),
            other => panic!("the unit was not invalid: {other:?}"),
        }
    }

    pub(crate) async fn settle(&self, fence: &Fence, outcome: Outcome) {
        self.done(Unit::by(fence).outcome(outcome)).await;
    }

    pub(crate) async fn cancel(&self, id: &str) -> Vec<String> {
        self.moved(Effect::Cancel { ids: vec![id.into()], children: false }).await
    }

    pub(crate) async fn resume(&self, id: &str) -> Vec<String> {
        self.moved(Effect::Resume { ids: vec![id.into()], queue: None, force: false }).await
    }

    pub(crate) async fn delete(&self, id: &str) -> Vec<String> {
        self.moved(Effect::Delete { ids: vec![id.into()], children: false }).await
    }

    pub(crate) async fn give_back(&self, fence: &Fence) {
        self.done(Unit::by(fence).effect(Effect::GiveBack { delay: None, begun: true })).await;
    }

    /// Records a value at a position.
    pub(crate) async fn record(&self, fence: &Fence, position: i32, value: &str) {
        self.done(Unit::by(fence).step(step(position, value))).await;
    }

    // Claims.

    /// A claim of the first executor on the queue, with a new token and the desk's one function.
    pub(crate) fn claim(&self) -> Claim {
        self.claim_on(Q)
    }

    /// The same of another executor.
    pub(crate) fn claim_by(&self, executor: &str) -> Claim {
        Claim::new(Q, executor, APP, V1, self.token()).names(vec![Registered::new(WORK)])
    }

    /// The same on another queue.
    pub(crate) fn claim_on(&self, queue: &str) -> Claim {
        Claim::new(queue, E1, APP, V1, self.token()).names(vec![Registered::new(WORK)])
    }

    pub(crate) async fn take(&self, claim: Claim) -> Claimed {
        self.store().queue_claim(claim).await.expect("the claim is answered")
    }

    /// Claims all there is on the queue; the ids in the reply's order.
    pub(crate) async fn take_ids(&self, claim: Claim) -> Vec<String> {
        rows(&self.take(claim).await)
    }

    /// Claims the one row that is eligible.
    pub(crate) async fn take_one(&self) -> ClaimedRow {
        let claimed = self.take(self.claim()).await;
        match <[ClaimedRow; 1]>::try_from(claimed.rows) {
            Ok([row]) => row,
            Err(rows) => panic!("one row was to be claimed, not {}", rows.len()),
        }
    }

    /// Enqueues a row and claims it; no other may be eligible.
    pub(crate) async fn claimed(&self, id: &str) -> Fence {
        self.enqueue(id).await;
        self.take_one().await.fence
    }

    // Reads.

    pub(crate) async fn find(&self, id: &str) -> Option<WorkflowRow> {
        let rows = self.store().workflow_rows(&[id.into()]).await.expect("rows are read");
        rows.into_iter().next().expect("one answer an id")
    }

    pub(crate) async fn row(&self, id: &str) -> WorkflowRow {
        self.find(id).await.unwrap_or_else(|| panic!("there is no workflow {id}"))
    }

    pub(crate) async fn status(&self, id: &str) -> Status {
        self.row(id).await.status
    }

    pub(crate) async fn standing(&self, id: &str) -> Standing {
        let standings = self.store().workflow_standing(&[id.into()]).await.expect("standings are read");
        standings.into_iter().next().expect("one answer an id")
    }

    /// All steps of a workflow.
    pub(crate) async fn steps(&self, id: &str) -> Vec<RecordedStep> {
        let request = ReadSteps::new(id).bytes(u64::MAX);
        let steps = self.store().workflow_steps(request).await.expect("steps are read");
        steps.here().to_vec()
    }

    /// Its recorded values as (position, text).
    pub(crate) async fn values(&self, id: &str) -> Vec<(i32, String)> {
        let steps = self.steps(id).await;
        let text = |step: &RecordedStep| step.result.payload().map_or(String::new(), |text| text.as_str().to_owned());
        steps.iter().map(|step| (step.position.0, text(step))).collect()
    }

    // The rest.

    pub(crate) async fn lease(&self, executor: &str) {
        let beaten = self.store().lease_beat(Beat::new(executor, APP, 1_u64)).await.expect("the beat is answered");
        assert_eq!(beaten, Beaten::Alive, "a first beat opens the lease");
    }

    /// Takes an executor over; its rows in order of id.
    pub(crate) async fn take_over(&self, executor: &str) -> Vec<String> {
        let mut all = self.take_over_in_calls(TakeOver::new(executor, 1_u64)).await.concat();
        all.sort();
        all
    }

    /// Sends a take-over until it says that nothing is left; what each call brought, which may be less than its limit.
    pub(crate) async fn take_over_in_calls(&self, request: TakeOver) -> Vec<Vec<String>> {
        let mut calls = Vec::new();
        while calls.len() < CALLS {
            match self.store().lease_take_over(request.clone()).await.expect("the take-over is answered") {
                TakenOver::Rows { ids, more } => {
                    calls.push(texts(&ids));
                    if !more {
                        return calls;
                    }
                }
                other => panic!("not taken over: {other:?}"),
            }
        }
        panic!("{CALLS} calls have not taken {} over", request.executor);
    }

    /// Takes over one row of several: the lease is ended, and the others are still in their executions.
    pub(crate) async fn take_over_one(&self, executor: &str) -> String {
        for _ in 0..CALLS {
            let request = TakeOver::new(executor, 1_u64).limit(1);
            match self.store().lease_take_over(request).await.expect("the take-over is answered") {
                TakenOver::Rows { ids, more: true } if ids.is_empty() => {}
                TakenOver::Rows { ids, more: true } => return texts(&ids).remove(0),
                other => panic!("several rows were to be taken over: {other:?}"),
            }
        }
        panic!("{CALLS} calls have taken over no row of {executor}");
    }

    /// Registers a queue of the desk's application, or replaces its limits.
    pub(crate) async fn register(&self, queue: &str, limits: Limits) -> Queue {
        let request = RegisterQueue::new(queue, APP).limits(limits);
        match self.store().queue_register(request).await.expect("the queue is registered") {
            QueueReply::Created(queue) | QueueReply::Updated(queue) | QueueReply::Kept(queue) => queue,
            other => panic!("the queue was not registered: {other:?}"),
        }
    }

    pub(crate) async fn tick(&self) -> Ticked {
        self.store().tick(Tick::new(APP)).await.expect("the tick is answered")
    }
}

/// Milliseconds.
pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An outcome with this JSON string.
pub(crate) fn success(text: &str) -> Outcome {
    Outcome::Success(format!("\"{text}\"").into())
}

/// A step named `step` with this value.
pub(crate) fn step(position: i32, value: &str) -> StepRow {
    StepRow::new(position, "step", StepOutput::Value(value.into()))
}

/// Ids as texts, for comparison with literals.
pub(crate) fn texts(ids: &[WorkflowId]) -> Vec<String> {
    ids.iter().map(|id| id.as_str().to_owned()).collect()
}

/// Literals as ids.
pub(crate) fn ids(texts: &[&str]) -> Vec<WorkflowId> {
    texts.iter().map(|text| WorkflowId::from(*text)).collect()
}

/// The ids of a claim's rows.
pub(crate) fn rows(claimed: &Claimed) -> Vec<String> {
    claimed.rows.iter().map(|row| row.row.id.as_str().to_owned()).collect()
}

/// The field that an `Invalid` error names.
pub(crate) fn field(error: &mainstay_store::StoreError) -> String {
    assert_eq!(error.kind(), mainstay_store::ErrorKind::Invalid, "{error}");
    error.field().unwrap_or_else(|| panic!("the error names no field: {error}")).to_owned()
}
