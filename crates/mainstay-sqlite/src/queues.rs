//! Questions about queues: the stored row, the probe and the audit.

use std::time::Duration;

use async_trait::async_trait;
use mainstay_store::model::wire;
use mainstay_store::{
    AppName, Audit, AuditCursor, Audited, Bounds, Claim, Claimed, HeldRow, Limits, Probe, Probed, Queue, QueueName,
    QueueStore, Rate, Result, Revision, StoreError, Timestamp, WorkflowId,
};
use rusqlite::{Connection, Row, params};

use crate::claim;
use crate::eligible::{self, Eligibility};
use crate::error::{self, unreadable};
use crate::row;
use crate::sql::{self, Cached};
use crate::store::Sqlite;
use crate::tx::Snapshot;

/// Beyond this many seconds a stored interval is exact to the millisecond, below it to the nanosecond.
const FINE_SECONDS: f64 = 1e6;

#[async_trait]
impl QueueStore for Sqlite {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        claim::run(self, request).await
    }

    async fn queue_probe(&self, request: Probe) -> Result<Probed> {
        let op = "queue_probe";
        request.check(&Bounds::default()).map_err(|field| StoreError::field_error(op, field))?;
        self.read(op, move |snapshot| probe(snapshot, &request)).await
    }

    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        let op = "queue_audit";
        request.check(&Bounds::default()).map_err(|field| StoreError::field_error(op, field))?;
        self.read(op, move |snapshot| audit(snapshot, &request)).await
    }
}

fn probe(snapshot: &Snapshot<'_>, request: &Probe) -> rusqlite::Result<Probed> {
    let conn = snapshot.conn;
    let mut probed = Probed::new(snapshot.now);
    let eligibility = Eligibility::new(conn, &request.app, &request.version, &request.names)?;
    for queue in &request.queues {
        let known =
            *queue == *wire::INTERNAL_QUEUE || conn.maybe(sql::QUEUE_KNOWN, [queue.as_str()], |_| Ok(()))?.is_some();
        if known && eligibility.any(conn, queue)? {
            probed.due.push(queue.clone());
        }
    }
    probed.next_due = eligible::next_delay(conn, &request.app)?.map(|due| due.since(snapshot.now));
    Ok(probed)
}

fn audit(snapshot: &Snapshot<'_>, request: &Audit) -> rusqlite::Result<Audited> {
    let (created, id) = match &request.after {
        Some(after) => (after.created_at.0, after.id.as_str()),
        None => (i64::MIN, ""),
    };
    let most = i64::from(request.limit) + 1;
    let params = params![request.executor.as_str(), created, id, most];
    let mut found = snapshot.conn.list(sql::HELD, params, |found| Ok((cursor(found), held(found))))?;
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let more = found.len() > limit;
    found.truncate(limit);
    let mut audited = Audited::new(snapshot.now);
    for (cursor, held) in found {
        match held {
            Err(error) if error::is_unreadable(&error) => tracing::warn!(%error, "a pending row has no fence"),
            held => audited.rows.push(held?),
        }
        // The next page begins behind the last row that can be named.
        if let (Ok(cursor), true) = (cursor, more) {
            audited.next = Some(cursor);
        }
    }
    Ok(audited)
}

fn cursor(found: &Row<'_>) -> rusqlite::Result<AuditCursor> {
    Ok(AuditCursor { created_at: Timestamp::from_millis(found.get(1)?), id: row::text(found, 0)? })
}

fn held(found: &Row<'_>) -> rusqlite::Result<HeldRow> {
    let id: WorkflowId = row::text(found, 0)?;
    let owner: Option<String> = found.get(3)?;
    let started_at = row::stamp_if(found, 4)?;
    let (Some(owner), Some(started_at)) = (owner, started_at) else {
        return Err(unreadable("owner_xid", format!("{id} is pending without an owner and a start")));
    };
    let fence = row::fence(&id, started_at, &owner);
    let mut held = HeldRow::new(fence, Timestamp::from_millis(found.get(1)?));
    held.queue = row::text_if(found, 2)?;
    held.token = Some(owner.into());
    Ok(held)
}

