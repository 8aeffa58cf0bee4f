//! Named writes: each is a commit of one unit.

use async_trait::async_trait;

use crate::contract::WriteStore;
use crate::error::{ErrorKind, Result, StoreError};
use crate::fence::Fence;
use crate::model::{Outcome, WorkflowId};
use crate::unit::{Effect, Fork, Submit, Unit, UnitReply};

/// Comfort over [`WriteStore::commit`]; implemented for every store.
#[async_trait]
pub trait WriteExt: WriteStore {
    /// Commits one unit.
    async fn unit(&self, unit: Unit) -> Result<UnitReply> {
        let mut committed = self.commit(&[unit]).await?;
        committed.units.pop().unwrap_or_else(|| Err(StoreError::new(ErrorKind::Bug, "commit")))
    }

    /// Starts or enqueues one workflow.
    async fn submit(&self, submit: Submit) -> Result<UnitReply> {
        self.unit(Unit::new().effect(submit)).await
    }

    /// Cancels one workflow.
    async fn cancel(&self, id: &WorkflowId) -> Result<UnitReply> {
        self.unit(Unit::new().effect(Effect::Cancel { ids: vec![id.clone()], children: false })).await
    }

    /// Resumes one workflow that is not pending.
    async fn resume(&self, id: &WorkflowId) -> Result<UnitReply> {
        self.unit(Unit::new().effect(Effect::Resume { ids: vec![id.clone()], queue: None, force: false })).await
    }

    /// Deletes one workflow.
    async fn delete(&self, id: &WorkflowId) -> Result<UnitReply> {
        self.unit(Unit::new().effect(Effect::Delete { ids: vec![id.clone()], children: false })).await
    }

    /// Copies one workflow.
    async fn fork(&self, fork: Fork) -> Result<UnitReply> {
        self.unit(Unit::new().effect(fork)).await
    }

    /// Returns a claimed row to its queue.
    async fn give_back(&self, fence: &Fence) -> Result<UnitReply> {
        self.unit(Unit::by(fence).effect(Effect::GiveBack { delay: None, begun: true })).await
    }

    /// Ends an execution.
    async fn settle(&self, fence: &Fence, outcome: Outcome) -> Result<UnitReply> {
        self.unit(Unit::by(fence).outcome(outcome)).await
    }
}

impl<S: WriteStore + ?Sized> WriteExt for S {}
