//! A store of one's own: memory, and a trail of what was committed.
//!
//! It keeps no rows itself. Every call goes on to the memory store, and each unit that was written leaves an entry, in
//! the order of the commits. A store with rows of its own implements the same traits; the guide on writing a backend
//! tells what each method promises, and the conformance suite checks it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mainstay_store::*;

/// One unit that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The workflow whose execution wrote it; none for a caller outside.
    pub workflow: Option<WorkflowId>,
    /// Names of the steps that it recorded.
    pub steps: Vec<StepName>,
    /// Whether it ended the workflow.
    pub ends: bool,
}

/// Memory with a trail.
#[derive(Debug)]
pub struct Trailed {
    inner: Arc<dyn Store>,
    trail: Mutex<Vec<Entry>>,
}

impl Trailed {
    /// Puts a trail over another store.
    #[must_use]
    pub fn over(inner: Arc<dyn Store>) -> Self {
        Self { inner, trail: Mutex::default() }
    }

    /// What was committed so far.
    #[must_use]
    pub fn trail(&self) -> Vec<Entry> {
        self.trail.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn entry(unit: &Unit) -> Entry {
    Entry {
        workflow: unit.fence.as_ref().map(|fence| fence.workflow().clone()),
        steps: unit.steps.iter().map(|step| step.name.clone()).collect(),
        ends: unit.outcome.is_some(),
    }
}

#[async_trait]
impl WriteStore for Trailed {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        let committed = self.inner.commit(units).await?;
        let written = units.iter().zip(&committed.units);
        let written = written.filter(|(_, reply)| reply.as_ref().is_ok_and(UnitReply::is_done));
        let mut trail = self.trail.lock().unwrap_or_else(PoisonError::into_inner);
        trail.extend(written.map(|(unit, _)| entry(unit)));
        Ok(committed)
    }
}

#[async_trait]
impl WorkflowStore for Trailed {
    async fn workflow_standing(&self, ids: &[WorkflowId]) -> Result<Vec<Standing>> {
        self.inner.workflow_standing(ids).await
    }
    async fn workflow_rows(&self, ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>> {
        self.inner.workflow_rows(ids).await
    }
    async fn workflow_steps(&self, request: ReadSteps) -> Result<Steps> {
        self.inner.workflow_steps(request).await
    }
    async fn workflow_input(&self, id: &WorkflowId) -> Result<Option<Payload>> {
        self.inner.workflow_input(id).await
    }
    async fn workflow_holder(&self, queue: &QueueName, key: &DedupKey) -> Result<Option<WorkflowId>> {
        self.inner.workflow_holder(queue, key).await
    }
}

#[async_trait]
impl QueueStore for Trailed {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        self.inner.queue_claim(request).await
    }
    async fn queue_probe(&self, request: Probe) -> Result<Probed> {
        self.inner.queue_probe(request).await
    }
    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        self.inner.queue_audit(request).await
    }
}

#[async_trait]
impl Registry for Trailed {
    async fn queue_register(&self, request: RegisterQueue) -> Result<QueueReply> {
        self.inner.queue_register(request).await
    }
    async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply> {
        self.inner.queue_update(request).await
    }
    async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool> {
        self.inner.queue_delete(app, name).await
    }
    async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>> {
        self.inner.queue_list(app).await
    }
    async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        self.inner.version_register(app, version).await
    }
    async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        self.inner.version_promote(app, version).await
    }
    async fn version_list(&self, app: &AppName) -> Result<Vec<Version>> {
        self.inner.version_list(app).await
    }
}

#[async_trait]
impl ExecutorStore for Trailed {
    async fn lease_beat(&self, request: Beat) -> Result<Beaten> {
        self.inner.lease_beat(request).await
    }
    async fn lease_list(&self, app: &AppName) -> Result<Leases> {
        self.inner.lease_list(app).await
    }
    async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver> {
        self.inner.lease_take_over(request).await
    }
}

#[async_trait]
impl Maintenance for Trailed {
    async fn tick(&self, request: Tick) -> Result<Ticked> {
        self.inner.tick(request).await
    }
    async fn collect(&self, request: Collect) -> Result<Collected> {
        self.inner.collect(request).await
    }
}

// The optional parts answer that they are not there, and `capabilities` says the same.
impl SignalStore for Trailed {}
impl ScheduleStore for Trailed {}
impl AdminStore for Trailed {}

impl Store for Trailed {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none()
    }
    fn env(&self) -> &Env {
        self.inner.env()
    }
    fn wakeups(&self) -> &Wakeups {
        self.inner.wakeups()
    }
}
