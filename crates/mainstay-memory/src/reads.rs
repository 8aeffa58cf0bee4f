//! Reads of workflows.

use async_trait::async_trait;
use mainstay_store::{
    DedupKey, ErrorKind, Payload, QueueName, ReadSteps, Result, Standing, Steps, StoreError, WorkflowId, WorkflowRow,
    WorkflowStore,
};

use crate::memory::Memory;

fn unknown(op: &'static str) -> StoreError {
    StoreError::new(ErrorKind::NotFound, op)
}

#[async_trait]
impl WorkflowStore for Memory {
    async fn workflow_standing(&self, ids: &[WorkflowId]) -> Result<Vec<Standing>> {
        self.run("workflow_standing", |operation| {
            if ids.iter().any(|id| operation.state.damage.standings.contains(id)) {
                return Err(StoreError::new(ErrorKind::Corrupt, "workflow_standing"));
            }
            Ok(ids.iter().map(|id| operation.state.standing(id)).collect())
        })
        .await
    }

    async fn workflow_rows(&self, ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>> {
        self.run("workflow_rows", |operation| {
            let rows = &operation.state.rows;
            Ok(ids.iter().map(|id| rows.get(id).map(|record| record.row.clone())).collect())
        })
        .await
    }

    async fn workflow_steps(&self, request: ReadSteps) -> Result<Steps> {
        self.run("workflow_steps", move |operation| {
            let Some(record) = operation.state.rows.get(&request.id) else { return Err(unknown("workflow_steps")) };
            let steps = record.steps.range(request.from..).map(|(_, step)| step.clone()).collect();
            let mut budget = request.bytes;
            Ok(Steps::within(steps, &mut budget, 1))
        })
        .await
    }

    async fn workflow_input(&self, id: &WorkflowId) -> Result<Option<Payload>> {
        self.run("workflow_input", |operation| match operation.state.rows.get(id) {
            Some(record) => Ok(record.input.clone()),
            None => Err(unknown("workflow_input")),
        })
        .await
    }

    async fn workflow_holder(&self, queue: &QueueName, key: &DedupKey) -> Result<Option<WorkflowId>> {
        self.run("workflow_holder", |operation| {
            Ok(operation.state.index.dedup.get(&(queue.clone(), key.clone())).cloned())
        })
        .await
    }
}
