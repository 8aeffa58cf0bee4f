//! Moves of one row, each with its hints. The caller has judged that the row may make the move.

use mainstay_store::model::wire;
use mainstay_store::{Fence, Outcome, Payload, QueueName, Status, Timestamp, Wakeup, WorkflowId};
use rusqlite::params;

use crate::error;
use crate::row;
use crate::sql::{self, Cached};
use crate::tx::Tx;

/// What is read of a row before it is moved.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub(crate) status: Status,
    pub(crate) owner: Option<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) queue: Option<QueueName>,
    pub(crate) app: Option<String>,
}

impl Execution {
    /// Reads it.
    pub(crate) fn of(tx: &Tx<'_>, id: &WorkflowId) -> rusqlite::Result<Option<Self>> {
        tx.conn.maybe(sql::EXECUTION, [id.as_str()], |found| {
            Ok(Self {
                status: row::status(found, 0)?,
                owner: found.get(1)?,
                started_at: row::stamp_if(found, 2)?,
                queue: row::text_if(found, 3)?,
                app: found.get(4)?,
            })
        })
    }

    /// Reads it of a row that is moved or removed whatever stands in it. One that cannot be read counts as pending on no
    /// queue.
    pub(crate) fn of_any(tx: &Tx<'_>, id: &WorkflowId) -> rusqlite::Result<Option<Self>> {
        match Self::of(tx, id) {
            Err(error) if error::is_unreadable(&error) => {
                tracing::warn!(workflow = %id, %error, "a row cannot be read");
                Ok(Some(Self::bare(Status::Pending)))
            }
            found => found,
        }
    }

    /// The same of a row that is known to be there.
    pub(crate) fn of_known(tx: &Tx<'_>, id: &WorkflowId) -> rusqlite::Result<Self> {
        Self::of_any(tx, id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// Of a row of which only the status is known.
    pub(crate) const fn bare(status: Status) -> Self {
        Self { status, owner: None, started_at: None, queue: None, app: None }
    }

    /// Whether the fence lets its holder write.
    pub(crate) fn is_held_by(&self, fence: &Fence) -> bool {
        self.status == Status::Pending && row::is_fence_of(fence, self.started_at, self.owner.as_deref())
    }
}

/// Notes the move's stamp, and hints that the row has left its execution, where it was in one.
fn left(tx: &mut Tx<'_>, before: &Execution) -> rusqlite::Result<()> {
    tx.stamped(tx.now);
    if before.status == Status::Pending {
        tx.hint_room(before.queue.as_ref())?;
    }
    Ok(())
}

/// Ends a row.
pub(crate) fn end(tx: &mut Tx<'_>, id: &WorkflowId, before: &Execution, outcome: &Outcome) -> rusqlite::Result<()> {
    let status = outcome.status();
    let ended = match outcome {
        Outcome::Success(_) | Outcome::Error(_) => sql::END,
        Outcome::Cancelled | Outcome::Parked(_) => sql::END_OFF,
    };
    let now = tx.now.0;
    tx.conn.run(ended, params![id.as_str(), status.as_str(), now])?;
    let (output, error) = match outcome {
        Outcome::Success(payload) => (Some(payload.as_str()), None),
        Outcome::Error(payload) | Outcome::Parked(payload) => (None, Some(payload.as_str())),
        Outcome::Cancelled => (None, None),
    };
    if outcome.payload().is_some() {
        tx.conn.run(sql::SET_OUTPUT, params![id.as_str(), output, error, now])?;
    } else if before.status.is_ended() {
        tx.conn.run(sql::CLEAR_OUTPUT, [id.as_str()])?;
    }
    tx.hint(Wakeup::Workflow(id.clone()));
    left(tx, before)
}

/// Puts a pending row back on its queue, or on `fallback` where it has none; for later with a delay.
pub(crate) fn give_back(
    tx: &mut Tx<'_>,
    id: &WorkflowId,
    before: &Execution,
    fallback: &QueueName,
    until: Option<Timestamp>,
) -> rusqlite::Result<()> {
    let status = if until.is_some() { Status::Delayed } else { Status::Enqueued };
    let params = params![id.as_str(), status.as_str(), fallback.as_str(), until.map(|at| at.0), tx.now.0];
    tx.conn.run(sql::RETURN, params)?;
    left(tx, before)?;
    if until.is_none() {
        tx.hint(Wakeup::Queue(before.queue.clone().unwrap_or_else(|| fallback.clone())));
    }
    Ok(())
}

/// Enqueues a row again from its checkpoints.
pub(crate) fn resume(
    tx: &mut Tx<'_>,
    id: &WorkflowId,
    before: &Execution,
    queue: Option<&QueueName>,
) -> rusqlite::Result<()> {
    let queue = queue.cloned().unwrap_or_else(|| wire::INTERNAL_QUEUE.into());
    tx.conn.run(sql::RESUME, params![id.as_str(), queue.as_str(), tx.now.0])?;
    if before.status.is_ended() {
        tx.conn.run(sql::CLEAR_OUTPUT, [id.as_str()])?;
    }
    if before.status == Status::Pending {
        tx.hint(Wakeup::Workflow(id.clone()));
    }
    left(tx, before)?;
    tx.hint(Wakeup::Queue(queue));
    Ok(())
}

/// Enqueues a delayed row that is due on its queue.
pub(crate) fn release(tx: &mut Tx<'_>, id: &WorkflowId, queue: &QueueName) -> rusqlite::Result<()> {
    tx.conn.run(sql::RELEASE_DUE, params![id.as_str(), tx.now.0, queue.as_str()])?;
    tx.stamped(tx.now);
    tx.hint(Wakeup::Queue(queue.clone()));
    Ok(())
}

/// Removes a row with all that hangs on it.
pub(crate) fn delete(tx: &mut Tx<'_>, id: &WorkflowId, before: &Execution) -> rusqlite::Result<()> {
    for statement in [sql::DELETE_STEPS, sql::DELETE_INPUT, sql::CLEAR_OUTPUT, sql::DELETE] {
        tx.conn.run(statement, [id.as_str()])?;
    }
    tx.hint(Wakeup::Workflow(id.clone()));
    left(tx, before)
}

/// Writes an input.
pub(crate) fn set_input(tx: &Tx<'_>, id: &WorkflowId, input: &Payload) -> rusqlite::Result<()> {
    tx.conn.run(sql::INSERT_INPUT, params![id.as_str(), input.as_str(), tx.now.0]).map(drop)
}
