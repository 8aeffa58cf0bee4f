//! The tick and the collection of ended rows.

use std::collections::BTreeSet;

use async_trait::async_trait;
use mainstay_store::model::wire;
use mainstay_store::{
    AppName, Beaten, Bounds, Collect, Collected, Maintenance, Outcome, QueueName, RegistryStamp, Result, StoreError,
    Tick, Ticked, Timestamp, WorkflowId,
};
use rusqlite::{Connection, Row, params};

use crate::eligible;
use crate::executor::{self, Watched};
use crate::locks::Locks;
use crate::queues;
use crate::row;
use crate::sql::{self, Cached};
use crate::store::Sqlite;
use crate::transition::{self, Execution};
use crate::tx::Tx;

#[async_trait]
impl Maintenance for Sqlite {
    async fn tick(&self, request: Tick) -> Result<Ticked> {
        let op = "tick";
        request.check(&Bounds::default()).map_err(|field| StoreError::field_error(op, field))?;
        let locks = self.inner.locks.clone();
        let (mut ticked, watched) = self.write(op, move |tx| tick(tx, &locks, &request)).await?;
        // Files are tried outside the transaction, and on a thread that may wait for them.
        if !watched.is_empty() {
            let (locks, mut watched) = (self.inner.locks.clone(), Some(watched));
            ticked.leases =
                self.read(op, move |_| Ok(executor::judged(&locks, watched.take().unwrap_or_default()))).await?;
        }
        Ok(ticked)
    }

    async fn collect(&self, request: Collect) -> Result<Collected> {
        let op = "collect";
        request.check(&Bounds::default()).map_err(|field| StoreError::field_error(op, field))?;
        self.write(op, move |tx| collect(tx, &request)).await
    }
}

fn tick(tx: &mut Tx<'_>, locks: &Locks, request: &Tick) -> rusqlite::Result<(Ticked, Vec<Watched>)> {
    let app = &request.app;
    let released = release(tx, app, request.limit)?;
    let cancelled = cancel_late(tx, app, request.limit)?;
    let beat: Option<Beaten> = request.beat.as_ref().map(|beat| executor::beat(tx, locks, beat)).transpose()?;
    let stamp = RegistryStamp(tx.conn.exactly(sql::STAMP, [], |found| found.get(0))?);
    let mut ticked = Ticked::new(tx.now, stamp);
    if request.seen != Some(stamp) {
        let (queues, malformed) = queues::all(tx.conn, app)?;
        ticked.queues = Some(queues);
        ticked.malformed = malformed;
    }
    let due = eligible::next_delay(tx.conn, app)?;
    let late = eligible::earliest(tx.conn, sql::NEXT_DEADLINE, app)?;
    ticked.next_due = due.into_iter().chain(late).min().map(|at| at.since(tx.now));
    ticked.catalog = tx.conn.exactly(sql::CATALOG, [], |found| found.get(0))?;
    ticked.released = released.into_iter().collect();
    ticked.cancelled = cancelled;
    ticked.beat = beat;
    Ok((ticked, executor::watched(tx.conn, app.as_str())?))
}

/// Enqueues what is due, in order of (due, id). A row that has lost its queue goes to the internal one.
fn release(tx: &mut Tx<'_>, app: &AppName, limit: u32) -> rusqlite::Result<BTreeSet<QueueName>> {
    let due = first(tx.conn, sql::DUE, app, tx.now, limit, |found| {
        Ok((found.get::<_, i64>(0)?, row::text::<WorkflowId>(found, 1)?, row::text_if::<QueueName>(found, 2)?))
    })?;
    let mut queues = BTreeSet::new();
    for (_, id, queue) in due {
        let queue = queue.unwrap_or_else(|| {
            tracing::warn!(workflow = %id, "a delayed row has no queue");
            wire::INTERNAL_QUEUE.into()
        });
        transition::release(tx, &id, &queue)?;
        queues.insert(queue);
    }
    Ok(queues)
}

/// Cancels open rows whose deadline has come, the earliest first, and names them in order of id.
fn cancel_late(tx: &mut Tx<'_>, app: &AppName, limit: u32) -> rusqlite::Result<Vec<WorkflowId>> {
    let late = first(tx.conn, sql::LATE, app, tx.now, limit, stamped_id)?;
    let mut cancelled = Vec::with_capacity(late.len());
    for (_, id) in late {
        let before = Execution::of_known(tx, &id)?;
        transition::end(tx, &id, &before, &Outcome::Cancelled)?;
        cancelled.push(id);
    }
    cancelled.sort_unstable();
    Ok(cancelled)
}

fn collect(tx: &mut Tx<'_>, request: &Collect) -> rusqlite::Result<Collected> {
    let until = tx.now - request.age;
    let limit = request.limit.saturating_add(1);
    let mut old = first(tx.conn, sql::OLD, &request.app, until, limit, stamped_id)?;
    let mut collected = Collected::new(tx.now);
    collected.more = old.len() > usize::try_from(request.limit).unwrap_or(usize::MAX);
    old.truncate(usize::try_from(request.limit).unwrap_or(usize::MAX));
    for (_, id) in &old {
        let before = Execution::of_known(tx, id)?;
        transition::delete(tx, id, &before)?;
    }
    collected.removed = u32::try_from(old.len()).unwrap_or(u32::MAX);
    Ok(collected)
}

fn stamped_id(found: &Row<'_>) -> rusqlite::Result<(i64, WorkflowId)> {
    Ok((found.get(0)?, row::text(found, 1)?))
}

/// The first rows up to a moment of an application and of none, in their common order.
fn first<T: Ord>(
    conn: &Connection,
    sql: &'static str,
    app: &AppName,
    until: Timestamp,
    limit: u32,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut found = Vec::new();
    for owner in [Some(app.as_str()), None] {
        found.extend(conn.readable("upkeep", sql, params![owner, until.0, limit], read)?);
    }
    found.sort_unstable();
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found)
}
