//! The handle of a running engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mainstay_env::{Env, Tasks};
use mainstay_store::{
    Beat, Claim, ClaimedRow, ErrorKind, ExecutorId, QueueName, Registered, Store, StoreError, TakeOver, TakenOver,
    Tick, Token, WorkflowId, wire,
};

use crate::config::Config;
use crate::launcher::{Launcher, Work};
use crate::slot::{Counts, Slot, Waker};
use crate::stats::{Counters, Stats};
use crate::tally::Body;

/// Answer to a direct start that asks for a place.
#[derive(Debug)]
#[non_exhaustive]
pub enum Begun {
    /// Start it: submit it to run in this executor, and let its execution own the slot.
    Here {
        /// The executor to name in the submit.
        executor: ExecutorId,
        /// The count, on no queue.
        slot: Slot,
    },
    /// No place, no live lease or no wish for work: submit it to the internal queue.
    Full,
}

/// What a shutdown left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Workflows that still ran at the deadline and were dropped.
    pub evicted: Vec<WorkflowId>,
    /// Rows enqueued again by ending the own lease.
    pub returned: Vec<WorkflowId>,
    /// Whether the lease is ended; otherwise it stands still and others take it over in time.
    pub ended: bool,
}

/// A running engine; clones are the same one.
#[derive(Clone, Debug)]
pub struct Dispatch {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    env: Env,
    tasks: Tasks,
    launcher: Arc<dyn Launcher>,
    names: Arc<[Registered]>,
    config: Config,
    counts: Arc<Counts>,
    counters: Counters,
    identity: Mutex<Identity>,
}

#[derive(Debug)]
struct Identity {
    executor: ExecutorId,
    beat: u64,
    stopping: bool,
}

struct Deaf;

impl Waker for Deaf {
    fn freed(&self, _: &QueueName) {}
    fn room(&self, _: &QueueName) {}
}

impl Dispatch {
    /// Opens a lease and starts the engine in tasks of the store's environment.
    ///
    /// Errors: those of the first beat; nothing runs then.
    pub async fn launch(
        store: Arc<dyn Store>,
        launcher: Arc<dyn Launcher>,
        config: Config,
    ) -> Result<Self, StoreError> {
        let env = store.env().clone();
        let executor = ExecutorId::new(format!("{}~{}", config.executor, env.nonce()));
        store.lease_beat(Beat::new(executor.clone(), config.app.clone(), 1_u64)).await?;
        let shared = Arc::new(Shared {
            tasks: env.tasks().group("queue"),
            names: launcher.registered(),
            counts: Counts::new(config.max_running, Deaf),
            counters: Counters::default(),
            identity: Mutex::new(Identity { executor, beat: 1, stopping: false }),
            store,
            env,
            launcher,
            config,
        });
        let looping = shared.clone();
        drop(shared.tasks.spawn("supervisor", async move { looping.run().await }));
        Ok(Self { shared })
    }

    /// The executor as it is now; it changes when the lease was lost.
    #[must_use]
    pub fn executor(&self) -> ExecutorId {
        self.shared.with(|identity| identity.executor.clone())
    }

    /// Asks for a place for a direct start.
    #[must_use]
    pub fn begin(&self, id: &WorkflowId) -> Begun {
        let shared = &self.shared;
        let stopping = shared.with(|identity| identity.stopping);
        if stopping || shared.counts.lock().places() == 0 {
            return Begun::Full;
        }
        let executor = self.executor();
        let body =
            Body { id: id.clone(), queue: None, key: None, fence: None, token: None, executor: executor.clone() };
        Begun::Here { executor, slot: shared.counts.take(body) }
    }

