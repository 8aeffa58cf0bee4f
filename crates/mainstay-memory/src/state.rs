//! What the store holds: rows with what hangs on them, queues, versions, leases and starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_store::{
    AppName, ExecutorId, Fence, Outcome, Payload, Position, Queue, QueueName, RecordedStep, RegistryStamp, Standing,
    Status, Timestamp, Token, Version, VersionName, WorkflowId, WorkflowRow,
};

use crate::damage::Damage;
use crate::history::Flip;
use crate::index::Indexes;
use crate::starts::Starts;

/// One workflow with all that hangs on it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) row: WorkflowRow,
    pub(crate) input: Option<Payload>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) steps: BTreeMap<Position, RecordedStep>,
    /// Token of the submit that made it; none for a fork.
    pub(crate) creator: Option<Token>,
    /// Its present execution; there exactly while it is pending.
    pub(crate) owner: Option<Owner>,
}

/// One execution of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Token of the claim or start.
    pub(crate) token: Token,
    /// What its fence carries. A token alone could come twice, when a claim that has given its rows back is sent again.
    pub(crate) raw: Arc<str>,
    /// Begun by the submit that made the row.
    pub(crate) direct: bool,
}

impl Record {
    /// A row without anything on it.
    pub(crate) fn new(row: WorkflowRow) -> Self {
        Self { row, input: None, outcome: None, steps: BTreeMap::new(), creator: None, owner: None }
    }

    /// The fence of the present execution.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.owner.as_ref().map(|owner| Fence::issue(self.row.id.clone(), owner.raw.clone()))
    }

    pub(crate) fn standing(&self) -> Standing {
        match &self.outcome {
            Some(outcome) => Standing::Ended(outcome.clone()),
            None => Standing::Open(self.row.status),
        }
    }
}

/// The lease of an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseRecord {
    pub(crate) app: AppName,
    pub(crate) beat: u64,
    pub(crate) ended: bool,
}

/// Everything.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) rows: BTreeMap<WorkflowId, Record>,
    pub(crate) index: Indexes,
    pub(crate) queues: BTreeMap<QueueName, Queue>,
    pub(crate) versions: BTreeMap<VersionName, Version>,
    pub(crate) leases: BTreeMap<ExecutorId, LeaseRecord>,
    pub(crate) starts: BTreeMap<QueueName, Starts>,
    /// Moves with every change of the queues, and gives a changed queue its revision.
    pub(crate) stamp: RegistryStamp,
    /// Executions begun in this store: no two fences are equal.
    pub(crate) executions: u64,
    /// The latest stamp stored; no operation works with an earlier clock.
    pub(crate) latest: Timestamp,
    /// What a test has damaged; nothing is in a program's.
    pub(crate) damage: Damage,
    /// Kept for tests alone, because it grows without end.
    pub(crate) flips: Option<Vec<Flip>>,
}

impl State {
    pub(crate) fn new(history: bool) -> Self {
        Self {
            rows: BTreeMap::new(),
            index: Indexes::default(),
            queues: BTreeMap::new(),
            versions: BTreeMap::new(),
            leases: BTreeMap::new(),
            starts: BTreeMap::new(),
            stamp: RegistryStamp(1),
            executions: 0,
            latest: Timestamp(i64::MIN),
            damage: Damage::default(),
            flips: history.then(Vec::new),
        }
    }

    /// Whether the fence's row is still in the execution that it was issued for.
    pub(crate) fn is_current(&self, fence: &Fence) -> bool {
        let Some(record) = self.rows.get(fence.workflow()) else { return false };
        let owned = record.owner.as_ref().is_some_and(|owner| *owner.raw == *fence.raw());
        owned && record.row.status == Status::Pending
    }

    pub(crate) fn standing(&self, id: &WorkflowId) -> Standing {
        self.rows.get(id).map_or(Standing::Gone, Record::standing)
    }

    /// Whether an executor may claim and start.
    pub(crate) fn is_leased(&self, executor: &ExecutorId) -> bool {
        self.leases.get(executor).is_some_and(|lease| !lease.ended)
    }

    /// Whether fleet slots of the queue are counted, so that a row which leaves it makes room.
    pub(crate) fn counts_running(&self, queue: &QueueName) -> bool {
        self.queues.get(queue).is_some_and(|queue| {
            let limits = queue.limits();
            limits.concurrency.is_some() || limits.partition_concurrency.is_some()
        })
    }

    /// The latest version of an application's and the unowned ones.
    pub(crate) fn latest_version(&self, app: &AppName) -> Option<&Version> {
        self.versions
            .values()
            .filter(|version| owned_by(version.app.as_ref(), app))
            .max_by(|a, b| (a.promoted_at, &a.name).cmp(&(b.promoted_at, &b.name)))
    }
}

/// Whether something with this owner is an application's to use: its own, or unowned.
pub(crate) fn owned_by(owner: Option<&AppName>, app: &AppName) -> bool {
    owner.is_none_or(|owner| owner == app)
}
