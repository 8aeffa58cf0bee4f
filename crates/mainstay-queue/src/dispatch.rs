//! The handle of a running engine.

use std::sync::Arc;
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{Beat, Beaten, ErrorKind, ExecutorId, Store, StoreError, TakeOver, TakenOver, WorkflowId};

use crate::config::Config;
use crate::launcher::Launcher;
use crate::shared::{Errand, Shared};
use crate::slot::Slot;
use crate::stats::Stats;
use crate::tally::Body;
use crate::{prober, service, supervisor, upkeep};

/// How long `stop_claiming` waits for claims that are out; the rows of a later one are given back.
const SETTLE: Duration = Duration::from_secs(5);
/// How long all that runs must only wait until a shutdown takes it for settled: a wait that has ended is resumed in that time.
const STILL: Duration = Duration::from_millis(250);
/// Looks in that time.
const STILL_LOOKS: u32 = 5;
/// How long a shutdown gives the store, after its limit, to end the lease.
const GRACE: Duration = Duration::from_secs(1);

/// Answer to a direct start that asks for a place.
#[derive(Debug)]
#[non_exhaustive]
pub enum Begun {
    /// Start it: submit it to run in this executor, ask [`Slot::is_current`] in the same breath in which the body starts,
    /// and let its execution own the slot.
    Here {
        /// The executor to name in the submit.
        executor: ExecutorId,
        /// The count, on no queue.
        slot: Slot,
    },
    /// No place, no live lease, or the engine stops: submit it to the internal queue.
    Full,
}

/// What a shutdown left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Workflows that still ran at the deadline and were dropped, in order of id.
    pub evicted: Vec<WorkflowId>,
    /// Rows enqueued again by ending the own lease.
    pub returned: Vec<WorkflowId>,
    /// Whether the lease is ended; otherwise it stands still and others take it over in time.
    pub ended: bool,
}

/// A running engine; clones are the same one. Its tasks belong to the store's environment and go on when all clones are
/// dropped.
#[derive(Clone, Debug)]
pub struct Dispatch {
    pub(crate) shared: Arc<Shared>,
}

impl Dispatch {
    /// Opens a lease and starts the engine in tasks of the store's environment.
    ///
    /// Errors: `Invalid` for a setting out of its bounds, named as `config.ttl`, before anything is written; those of the
    /// first beat. Nothing runs then.
    pub async fn launch(
        store: Arc<dyn Store>,
        launcher: Arc<dyn Launcher>,
        config: Config,
    ) -> Result<Self, StoreError> {
        config.check().map_err(|error| StoreError::field_error("launch", error))?;
        let executor = ExecutorId::new(format!("{}~{}", config.executor, store.env().nonce()));
        let beat = Beat::new(executor.clone(), config.app.clone(), 1_u64);
        if store.lease_beat(beat).await? != Beaten::Alive {
            return Err(StoreError::new(ErrorKind::Bug, "lease_beat"));
        }
        tracing::info!(%executor, app = %config.app, version = %config.version, "engine launched");
        let shared = Shared::new(store, launcher, config, executor);
        service::keep(&shared, "supervisor", supervisor::run);
        service::keep(&shared, "prober", prober::run);
        service::keep(&shared, "upkeep", upkeep::run);
        Ok(Self { shared })
    }

    /// The executor as it is now; it changes when the lease was lost.
    #[must_use]
    pub fn executor(&self) -> ExecutorId {
        self.shared.identity(|identity| identity.executor.clone())
    }

    /// Asks for a place for a direct start. An old body of the same workflow is not looked for: its id is new, or the
    /// submit says whose it is.
    #[must_use]
    pub fn begin(&self, id: &WorkflowId) -> Begun {
        // The identity under the lock of the counts: a loss that comes later finds the slot.
        let mut tally = self.shared.counts.lock();
        let identity = self.shared.identity(|identity| identity.clone());
        if identity.stopping || !identity.leased {
            return Begun::Full;
        }
        let executor = identity.executor;
        let body =
            Body { id: id.clone(), queue: None, key: None, fence: None, token: None, executor: executor.clone() };
        if tally.places() == 0 {
            return Begun::Full;
        }
        Begun::Here { executor, slot: Slot::new(self.shared.counts.clone(), tally.take(body)) }
    }

