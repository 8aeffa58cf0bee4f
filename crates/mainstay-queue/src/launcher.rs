//! The one inversion: what the engine needs to know of its process.

use std::fmt;
use std::sync::Arc;

use mainstay_store::{ClaimedRow, Registered, WorkflowId};

use crate::slot::Slot;

/// Runs workflow bodies. The runtime implements it; tests fake it.
pub trait Launcher: fmt::Debug + Send + Sync + 'static {
    /// Functions that this process can run; asked once, at launch, and named in every claim.
    fn registered(&self) -> Arc<[Registered]>;

    /// Starts the body of a claimed row, and returns without having waited for anything.
    ///
    /// The execution owns the [`Slot`] of the work and drops it when it ends in whatever way, after its outcome has
    /// committed. A panic gives the row back to its queue.
    fn launch(&self, work: Work);

    /// Drops the body of this workflow that still lives in this process, where there is one: its fence is void.
    ///
    /// When it returns, no body of an older fence of this id runs on or writes.
    fn evict(&self, id: &WorkflowId);
}

/// A claimed row on its way to its body.
#[derive(Debug)]
#[non_exhaustive]
pub struct Work {
    /// The row, its fence, its input and its recorded steps.
    pub claimed: ClaimedRow,
    /// The count of this execution; its owner is the execution.
    pub slot: Slot,
}

impl Work {
    /// For launchers that wrap others, and for tests.
    #[must_use]
    pub fn new(claimed: ClaimedRow, slot: Slot) -> Self {
        Self { claimed, slot }
    }
}
