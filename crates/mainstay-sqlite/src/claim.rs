//! The claim: one transaction that judges, counts, takes and answers with whole rows.

use std::time::Duration;

use mainstay_store::model::wire;
use mainstay_store::{
    Admission, Bounds, Claim, Claimed, ClaimedRow, Input, Limits, Outcome, Payload, Position, Queue, Result, Status,
    Steps, Stop, StoreError, Timestamp, WorkflowId, WorkflowRow,
};
use rusqlite::{Connection, params};

use crate::counts;
use crate::eligible::{Candidate, Eligibility};
use crate::error;
use crate::executor;
use crate::queues;
use crate::row;
use crate::sql::{self, Cached};
use crate::steps;
use crate::store::Sqlite;
use crate::transition::{self, Execution};
use crate::tx::Tx;

pub(crate) const OP: &str = "queue_claim";

/// How long a start is kept at least, so that a window that is made longer finds what it has to count.
const KEPT: Duration = Duration::from_secs(3_600);

/// How many old starts are removed for each that is written, so that they are never more than the kept ones for long.
const PRUNED: i64 = 4;

/// Answers a claim.
pub(crate) async fn run(store: &Sqlite, request: Claim) -> Result<Claimed> {
    request.check(&Bounds::default()).map_err(|field| StoreError::field_error(OP, field))?;
    let contended = |now: Timestamp| Ok(Claimed::new(now, Stop::Contended));
    store.claim(OP, contended, move |tx| claim(tx, &request)).await?
}

fn claim(tx: &mut Tx<'_>, request: &Claim) -> rusqlite::Result<Result<Claimed>> {
    if !executor::is_leased(tx.conn, &request.executor)? {
        return Ok(Ok(Claimed::new(tx.now, Stop::Unleased)));
    }
    if request.repeat {
        let claimed = repeated(tx, request)?;
        if !claimed.rows.is_empty() {
            return Ok(Ok(claimed));
        }
    }
    let limits = match queue_of(tx, request)? {
        Ok(queue) => queue.map(|queue| queue.limits()).unwrap_or_default(),
        Err(stop) => return Ok(Ok(Claimed::new(tx.now, stop))),
    };
    if limits.partitioned() {
        return Ok(Err(StoreError::unsupported(OP, "partitions")));
    }
    take(tx, request, &limits).map(Ok)
}

/// The rows that the same claim, sent before, has taken and still holds.
fn repeated(tx: &mut Tx<'_>, request: &Claim) -> rusqlite::Result<Claimed> {
    let params = [request.executor.as_str(), request.token.as_str(), request.queue.as_str()];
    let rows = tx.conn.readable("claimed", sql::CLAIMED, params, row::workflow)?;
    let mut claimed = Claimed::new(tx.now, Stop::More);
    let mut left = request.claim_bytes;
    for row in rows {
        match fill(tx.conn, request, &mut left, row) {
            Err(error) if error::is_unreadable(&error) => tracing::warn!(%error, "a claimed row cannot be read"),
            filled => claimed.rows.push(filled?),
        }
    }
    Ok(claimed)
}

type Found = std::result::Result<Option<Queue>, Stop>;

/// The queue's row, none for the internal queue, or why nothing may be taken.
fn queue_of(tx: &Tx<'_>, request: &Claim) -> rusqlite::Result<Found> {
    if request.queue == *wire::INTERNAL_QUEUE {
        return Ok(Ok(None));
    }
    let Some(queue) = queues::read(tx.conn, &request.queue)? else { return Ok(Err(Stop::NoQueue)) };
    let stale = request.revision.is_some_and(|revision| revision != queue.revision);
    Ok(if stale { Err(Stop::Stale(Box::new(queue))) } else { Ok(Some(queue)) })
}

fn take(tx: &mut Tx<'_>, request: &Claim, limits: &Limits) -> rusqlite::Result<Claimed> {
    let admission = Admission { limits, local: &request.local, budget: request.budget };
    let needs = admission.needs();
    let counts = match needs.room {
        0 => Default::default(),
        _ => counts::read(tx.conn, &needs, &request.queue, &request.app, tx.now)?,
    };
    let allowance = admission.decide(&counts);
    let mut claimed = Claimed::new(tx.now, allowance.full);
    if allowance.total == 0 {
        return Ok(claimed);
    }
    let eligibility = Eligibility::new(tx.conn, &request.app, &request.version, &request.names)?;
    let candidates = eligibility.first(tx.conn, &request.queue, allowance.total)?;
    let mut left = request.claim_bytes;
    for candidate in &candidates {
        match take_one(tx, request, limits, &mut left, candidate)? {
            Some(row) => claimed.rows.push(row),
            None => claimed.parked.push(candidate.rank.2.clone().into()),
        }
    }
    if candidates.len() < usize::try_from(allowance.total).unwrap_or(usize::MAX) {
        claimed.stop = Stop::Drained;
    } else if !claimed.parked.is_empty() {
        claimed.stop = Stop::More;
    }
    record_starts(tx, request, limits, &claimed.rows)?;
    Ok(claimed)
}

