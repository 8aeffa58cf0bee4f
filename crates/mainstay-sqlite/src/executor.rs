//! Leases of executors, and the proof that one is dead.

use async_trait::async_trait;
use mainstay_store::{
    Beat, Beaten, Bounds, ExecutorId, ExecutorStore, Lease, Leases, Result, StoreError, TakeOver, TakenOver, Wakeup,
    WorkflowId,
};
use rusqlite::{Connection, params};

use crate::locks::Locks;
use crate::row;
use crate::sql::{self, Cached};
use crate::store::Sqlite;
use crate::transition::{self, Execution};
use crate::tx::{After, Tx};

/// A lease, with the name of the file that its process keeps locked.
#[derive(Debug)]
pub(crate) struct Watched {
    lease: Lease,
    lock: Option<String>,
}

#[async_trait]
impl ExecutorStore for Sqlite {
    async fn lease_beat(&self, request: Beat) -> Result<Beaten> {
        let op = "lease_beat";
        request.check(&Bounds::default()).map_err(|field| StoreError::field_error(op, field))?;
        let locks = self.inner.locks.clone();
        self.write(op, move |tx| beat(tx, &locks, &request)).await
    }

    async fn lease_list(&self, app: &mainstay_store::AppName) -> Result<Leases> {
        let (app, locks) = (app.clone(), self.inner.locks.clone());
        self.read("lease_list", move |snapshot| {
            let mut leases = Leases::new(snapshot.now);
            leases.leases = judged(&locks, watched(snapshot.conn, app.as_str())?);
            Ok(leases)
        })
        .await
    }

    async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver> {
        let op = "lease_take_over";
        request.check(&Bounds::default()).map_err(|field| StoreError::field_error(op, field))?;
        self.write(op, move |tx| take_over(tx, &request)).await
    }
}

/// A beat as its column holds it.
fn stored(beat: u64) -> i64 {
    i64::try_from(beat).unwrap_or(i64::MAX)
}

struct Stored {
    beat: i64,
    ended: bool,
    lock: Option<String>,
}

fn lease(conn: &Connection, executor: &ExecutorId) -> rusqlite::Result<Option<Stored>> {
    conn.maybe(sql::LEASE, [executor.as_str()], |found| {
        Ok(Stored { beat: found.get(0)?, ended: found.get(1)?, lock: found.get(2)? })
    })
}

/// Whether an executor may claim and start.
pub(crate) fn is_leased(conn: &Connection, executor: &ExecutorId) -> rusqlite::Result<bool> {
    Ok(lease(conn, executor)?.is_some_and(|lease| !lease.ended))
}

/// Moves the counter, or opens the lease. The lock is taken before the lease can be seen, so that no one who sees the
/// lease finds the lock free while its process lives.
pub(crate) fn beat(tx: &mut Tx<'_>, locks: &Locks, request: &Beat) -> rusqlite::Result<Beaten> {
    let executor = &request.executor;
    match lease(tx.conn, executor)? {
        Some(lease) if !lease.ended => {
            tx.conn.run(sql::LEASE_BEAT, params![executor.as_str(), stored(request.beat)])?;
            if let Some(held) = locks.hold(executor, lease.lock.as_deref())
                && lease.lock.as_ref() != Some(&held)
            {
                tx.conn.run(sql::LEASE_LOCK, params![executor.as_str(), held])?;
            }
            Ok(Beaten::Alive)
        }
        None if request.beat == 1 => {
            let lock = locks.hold(executor, None);
            tx.conn.run(sql::LEASE_OPEN, params![executor.as_str(), request.app.as_str(), lock])?;
            Ok(Beaten::Alive)
        }
        _ => {
            tx.after.push(After::Unlock(executor.clone()));
            Ok(Beaten::Gone)
        }
    }
}

/// The leases of an application, by executor.
pub(crate) fn watched(conn: &Connection, app: &str) -> rusqlite::Result<Vec<Watched>> {
    conn.list(sql::LEASES, [app], |found| {
        let beat = u64::try_from(found.get::<_, i64>(2)?).unwrap_or(0);
        let lease =
            Lease::new(row::text::<ExecutorId>(found, 0)?, row::text::<mainstay_store::AppName>(found, 1)?, beat);
        Ok(Watched { lease: lease.ended(found.get(3)?), lock: found.get(4)? })
    })
}

/// The leases with what their locks prove.
pub(crate) fn judged(locks: &Locks, watched: Vec<Watched>) -> Vec<Lease> {
    let judge = |Watched { lease, lock }: Watched| lease.dead(lock.is_some_and(|lock| locks.proves_death(&lock)));
    watched.into_iter().map(judge).collect()
}

fn take_over(tx: &mut Tx<'_>, request: &TakeOver) -> rusqlite::Result<TakenOver> {
    let executor = &request.executor;
    let Some(lease) = lease(tx.conn, executor)? else {
        return Ok(TakenOver::Rows { ids: Vec::new(), more: false });
    };
    if !lease.ended && lease.beat != stored(request.beat) {
        return Ok(TakenOver::Alive);
    }
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let params = params![executor.as_str(), i64::from(request.limit) + 1];
    let mut ids: Vec<WorkflowId> = tx.conn.list(sql::TAKE, params, |found| row::text(found, 0))?;
    let more = ids.len() > limit;
    ids.truncate(limit);
    for id in &ids {
        let before = Execution::of_known(tx, id)?;
        transition::give_back(tx, id, &before, &request.fallback, None)?;
        tx.hint(Wakeup::Workflow(id.clone()));
    }
    if more {
        tx.conn.run(sql::LEASE_END, [executor.as_str()])?;
    } else {
        tx.conn.run(sql::LEASE_REMOVE, [executor.as_str()])?;
        tx.after.push(After::Unlock(executor.clone()));
        tx.after.extend(lease.lock.map(After::RemoveLock));
    }
    Ok(TakenOver::Rows { ids, more })
}
