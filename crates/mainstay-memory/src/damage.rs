//! Damage that a test does to a state: methods that fail, and stored rows that cannot be read. No program comes here.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_store::wrap::Method;
use mainstay_store::{ErrorKind, QueueName, StoreError, WorkflowId};

use crate::memory::Memory;

/// What is damaged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Damage {
    /// Methods by name that fail.
    failing: BTreeMap<&'static str, ErrorKind>,
    /// Queues whose row cannot be read; storing one again mends it.
    pub(crate) queues: BTreeSet<QueueName>,
    /// Workflows whose row a claim cannot read.
    pub(crate) rows: BTreeSet<WorkflowId>,
    /// Workflows whose standing cannot be read.
    pub(crate) standings: BTreeSet<WorkflowId>,
}

impl Damage {
    /// What a method answers whatever it has done.
    pub(crate) fn of(&self, op: &'static str) -> Option<StoreError> {
        let kind = self.failing.get(op)?;
        Some(StoreError::new(*kind, op).with_source("a test has brought this about"))
    }
}

/// A method that fails until this is dropped.
#[derive(Debug)]
#[must_use = "the method works again when this is dropped"]
pub struct Failing {
    memory: Memory,
    method: Method,
}

impl Drop for Failing {
    fn drop(&mut self) {
        self.memory.state().damage.failing.remove(self.method.name());
    }
}

/// A workflow whose standing cannot be read until this is dropped.
#[derive(Debug)]
#[must_use = "the standing can be read again when this is dropped"]
pub struct Unreadable {
    memory: Memory,
    id: WorkflowId,
}

impl Drop for Unreadable {
    fn drop(&mut self) {
        self.memory.state().damage.standings.remove(&self.id);
    }
}

impl Memory {
    /// For tests and tools: until the answer is dropped every call of this method answers an error of this kind, in every
    /// process. A call that is unavailable or times out is executed and its answer lost; of another kind nothing is done.
    pub fn fail(&self, method: Method, kind: ErrorKind) -> Failing {
        self.state().damage.failing.insert(method.name(), kind);
        Failing { memory: self.clone(), method }
    }

    /// For tests and tools: makes the stored row of a queue unreadable until it is registered or changed. Lists leave it out,
    /// ticks name it, and claims of it answer `Corrupt`.
    pub fn damage_queue(&self, name: impl Into<QueueName>) {
        self.state().damage.queues.insert(name.into());
    }

    /// For tests and tools: makes an enqueued row unreadable for the next claim that meets it, which parks it.
    pub fn damage_row(&self, id: impl Into<WorkflowId>) {
        self.state().damage.rows.insert(id.into());
    }

    /// For tests and tools: until the answer is dropped every read of standings that asks for this workflow too answers
    /// `Corrupt`.
    pub fn damage_standing(&self, id: impl Into<WorkflowId>) -> Unreadable {
        let id = id.into();
        self.state().damage.standings.insert(id.clone());
        Unreadable { memory: self.clone(), id }
    }
}
