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

pass_on! { Trailed => inner: WorkflowStore, QueueStore, Registry, ExecutorStore, Maintenance }

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
