//! What the tasks of one engine share.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_env::{Env, Rng, Tasks};
use mainstay_store::{
    Beat, Claim, Effect, ErrorKind, ExecutorId, Fence, QueueName, Registered, Store, StoreError, Token, Unit,
    WorkflowId,
};

use crate::config::Config;
use crate::failing::Failing;
use crate::lane::{LaneInput, Pace};
use crate::lanes::{LaneWaker, Lanes};
use crate::launcher::Launcher;
use crate::mail::Mail;
use crate::slot::Counts;
use crate::stats::Counters;
use crate::supervisor::Ward;
use crate::watch::Dead;

/// Who this process is to the store.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) executor: ExecutorId,
    /// Raised when a lease is lost and when the next is open; what was begun in an older epoch is void.
    pub(crate) epoch: u64,
    /// Number of the last beat sent.
    pub(crate) beat: u64,
    /// False from the loss of a lease until the next one is open.
    pub(crate) leased: bool,
    pub(crate) stopping: bool,
}

/// What the supervisor is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// The task of this queue's worker has ended.
    Ended(QueueName),
    /// A claim of this epoch was answered that the lease is gone.
    Unleased(u64),
    /// The engine stops.
    Stop,
}

/// A row on its way back to its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Return {
    pub(crate) fence: Fence,
    /// How long it stays away.
    pub(crate) delay: Option<Duration>,
    /// Whether its body may have begun.
    pub(crate) begun: bool,
}

impl Return {
    pub(crate) fn unit(&self) -> Unit {
        Unit::by(&self.fence).effect(Effect::GiveBack { delay: self.delay, begun: self.begun })
    }
}

/// What the upkeep is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Give this row back.
    GiveBack(Return),
    /// Take this lease over.
    TakeOver(Dead),
    /// Rows may be held that run nowhere.
    Suspect,
    /// There is a new executor to audit.
    Renewed,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) env: Env,
    pub(crate) tasks: Tasks,
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) names: Arc<[Registered]>,
    pub(crate) config: Config,
    pub(crate) counts: Arc<Counts>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) counters: Counters,
    pub(crate) failing: Failing,
    pub(crate) ward: Mutex<Ward>,
    pub(crate) notes: Mail<Note>,
    pub(crate) errands: Mail<Errand>,
    /// Rows that the upkeep is to give back, until the store has answered for them: they outlive it.
    returns: Mutex<VecDeque<Return>>,
    identity: Mutex<Identity>,
    rng: Rng,
}

impl Shared {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        launcher: Arc<dyn Launcher>,
        config: Config,
        executor: ExecutorId,
    ) -> Arc<Self> {
        let env = store.env().clone();
        let lanes = Arc::new(Lanes::default());
        Arc::new(Self {
            tasks: env.tasks().group("queue"),
            names: launcher.registered(),
            counts: Counts::new(config.max_running, LaneWaker(lanes.clone())),
            lanes,
            counters: Counters::default(),
            failing: Failing::default(),
            ward: Mutex::new(Ward::new(env.monotonic(), &config)),
            notes: Mail::default(),
            errands: Mail::default(),
            returns: Mutex::default(),
            identity: Mutex::new(Identity { executor, epoch: 0, beat: 1, leased: true, stopping: false }),
            rng: env.rng().child("queue"),
            env,
            store,
            launcher,
            config,
        })
    }

    pub(crate) fn identity<T>(&self, act: impl FnOnce(&mut Identity) -> T) -> T {
        act(&mut self.identity.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn returns(&self) -> MutexGuard<'_, VecDeque<Return>> {
        self.returns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.identity(|identity| identity.stopping)
    }

    pub(crate) fn is_leased(&self) -> bool {
        self.identity(|identity| identity.leased)
    }

    /// Whether the lease of `epoch` is there still, as far as this process has heard.
    pub(crate) fn is_under(&self, epoch: u64) -> bool {
        self.identity(|identity| identity.leased && identity.epoch == epoch)
    }

    /// Tells of a call that failed; of a queue where it was about one.
    pub(crate) fn failed(&self, op: &'static str, queue: Option<&QueueName>, error: &StoreError) {
        self.failing.failed(&self.env, op, queue, error);
    }

    /// Tells of a call that was answered, if it failed before.
    pub(crate) fn answered(&self, op: &'static str, queue: Option<&QueueName>) {
        self.failing.answered(&self.env, op, queue);
    }

    /// Tells of a call that was given up.
    pub(crate) fn timed_out(&self, op: &'static str) {
        self.failed(op, None, &StoreError::new(ErrorKind::Timeout, op));
    }

    /// A call about no one queue, given up when it takes too long; how it went is told of.
    pub(crate) async fn call<T>(
        &self,
        op: &'static str,
        patience: Duration,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = self.env.timeout(patience, call).await;
        let answer = answer.unwrap_or_else(|_| Err(StoreError::new(ErrorKind::Timeout, op)));
        match &answer {
            Ok(_) => self.answered(op, None),
            Err(error) => self.failed(op, None, error),
        }
        answer
    }

    /// A number in [0, 1) for jitter.
    pub(crate) fn draw(&self) -> f64 {
        // 32 bits: more would not show in a delay.
        self.rng.below(1 << 32) as f64 / (1_u64 << 32) as f64
    }

    pub(crate) fn pace(&self) -> Pace {
        Pace { batch: self.config.batch, cooldown: self.config.cooldown }
    }

    /// The next beat of the present lease.
    pub(crate) fn next_beat(&self) -> (Beat, u64) {
        self.counters.lock().beats += 1;
        self.identity(|identity| {
            identity.beat += 1;
            (Beat::new(identity.executor.clone(), self.config.app.clone(), identity.beat), identity.epoch)
        })
    }

    /// A new claim of one queue and the epoch that it belongs to.
    pub(crate) fn new_claim(&self, queue: &QueueName) -> (Claim, u64) {
        let (executor, epoch) = self.identity(|identity| (identity.executor.clone(), identity.epoch));
        let token = Token::new(self.env.ids().uuid());
        let (app, version) = (self.config.app.clone(), self.config.version.clone());
        (Claim::new(queue.clone(), executor, app, version, token).names(self.names.to_vec()), epoch)
    }

    /// Drops the old body of a workflow; false when the launcher panicked, and the body may still live.
    pub(crate) fn evict(&self, id: &WorkflowId) -> bool {
        self.counters.lock().evicted += 1;
        self.counts.lock().supersede(id);
        let evicted = catch_unwind(AssertUnwindSafe(|| self.launcher.evict(id)));
        if evicted.is_err() {
            tracing::error!(workflow = %id, "evict panicked");
        }
        evicted.is_ok()
    }

    /// Lets no claim begin from now on.
    pub(crate) fn stop(&self) {
        self.identity(|identity| identity.stopping = true);
        self.notes.post(Note::Stop);
        self.lanes.post_all(&LaneInput::Stop);
    }
}
