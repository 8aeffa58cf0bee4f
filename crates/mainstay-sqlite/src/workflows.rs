//! Reads of workflows.

use async_trait::async_trait;
use mainstay_store::{
    DedupKey, ErrorKind, Payload, QueueName, ReadSteps, Result, Standing, Steps, StoreError, WorkflowId, WorkflowRow,
    WorkflowStore,
};
use rusqlite::Connection;

use crate::row;
use crate::sql::{self, Cached};
use crate::steps;
use crate::store::Sqlite;

#[async_trait]
impl WorkflowStore for Sqlite {
    async fn workflow_standing(&self, ids: &[WorkflowId]) -> Result<Vec<Standing>> {
        let ids = ids.to_vec();
        self.read("workflow_standing", move |snapshot| ids.iter().map(|id| row::standing(snapshot.conn, id)).collect())
            .await
    }

    async fn workflow_rows(&self, ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>> {
        let ids = ids.to_vec();
        self.read("workflow_rows", move |snapshot| {
            ids.iter().map(|id| snapshot.conn.maybe(sql::ROW, [id.as_str()], row::workflow)).collect()
        })
        .await
    }

    async fn workflow_steps(&self, request: ReadSteps) -> Result<Steps> {
        let op = "workflow_steps";
        let steps = self
            .read(op, move |snapshot| {
                if !exists(snapshot.conn, &request.id)? {
                    return Ok(None);
                }
                let mut budget = request.bytes;
                let read = steps::up_to(snapshot.conn, &request.id, request.from, request.bytes, 1)?;
                Ok(Some(Steps::within(read, &mut budget, 1)))
            })
            .await?;
        steps.ok_or_else(|| StoreError::new(ErrorKind::NotFound, op))
    }

    async fn workflow_input(&self, id: &WorkflowId) -> Result<Option<Payload>> {
        let (op, id) = ("workflow_input", id.clone());
        let input = self
            .read(op, move |snapshot| {
                let known = exists(snapshot.conn, &id)?;
                known.then(|| row::input(snapshot.conn, &id)).transpose()
            })
            .await?;
        input.ok_or_else(|| StoreError::new(ErrorKind::NotFound, op))
    }

    async fn workflow_holder(&self, queue: &QueueName, key: &DedupKey) -> Result<Option<WorkflowId>> {
        let (queue, key) = (queue.clone(), key.clone());
        self.read("workflow_holder", move |snapshot| {
            snapshot.conn.maybe(sql::HOLDER, [queue.as_str(), key.as_str()], |found| row::text(found, 0))
        })
        .await
    }
}

fn exists(conn: &Connection, id: &WorkflowId) -> rusqlite::Result<bool> {
    Ok(conn.maybe(sql::STATUS, [id.as_str()], |_| Ok(()))?.is_some())
}