/// One row with all that goes with it, or none when it was parked. The first meeting with an unreadable row undoes the
/// whole transaction; the claim is then run again, carefully, and parks it.
fn take_one(
    tx: &mut Tx<'_>,
    request: &Claim,
    limits: &Limits,
    left: &mut u64,
    candidate: &Candidate,
) -> rusqlite::Result<Option<ClaimedRow>> {
    let mut start = |tx: &mut Tx<'_>| match flip(tx, request, limits, candidate)? {
        Some(row) => fill(tx.conn, request, left, row).map(Some),
        None => park(tx, candidate).map(|()| None),
    };
    if !tx.careful {
        return start(tx);
    }
    let started = tx.attempt(|tx| match start(tx) {
        Err(error) if error::is_unreadable(&error) => Ok(Err(error)),
        started => started.map(Ok),
    })?;
    match started {
        Ok(row) => Ok(row),
        Err(error) => set_aside(tx, candidate, &error).map(|()| None),
    }
}

/// Gives one row to the executor; none when it has had its attempts.
fn flip(
    tx: &mut Tx<'_>,
    request: &Claim,
    limits: &Limits,
    candidate: &Candidate,
) -> rusqlite::Result<Option<WorkflowRow>> {
    let params = params![
        &*candidate.rank.2,
        request.executor.as_str(),
        request.version.as_str(),
        request.app.as_str(),
        request.token.as_str(),
        limits.rate.is_some(),
        tx.now.0,
        candidate.max_attempts,
    ];
    let row = tx.conn.maybe(sql::CLAIM, params, row::workflow)?;
    if let Some(started_at) = row.as_ref().and_then(|row| row.started_at) {
        tx.stamped(started_at);
    }
    Ok(row)
}

/// Parks a row that has had its attempts.
fn park(tx: &mut Tx<'_>, candidate: &Candidate) -> rusqlite::Result<()> {
    let id = WorkflowId::from(candidate.rank.2.clone());
    let attempts =
        tx.conn.exactly(sql::ATTEMPTS, [id.as_str()], |row| row.get(0).map_err(|error| error::named(row, error)))?;
    let before = Execution::of(tx, &id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    transition::end(tx, &id, &before, &Outcome::out_of_attempts(attempts))
}

/// Parks a row that cannot be read, so that those behind it are taken.
fn set_aside(tx: &mut Tx<'_>, candidate: &Candidate, error: &rusqlite::Error) -> rusqlite::Result<()> {
    let id = WorkflowId::from(candidate.rank.2.clone());
    tracing::warn!(workflow = %id, %error, "a row cannot be read and is parked");
    let reason = serde_json::json!({ "name": "Unreadable", "message": error.to_string() });
    let outcome = Outcome::Parked(reason.to_string().into());
    transition::end(tx, &id, &Execution::bare(Status::Enqueued), &outcome)
}

/// Notes the starts of a queue with a rate, and forgets about as many that no window reaches any more.
fn record_starts(tx: &Tx<'_>, request: &Claim, limits: &Limits, rows: &[ClaimedRow]) -> rusqlite::Result<()> {
    let Some(rate) = limits.rate else { return Ok(()) };
    let queue = request.queue.as_str();
    for row in rows {
        tx.conn.run(sql::ADD_START, params![queue, row::bound(row.row.key.as_ref()), tx.now.0])?;
    }
    let oldest = tx.now - rate.period.max(KEPT);
    let most = PRUNED.saturating_mul(i64::try_from(rows.len()).unwrap_or(i64::MAX));
    if most > 0 {
        tx.conn.run(sql::PRUNE_STARTS, params![queue, oldest.0, most])?;
    }
    Ok(())
}

/// A row with its input and recorded steps, as far as the bytes go.
fn fill(conn: &Connection, request: &Claim, left: &mut u64, row: WorkflowRow) -> rusqlite::Result<ClaimedRow> {
    let most = request.row_bytes.min(*left);
    let mut room = most;
    let input = input_within(conn, &row.id, &mut room)?;
    let steps = Steps::within(steps::up_to(conn, &row.id, Position(0), room, 0)?, &mut room, 0);
    *left -= most - room;
    // A claimed row's start stamp is its last change.
    let fence = row::fence(&row.id, row.started_at.unwrap_or(row.updated_at), request.token.as_str());
    Ok(ClaimedRow::new(row, fence, input, steps))
}

fn input_within(conn: &Connection, id: &WorkflowId, room: &mut u64) -> rusqlite::Result<Input> {
    let found: Option<(Option<u64>, Option<Payload>)> =
        conn.maybe(sql::INPUT_WITHIN, params![id.as_str(), i64::try_from(*room).unwrap_or(i64::MAX)], |found| {
            let input = row::payload_if(found, 1).map_err(|error| error::named(found, error))?;
            Ok((row::whole_if(found, 0)?, input))
        })?;
    Ok(match found {
        Some((Some(bytes), Some(input))) => {
            *room -= bytes;
            Input::Inline(input)
        }
        Some((Some(bytes), None)) => Input::Deferred { bytes },
        Some((None, _)) | None => Input::Missing,
    })
}