    /// The numbers as they are now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.shared.counters.lock().clone();
        let tally = self.shared.counts.lock();
        stats.running = tally.running();
        stats.active = tally.active();
        stats.queues = tally.by_queue();
        stats
    }

    /// The workflows that run here, in order of id.
    #[must_use]
    pub fn running(&self) -> Vec<WorkflowId> {
        self.shared.counts.lock().ids()
    }

    /// Begins no claim any more; what runs goes on.
    pub async fn stop_claiming(&self) {
        self.shared.with(|identity| identity.stopping = true);
    }

    /// Stops claiming, waits up to `limit` for what runs, drops the rest and ends the lease, so that its rows can be claimed.
    pub async fn shutdown(&self, limit: Duration) -> Drained {
        let shared = &self.shared;
        self.stop_claiming().await;
        let _ = shared.env.timeout(limit, shared.counts.emptied()).await;
        let evicted = self.running();
        for id in &evicted {
            shared.launcher.evict(id);
        }
        shared.tasks.close();
        shared.tasks.abort_all();
        let ending = shared.env.timeout(Duration::from_secs(1), shared.end_lease()).await;
        let returned = ending.ok().and_then(Result::ok);
        Drained { evicted, ended: returned.is_some(), returned: returned.unwrap_or_default() }
    }
}

impl Shared {
    fn with<T>(&self, act: impl FnOnce(&mut Identity) -> T) -> T {
        act(&mut self.identity.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn run(self: Arc<Self>) {
        let mut queues = BTreeMap::new();
        loop {
            let request = self.with(|identity| {
                identity.beat += 1;
                let beat = Beat::new(identity.executor.clone(), self.config.app.clone(), identity.beat);
                Tick::new(self.config.app.clone()).beat(beat)
            });
            if let Ok(ticked) = self.store.tick(request).await
                && let Some(rows) = ticked.queues
            {
                queues = rows.into_iter().map(|queue| (queue.name.clone(), Some(queue.revision))).collect();
            }
            queues.insert(QueueName::from(wire::INTERNAL_QUEUE), None);
            for (name, revision) in &queues {
                if self.with(|identity| identity.stopping) {
                    return;
                }
                let _ = self.claim(name, *revision).await;
            }
            self.env.sleep(Duration::from_millis(200)).await;
        }
    }

    async fn claim(&self, name: &QueueName, revision: Option<mainstay_store::Revision>) -> Result<(), StoreError> {
        let places = self.counts.lock().places().min(self.config.batch);
        if places == 0 {
            return Ok(());
        }
        let executor = self.with(|identity| identity.executor.clone());
        let token = Token::new(self.env.ids().uuid());
        let (app, version) = (self.config.app.clone(), self.config.version.clone());
        let mut claim = Claim::new(name.clone(), executor.clone(), app, version, token.clone())
            .names(self.names.to_vec())
            .budget(places)
            .local(self.counts.lock().local(name));
        claim.revision = revision;
        let claimed = self.store.queue_claim(claim).await?;
        for row in claimed.rows {
            self.start(row, name, &token, &executor);
        }
        Ok(())
    }

    fn start(&self, row: ClaimedRow, queue: &QueueName, token: &Token, executor: &ExecutorId) {
        let id = row.row.id.clone();
        let lives = self.counts.lock().runs(&id);
        if lives {
            self.launcher.evict(&id);
        }
        let slot = self.counts.take(Body {
            id,
            queue: Some(queue.clone()),
            key: row.row.key.clone(),
            fence: Some(row.fence.clone()),
            token: Some(token.clone()),
            executor: executor.clone(),
        });
        self.launcher.launch(Work::new(row, slot));
    }

    async fn end_lease(&self) -> Result<Vec<WorkflowId>, StoreError> {
        let (executor, beat) = self.with(|identity| (identity.executor.clone(), identity.beat));
        let mut returned = Vec::new();
        loop {
            match self.store.lease_take_over(TakeOver::new(executor.clone(), beat)).await? {
                TakenOver::Rows { ids, more } => {
                    returned.extend(ids);
                    if !more {
                        return Ok(returned);
                    }
                }
                _ => return Err(StoreError::new(ErrorKind::Contended, "lease_take_over")),
            }
        }
    }
}
