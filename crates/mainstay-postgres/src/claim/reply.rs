//! What the statements of a claim answer.

use std::sync::Arc;

use mainstay_store::{ClaimedRow, Fence, Input, Position, Steps, Timestamp, WorkflowId};
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::layout::Layout;
use crate::row::{get, payload_if, steps_json, text, text_if, whole_if, workflow};

/// Whether a claim could take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// A peer holds the queue, or the lease is being taken over.
    Contended,
    Unleased,
    /// The queue's row is not what the claim was planned with.
    Changed,
}

impl State {
    pub(crate) fn of(row: &Row) -> Result<Self, Fault> {
        Ok(match get::<&str>(row, "state")? {
            "open" => Self::Open,
            "contended" => Self::Contended,
            "unleased" => Self::Unleased,
            "changed" => Self::Changed,
            other => return Err(Fault::unreadable("state", format!("{other:?} is none"))),
        })
    }
}

/// One row that a claim has taken or parked.
#[derive(Debug)]
pub(crate) enum Found {
    Row(Box<ClaimedRow>),
    Parked(WorkflowId),
    /// Taken, but it cannot be read.
    Unreadable(Unread),
}

/// A row that must be set aside.
#[derive(Debug)]
pub(crate) struct Unread {
    pub(crate) id: WorkflowId,
    pub(crate) fence: String,
    pub(crate) reason: String,
}

/// An answer of a claim.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) now: Timestamp,
    pub(crate) state: State,
    /// Rows that were found, parked ones included.
    pub(crate) picked: u32,
    /// In dispatch order.
    pub(crate) found: Vec<Found>,
    /// What the statement was rendered for.
    pub(crate) layout: Layout,
}

impl Reply {
    /// One that took nothing.
    pub(crate) const fn bare(now: Timestamp, state: State, layout: Layout) -> Self {
        Self { now, state, picked: 0, found: Vec::new(), layout }
    }

    /// The answer of a statement that ends with `part_rows`.
    pub(crate) fn read(rows: &[Row], layout: Layout) -> Result<Self, Fault> {
        let first = rows.first().ok_or_else(|| Fault::unreadable("claim", "no row"))?;
        let now = Timestamp::from_millis(get(first, "now")?);
        let picked = whole_if(first, "picked")?.unwrap_or(0);
        let mut found = Vec::new();
        for row in rows {
            found.extend(one(row)?);
        }
        Ok(Self { now, state: State::of(first)?, picked, found, layout })
    }
}

fn one(row: &Row) -> Result<Option<Found>, Fault> {
    if let Some(parked) = text_if(row, "parked")? {
        return Ok(Some(Found::Parked(parked)));
    }
    let Some(id) = text_if::<WorkflowId>(row, "workflow_uuid")? else { return Ok(None) };
    Ok(Some(match claimed(row) {
        Ok(claimed) => Found::Row(Box::new(claimed)),
        Err(Fault::Unreadable(reason)) => Found::Unreadable(Unread { id, fence: get(row, "fence")?, reason }),
        Err(other) => return Err(other),
    }))
}

fn claimed(row: &Row) -> Result<ClaimedRow, Fault> {
    let found = workflow(row)?;
    let fence = Fence::issue(found.id.clone(), text::<Arc<str>>(row, "fence")?);
    let input = match (payload_if(row, "input")?, whole_if(row, "input_bytes")?) {
        (Some(input), _) => Input::Inline(input),
        (None, Some(bytes)) => Input::Deferred { bytes },
        (None, None) => Input::Missing,
    };
    let first = steps_json(row, "steps")?;
    let steps = match get(row, "next_step")? {
        Some(next) => Steps::Partial { first, next: Position(next) },
        None => Steps::Complete(first),
    };
    Ok(ClaimedRow::new(found, fence, input, steps))
}