/// A queue's row.
pub(crate) fn read(conn: &Connection, name: &QueueName) -> rusqlite::Result<Option<Queue>> {
    conn.maybe(sql::QUEUE, [name.as_str()], decode)
}

/// The queues of an application and of none, by name, and the names of those that cannot be read.
pub(crate) fn all(conn: &Connection, app: &AppName) -> rusqlite::Result<(Vec<Queue>, Vec<QueueName>)> {
    let (mut queues, mut malformed) = (Vec::new(), Vec::new());
    for found in conn.list(sql::QUEUES, [app.as_str()], |found| Ok((row::text(found, 0)?, decode(found))))? {
        match found {
            (_, Ok(queue)) => queues.push(queue),
            (name, Err(error)) => {
                tracing::warn!(queue = %name, %error, "a queue's row cannot be read");
                malformed.push(name);
            }
        }
    }
    Ok((queues, malformed))
}

/// A queue, selected by the columns of `sql::QUEUE`.
fn decode(found: &Row<'_>) -> rusqlite::Result<Queue> {
    let mut queue = Queue::new(row::text::<QueueName>(found, 0)?, Revision(found.get(1)?));
    queue.app = row::text_if(found, 2)?;
    queue.stored = Limits {
        concurrency: found.get(3)?,
        worker_concurrency: found.get(4)?,
        rate: rate(found.get(5)?, found.get(6)?)?,
        partition_concurrency: found.get(7)?,
        partition_worker_concurrency: found.get(8)?,
        partition_rate: rate(found.get(9)?, found.get(10)?)?,
    };
    queue.partition_flag = found.get(11)?;
    queue.polling = interval(found.get(12)?)?;
    queue.created_at = Timestamp::from_millis(found.get(13)?);
    Ok(queue)
}

fn rate(starts: Option<u32>, period: Option<f64>) -> rusqlite::Result<Option<Rate>> {
    match (starts, period) {
        (Some(starts), Some(period)) => Ok(Some(Rate { starts, period: interval(period)? })),
        (None, None) => Ok(None),
        _ => Err(unreadable("rate_limit_period_sec", "a rate needs both its starts and its period")),
    }
}

/// A stored number of seconds. A float holds whole nanoseconds only up to some days, and whole milliseconds beyond.
fn interval(seconds: f64) -> rusqlite::Result<Duration> {
    let exact = Duration::try_from_secs_f64(seconds).map_err(|error| unreadable("seconds", error.to_string()))?;
    if seconds < FINE_SECONDS {
        return Ok(exact);
    }
    Ok(Duration::from_millis(u64::try_from((exact + Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX)))
}

/// Writes a queue's row with one of the two statements that take all its columns.
pub(crate) fn write(conn: &Connection, statement: &'static str, queue: &Queue) -> rusqlite::Result<()> {
    let Limits { rate, partition_rate, .. } = queue.stored;
    let params = params![
        queue.name.as_str(),
        queue.revision.0,
        row::bound(queue.app.as_ref()),
        queue.stored.concurrency,
        queue.stored.worker_concurrency,
        rate.map(|rate| rate.starts),
        rate.map(|rate| rate.period.as_secs_f64()),
        queue.stored.partition_concurrency,
        queue.stored.partition_worker_concurrency,
        partition_rate.map(|rate| rate.starts),
        partition_rate.map(|rate| rate.period.as_secs_f64()),
        queue.partition_flag,
        queue.polling.as_secs_f64(),
        queue.created_at.0,
    ];
    conn.run(statement, params).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_read_back_as_it_was_written() {
        for written in [
            Duration::from_millis(1),
            Duration::from_millis(1_001),
            Duration::from_micros(1_500),
            Duration::from_secs(86_400 * 30),
            Duration::from_millis(86_400_000 * 365 + 7),
        ] {
            assert_eq!(interval(written.as_secs_f64()).expect("interval"), written);
        }
        assert!(interval(-1.0).is_err() && interval(f64::NAN).is_err());
    }

    #[test]
    fn half_a_rate_is_no_rate() {
        assert!(rate(Some(1), None).is_err() && rate(None, Some(1.0)).is_err());
        assert_eq!(rate(None, None).expect("none"), None);
    }
}
