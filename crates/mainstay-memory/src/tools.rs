//! For tests and tools: the state as no caller of the contract sees it.

use mainstay_store::{Fence, Queue, WorkflowId, WorkflowRow};

use crate::check;
use crate::history::Flip;
use crate::memory::Memory;

impl Memory {
    /// For tests and tools: every row, by id.
    #[must_use]
    pub fn rows(&self) -> Vec<WorkflowRow> {
        self.state().rows.values().map(|record| record.row.clone()).collect()
    }

    /// For tests and tools: the fences of all executions, by id of their row.
    #[must_use]
    pub fn fences(&self) -> Vec<Fence> {
        self.state().rows.values().filter_map(|record| record.fence()).collect()
    }

    /// For tests and tools: which rows became pending or ceased to be, in that order, since the opening. Empty in a store
    /// of [`Memory::open`], which keeps no history.
    #[must_use]
    pub fn history(&self) -> Vec<Flip> {
        self.history_since(0)
    }

    /// For tests and tools: the history without its first entries.
    #[must_use]
    pub fn history_since(&self, seen: usize) -> Vec<Flip> {
        let state = self.state();
        state.flips.as_ref().and_then(|flips| flips.get(seen..)).map(<[Flip]>::to_vec).unwrap_or_default()
    }

    /// For tests and tools: stores a queue as an older peer may have written it, unchecked: a paused one with a limit of 0,
    /// an unowned one, or one that is partitioned by its flag. Answers it with its new revision.
    ///
    /// # Errors
    /// `Bug` after a panic inside the store.
    pub async fn put_queue(&self, queue: Queue) -> mainstay_store::Result<Queue> {
        self.run("put_queue", move |operation| Ok(operation.store_queue(queue))).await
    }

    /// For tests and tools: compares every index with what the rows say, and every row with what its state allows.
    ///
    /// # Errors
    /// Says what does not agree, a line for each.
    pub fn check_invariants(&self) -> Result<(), String> {
        let found = check::state(&self.state());
        if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
    }

    /// For tests and tools: bytes of the recorded steps and the input of a row; none for an unknown one.
    #[must_use]
    pub fn payload_bytes(&self, id: &WorkflowId) -> Option<u64> {
        let state = self.state();
        let record = state.rows.get(id)?;
        let steps: u64 = record.steps.values().map(|step| step.result.bytes()).sum();
        Some(steps + record.input.as_ref().map_or(0, |input| input.bytes()))
    }
}