    /// The numbers as they are now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let workers = self.shared.lanes.all().iter().filter(|cell| cell.is_alive()).count();
        let mut stats = self.shared.counters.lock().clone();
        let tally = self.shared.counts.lock();
        stats.running = tally.running();
        stats.active = tally.active();
        stats.queues = tally.by_queue();
        stats.workers = u32::try_from(workers).unwrap_or(u32::MAX);
        stats
    }

    /// The workflows that run here, in order of id.
    #[must_use]
    pub fn running(&self) -> Vec<WorkflowId> {
        self.shared.counts.lock().ids()
    }

    /// Begins no claim any more; what runs goes on, and so do beat, tick and audit.
    ///
    /// Returns when no claim is out, or after 5 s. Rows that a claim brings from now on are given back.
    pub async fn stop_claiming(&self) {
        self.stop_by(self.shared.env.deadline(SETTLE)).await;
    }

    async fn stop_by(&self, deadline: Monotonic) {
        self.shared.stop();
        let settled = async {
            loop {
                let settled = self.shared.lanes.settled.notified();
                if !self.shared.lanes.claim_is_out() {
                    return;
                }
                settled.await;
            }
        };
        let _ = self.shared.env.timeout_at(deadline, settled).await;
    }

    /// Stops claiming, waits up to `limit` for what runs, drops the rest, and ends the own lease, so that its rows can be
    /// claimed at once. What only waits in durable calls is not waited for: it stands at a point that any process goes on from.
    ///
    /// Returns within two seconds of the limit even when the store hangs; the lease then expires in the eyes of others.
    pub async fn shutdown(&self, limit: Duration) -> Drained {
        let shared = &self.shared;
        let deadline = shared.env.deadline(limit);
        self.stop_by(deadline.min(shared.env.deadline(SETTLE))).await;
        let _ = shared.env.timeout_at(deadline, settled(shared)).await;
        let evicted = self.running();
        for id in &evicted {
            shared.evict(id);
        }
        // No beat may move the lease while it is being ended.
        shared.tasks.close();
        shared.tasks.abort_all();
        let _ = shared.env.timeout(GRACE / 2, return_rows(shared)).await;
        let returned = shared.env.timeout(GRACE, end_lease(shared)).await.ok().and_then(Result::ok);
        let left = shared.tasks.drain(shared.env.monotonic()).await;
        let (evicting, tasks) = (evicted.len(), left.len());
        tracing::info!(evicted = evicting, tasks, ended = returned.is_some(), "engine stopped");
        Drained { evicted, ended: returned.is_some(), returned: returned.unwrap_or_default() }
    }
}

/// Waits until nothing runs, or all that runs has waited in durable calls for a while.
async fn settled(shared: &Shared) {
    let mut looks = 0;
    while looks < STILL_LOOKS {
        if shared.env.timeout(STILL / STILL_LOOKS, shared.counts.emptied()).await.is_ok() {
            return;
        }
        looks = if shared.counts.lock().active() == 0 { looks + 1 } else { 0 };
    }
}

/// Gives back what the upkeep has not come to: the end of the lease would count an attempt of rows that never began.
async fn return_rows(shared: &Shared) -> Result<(), StoreError> {
    let mut units: Vec<_> = shared.returns().drain(..).map(|row| row.unit()).collect();
    units.extend(shared.errands.take().into_iter().filter_map(|errand| match errand {
        Errand::GiveBack(row) => Some(row.unit()),
        Errand::TakeOver(_) | Errand::Suspect | Errand::Renewed => None,
    }));
    if !units.is_empty() {
        shared.store.commit(&units).await?;
    }
    Ok(())
}

/// Takes the own lease over, page by page.
async fn end_lease(shared: &Shared) -> Result<Vec<WorkflowId>, StoreError> {
    let (executor, mut beat) = shared.identity(|identity| (identity.executor.clone(), identity.beat));
    let mut returned = Vec::new();
    loop {
        match shared.store.lease_take_over(TakeOver::new(executor.clone(), beat)).await? {
            TakenOver::Rows { ids, more } => {
                returned.extend(ids);
                if !more {
                    return Ok(returned);
                }
            }
            // A beat was lost, or came late: the stored one counts.
            _ => {
                let leases = shared.store.lease_list(&shared.config.app).await?.leases;
                let Some(own) = leases.into_iter().find(|lease| lease.executor == executor) else {
                    return Ok(returned);
                };
                beat = own.beat;
            }
        }
    }
}
