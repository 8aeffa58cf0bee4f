//! Reads of workflows.

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_store::{
    DedupKey, ErrorKind, Payload, QueueName, ReadSteps, RecordedStep, Result, Standing, Steps, StoreError, WorkflowId,
    WorkflowRow, WorkflowStore,
};
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::row;
use crate::session::Session;
use crate::store::Postgres;
use crate::text::{Text, text};

static STANDING: Text = text!("read_standing");
static ROWS: Text = text!("read_rows");
static STEPS: Text = text!("read_steps");
static INPUT: Text = text!("read_input");
static HOLDER: Text = text!("read_holder");

/// The statements of these reads.
#[cfg(test)]
pub(crate) const ALL: &[&Text] = &[&STANDING, &ROWS, &STEPS, &INPUT, &HOLDER];

/// Most steps of one page. The statement gives one more, which shows that there are more.
const PAGE: usize = 1_000;

#[async_trait]
impl WorkflowStore for Postgres {
    async fn workflow_standing(&self, ids: &[WorkflowId]) -> Result<Vec<Standing>> {
        let op = "workflow_standing";
        let (standings, lacking) = self.standings(op, ids).await?;
        // A result that is not there may be in a table that has come since the last look.
        if lacking && self.is_split(op).await? {
            return Ok(self.standings(op, ids).await?.0);
        }
        Ok(standings)
    }

    async fn workflow_rows(&self, ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>> {
        let ids = texts(ids);
        self.call("workflow_rows", move |session: &mut Session| {
            let ids = ids.clone();
            Box::pin(async move {
                let found = session.one(&ROWS, &[&*ids]).await?;
                found.iter().map(|found| is_there(found)?.then(|| row::workflow(found)).transpose()).collect()
            })
        })
        .await
    }

    async fn workflow_steps(&self, request: ReadSteps) -> Result<Steps> {
        let op = "workflow_steps";
        let steps = self
            .call(op, move |session: &mut Session| {
                let ReadSteps { id, from, bytes, .. } = request.clone();
                Box::pin(async move {
                    let most = i64::try_from(bytes).unwrap_or(i64::MAX);
                    let found = session.one(&STEPS, &[&row::storable(&id), &from.0, &most]).await?;
                    if found.is_empty() {
                        return Ok(None);
                    }
                    let any = |found: &&Row| matches!(row::get::<Option<i32>>(found, "function_id"), Ok(Some(_)));
                    let steps: std::result::Result<_, Fault> = found.iter().filter(any).map(row::step).collect();
                    Ok(Some(page(steps?, bytes)))
                })
            })
            .await?;
        steps.ok_or_else(|| StoreError::new(ErrorKind::NotFound, op))
    }

    async fn workflow_input(&self, id: &WorkflowId) -> Result<Option<Payload>> {
        let op = "workflow_input";
        let (mut input, lacking) = self.input(op, id).await?;
        if lacking && self.is_split(op).await? {
            input = self.input(op, id).await?.0;
        }
        input.ok_or_else(|| StoreError::new(ErrorKind::NotFound, op))
    }

    async fn workflow_holder(&self, queue: &QueueName, key: &DedupKey) -> Result<Option<WorkflowId>> {
        let (queue, key) = (queue.clone(), key.clone());
        self.call("workflow_holder", move |session: &mut Session| {
            let (queue, key) = (queue.clone(), key.clone());
            Box::pin(async move {
                let found = session.one(&HOLDER, &[&row::storable(&queue), &row::storable(&key)]).await?;
                found.first().map(|found| row::text(found, "workflow_uuid")).transpose()
            })
        })
        .await
    }
}

impl Postgres {
    /// Where workflows stand, and whether any has ended without the payload that its end should have, read by a statement that
    /// looks for it in the row alone.
    pub(crate) async fn standings(&self, op: &'static str, ids: &[WorkflowId]) -> Result<(Vec<Standing>, bool)> {
        let ids = texts(ids);
        self.call(op, move |session: &mut Session| {
            let ids = ids.clone();
            Box::pin(async move {
                let found = session.one(&STANDING, &[&*ids]).await?;
                let lacking = found.iter().map(row::is_lacking).collect::<std::result::Result<Vec<bool>, Fault>>()?;
                let standing = |found| if is_there(found)? { row::standing(found) } else { Ok(Standing::Gone) };
                let standings: std::result::Result<_, Fault> = found.iter().map(standing).collect();
                Ok((standings?, lacking.contains(&true) && !session.texts().layout.split))
            })
        })
        .await
    }

    /// The input of a workflow that is there, and whether it has none in its row, where alone the statement looks for it.
    async fn input(&self, op: &'static str, id: &WorkflowId) -> Result<(Option<Option<Payload>>, bool)> {
        let id = id.clone();
        self.call(op, move |session: &mut Session| {
            let id = id.clone();
            Box::pin(async move {
                let found = session.one(&INPUT, &[&row::storable(&id)]).await?;
                let input = found.first().map(|found| row::payload_if(found, "inputs")).transpose()?;
                let lacking = input == Some(None) && !session.texts().layout.split;
                Ok((input, lacking))
            })
        })
        .await
    }

    /// Whether payloads have tables of their own now, for a call whose statement knew of none. Another call may have looked
    /// since that statement was sent.
    pub(crate) async fn is_split(&self, op: &'static str) -> Result<bool> {
        if !self.texts().layout.split {
            self.look(op).await?;
        }
        Ok(self.texts().layout.split)
    }
}

fn texts(ids: &[WorkflowId]) -> Arc<Vec<Option<String>>> {
    Arc::new(ids.iter().map(|id| row::storable(id).map(str::to_owned)).collect())
}

fn is_there(found: &Row) -> std::result::Result<bool, Fault> {
    Ok(row::get::<Option<&str>>(found, "workflow_uuid")?.is_some())
}

/// As many steps as the bytes hold, one at least.
fn page(mut read: Vec<RecordedStep>, mut bytes: u64) -> Steps {
    let behind = if read.len() > PAGE { read.pop() } else { None };
    match (Steps::within(read, &mut bytes, 1), behind) {
        (Steps::Complete(first), Some(behind)) => Steps::Partial { first, next: behind.position },
        (steps, _) => steps,
    }
}

#[cfg(test)]
mod tests {
    use mainstay_store::{Position, StepResult};

    use super::*;

    fn steps(count: i32) -> Vec<RecordedStep> {
        (0..count).map(|at| RecordedStep::new(at, "s", StepResult::Value("1".into()))).collect()
    }

    #[test]
    fn a_page_of_most_steps_says_where_the_next_one_begins() {
        assert_eq!(page(steps(1_000), 4_000), Steps::Complete(steps(1_000)));
        let Steps::Partial { first, next } = page(steps(1_001), 4_000) else { panic!("all") };
        assert_eq!((first, next), (steps(1_000), Position(1_000)));
        let Steps::Partial { first, next } = page(steps(1_001), 7) else { panic!("all") };
        assert_eq!((first, next), (steps(7), Position(7)));
    }
}
