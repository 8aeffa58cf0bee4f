//! Rows as SQLite stores them, and as the contract names them.

use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{
    Caller, Fence, Outcome, Payload, Position, RecordedStep, Standing, Status, StepResult, Timestamp, WorkflowId,
    WorkflowRow,
};
use rusqlite::{Connection, Row};

use crate::error::{named, unreadable};
use crate::sql::{self, Cached};

/// A text column as any of the contract's names.
pub(crate) fn text<T: From<Arc<str>>>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    Ok(row.get::<_, Arc<str>>(index)?.into())
}

/// The same where it may be NULL.
pub(crate) fn text_if<T: From<Arc<str>>>(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<Arc<str>>>(index)?.map(T::from))
}

/// A stamp that may be NULL.
pub(crate) fn stamp_if(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_millis))
}

/// A number that is not negative and may be NULL.
pub(crate) fn whole_if(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    let stored: Option<i64> = row.get(index)?;
    let whole = |stored| u64::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(index, stored));
    stored.map(whole).transpose()
}

/// A payload that may be NULL.
pub(crate) fn payload_if(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Payload>> {
    Ok(row.get::<_, Option<Arc<str>>>(index)?.map(Payload::new))
}

/// A status column.
pub(crate) fn status(row: &Row<'_>, index: usize) -> rusqlite::Result<Status> {
    let stored = row.get_ref(index)?.as_str()?;
    Status::parse(stored).ok_or_else(|| unreadable("status", stored))
}

/// Something named, as a bound value.
pub(crate) fn bound<T: AsRef<str>>(name: Option<&T>) -> Option<&str> {
    name.map(T::as_ref)
}

/// A duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A workflow row, selected by the columns of `sql::ROW`.
pub(crate) fn workflow(row: &Row<'_>) -> rusqlite::Result<WorkflowRow> {
    whole_workflow(row).map_err(|error| named(row, error))
}

fn whole_workflow(row: &Row<'_>) -> rusqlite::Result<WorkflowRow> {
    let created = Timestamp::from_millis(row.get(3)?);
    let mut found = WorkflowRow::new(
        text::<WorkflowId>(row, 0)?,
        text::<mainstay_store::WorkflowName>(row, 2)?,
        status(row, 1)?,
        created,
        Timestamp::from_millis(row.get(4)?),
    );
    found.class = text_if(row, 5)?;
    found.config = text_if(row, 6)?;
    found.queue = text_if(row, 7)?;
    found.key = text_if(row, 8)?;
    found.dedup = text_if(row, 9)?;
    found.executor = text_if(row, 10)?;
    found.app = text_if(row, 11)?;
    found.version = text_if(row, 12)?;
    found.codec = text_if(row, 13)?;
    found.parent = text_if(row, 14)?;
    found.forked_from = text_if(row, 15)?;
    found.schedule = text_if(row, 16)?;
    found.started_at = stamp_if(row, 17)?;
    found.completed_at = stamp_if(row, 18)?;
    found.delay_until = stamp_if(row, 19)?;
    found.deadline = stamp_if(row, 20)?;
    found.timeout = whole_if(row, 21)?.map(Duration::from_millis);
    found.attributes = payload_if(row, 22)?;
    found.priority = row.get(23)?;
    found.attempts = row.get(24)?;
    found.rate_limited = row.get(25)?;
    found.was_forked = row.get(26)?;
    found.caller = Caller { user: row.get(27)?, role: row.get(28)?, roles: roles(row.get(29)?)? };
    Ok(found)
}

fn roles(stored: Option<String>) -> rusqlite::Result<Vec<String>> {
    let Some(stored) = stored else { return Ok(Vec::new()) };
    serde_json::from_str(&stored).map_err(|error| unreadable("authenticated_roles", error))
}

/// Roles as they are stored: a JSON array, or NULL for none.
pub(crate) fn stored_roles(caller: &Caller) -> Option<String> {
    let roles = caller.roles.iter().map(|role| serde_json::Value::from(role.as_str())).collect();
    (!caller.roles.is_empty()).then(|| serde_json::Value::Array(roles).to_string())
}

/// A recorded step, selected by the columns of `sql::STEP`.
pub(crate) fn step(row: &Row<'_>) -> rusqlite::Result<RecordedStep> {
    whole_step(row).map_err(|error| named(row, error))
}

fn whole_step(row: &Row<'_>) -> rusqlite::Result<RecordedStep> {
    let result = match (payload_if(row, 2)?, payload_if(row, 3)?) {
        (_, Some(error)) => StepResult::Failure(error),
        (Some(value), None) => StepResult::Value(value),
        (None, None) => StepResult::Nothing,
    };
    let mut found = RecordedStep::new(Position(row.get(0)?), text::<mainstay_store::StepName>(row, 1)?, result);
    found.child = text_if(row, 4)?;
    found.codec = text_if(row, 5)?;
    found.started_at = stamp_if(row, 6)?;
    found.completed_at = stamp_if(row, 7)?;
    Ok(found)
}

/// What a row is now.
pub(crate) fn standing(conn: &Connection, id: &WorkflowId) -> rusqlite::Result<Standing> {
    let found = conn.maybe(sql::STANDING, [id.as_str()], |row| {
        let payload = |index| payload_if(row, index).map(|payload| payload.unwrap_or_else(|| "null".into()));
        Ok(match status(row, 0)? {
            Status::Success => Standing::Ended(Outcome::Success(payload(1)?)),
            Status::Error => Standing::Ended(Outcome::Error(payload(2)?)),
            Status::Parked => Standing::Ended(Outcome::Parked(payload(2)?)),
            Status::Cancelled => Standing::Ended(Outcome::Cancelled),
            open => Standing::Open(open),
        })
    })?;
    Ok(found.unwrap_or(Standing::Gone))
}

/// The input of a workflow.
pub(crate) fn input(conn: &Connection, id: &WorkflowId) -> rusqlite::Result<Option<Payload>> {
    Ok(conn.maybe(sql::INPUT, [id.as_str()], |row| payload_if(row, 0))?.flatten())
}

/// The right to write for an execution: its start stamp, which no two executions of a row share even where a caller uses a
/// token twice, and its owner token.
pub(crate) fn fence(id: &WorkflowId, started_at: Timestamp, owner: &str) -> Fence {
    Fence::issue(id.clone(), format!("{started_at}/{owner}"))
}

/// Whether a fence is that of the execution with this start and owner.
pub(crate) fn is_fence_of(fence: &Fence, started_at: Option<Timestamp>, owner: Option<&str>) -> bool {
    let (Some(started_at), Some(owner)) = (started_at, owner) else { return false };
    let parts = fence.raw().split_once('/');
    parts.is_some_and(|(stamp, token)| token == owner && stamp.parse() == Ok(started_at.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_fits_its_own_start_and_owner_alone() {
        let issued = fence(&"w".into(), Timestamp(7), "a/b");
        assert!(is_fence_of(&issued, Some(Timestamp(7)), Some("a/b")));
        assert!(!is_fence_of(&issued, Some(Timestamp(8)), Some("a/b")));
        assert!(!is_fence_of(&issued, Some(Timestamp(7)), Some("b")));
        assert!(!is_fence_of(&issued, None, Some("a/b")));
        assert!(!is_fence_of(&issued, Some(Timestamp(7)), None));
        assert!(!is_fence_of(&Fence::issue("w".into(), "a"), Some(Timestamp(7)), Some("a")));
    }
}
