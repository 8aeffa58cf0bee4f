//! Ordered indexes over the rows, so that no operation walks rows that it does not answer with.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_store::{
    AppName, ClassName, ConfigName, DedupKey, ExecutorId, QueueName, Status, Timestamp, Token, VersionName, WorkflowId,
    WorkflowName, WorkflowRow,
};

use crate::state::Record;

/// What orders a queue: priority, age, id.
pub(crate) type Rank = (i32, Timestamp, WorkflowId);

/// Sets by key; a key without members is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Groups<K: Ord, V: Ord>(BTreeMap<K, BTreeSet<V>>);

impl<K: Ord, V: Ord> Default for Groups<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V: Ord> Groups<K, V> {
    fn add(&mut self, key: K, value: V) {
        let new = self.0.entry(key).or_default().insert(value);
        assert!(new, "an index entry is added once");
    }

    fn remove(&mut self, key: &K, value: &V) {
        let members = self.0.get_mut(key).expect("an index entry that is removed has a group");
        assert!(members.remove(value), "an index entry that is removed is there");
        if members.is_empty() {
            self.0.remove(key);
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&BTreeSet<V>> {
        self.0.get(key)
    }

    /// The members of a group in order; none of an unknown one.
    pub(crate) fn members(&self, key: &K) -> impl Iterator<Item = &V> + use<'_, K, V> {
        self.0.get(key).into_iter().flatten()
    }

    pub(crate) fn count(&self, key: &K) -> usize {
        self.0.get(key).map_or(0, BTreeSet::len)
    }

    /// How many members there are in all groups.
    pub(crate) fn total(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }
}

/// What a claim's eligibility is judged by, apart from the queue: rows of one kind are eligible all or none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) app: Option<AppName>,
    pub(crate) version: Option<VersionName>,
    pub(crate) name: WorkflowName,
    pub(crate) class: Option<ClassName>,
    pub(crate) config: Option<ConfigName>,
}

impl Kind {
    fn of(row: &WorkflowRow) -> Self {
        Self {
            app: row.app.clone(),
            version: row.version.clone(),
            name: row.name.clone(),
            class: row.class.clone(),
            config: row.config.clone(),
        }
    }
}

/// All indexes. They hold what [`Indexes::add`] derives from the rows and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexes {
    /// Enqueued rows of each queue, by kind, in claim order.
    pub(crate) enqueued: BTreeMap<QueueName, Groups<Kind, Rank>>,
    /// Pending rows of a queue and application.
    pub(crate) running: Groups<(QueueName, Option<AppName>), WorkflowId>,
    /// Pending rows of an executor, oldest first.
    pub(crate) held_by_age: Groups<ExecutorId, (Timestamp, WorkflowId)>,
    /// The same by id.
    pub(crate) held_by_id: Groups<ExecutorId, WorkflowId>,
    /// Pending rows by the token of their execution.
    pub(crate) tokens: Groups<Token, Rank>,
    /// Delayed rows of an application, by due time.
    pub(crate) delayed: Groups<Option<AppName>, (Timestamp, WorkflowId)>,
    /// Open rows with a deadline, by deadline.
    pub(crate) deadlines: Groups<Option<AppName>, (Timestamp, WorkflowId)>,
    /// Ended rows, by the time of their end.
    pub(crate) ended: Groups<Option<AppName>, (Timestamp, WorkflowId)>,
    /// Holders of deduplication keys.
    pub(crate) dedup: BTreeMap<(QueueName, DedupKey), WorkflowId>,
    /// Rows by the workflow that started them.
    pub(crate) children: Groups<WorkflowId, WorkflowId>,
}

impl Indexes {
    pub(crate) fn add(&mut self, record: &Record) {
        let row = &record.row;
        if let Some(parent) = &row.parent {
            self.children.add(parent.clone(), row.id.clone());
        }
        if let (Some(queue), Some(key)) = (&row.queue, &row.dedup) {
            let held = self.dedup.insert((queue.clone(), key.clone()), row.id.clone());
            assert!(held.is_none(), "a deduplication key has one holder");
        }
        if let Some(at) = open_deadline(row) {
            self.deadlines.add(row.app.clone(), (at, row.id.clone()));
        }
        match row.status {
            Status::Enqueued => {
                let queue = self.enqueued.entry(queued(row).clone()).or_default();
                queue.add(Kind::of(row), row.rank());
            }
            Status::Delayed => self.delayed.add(row.app.clone(), (due(row), row.id.clone())),
            Status::Pending => self.add_pending(record),
            Status::Success | Status::Error | Status::Cancelled | Status::Parked => {
                self.ended.add(row.app.clone(), (completed(row), row.id.clone()));
            }
        }
    }

    pub(crate) fn remove(&mut self, record: &Record) {
        let row = &record.row;
        if let Some(parent) = &row.parent {
            self.children.remove(parent, &row.id);
        }
        if let (Some(queue), Some(key)) = (&row.queue, &row.dedup) {
            let held = self.dedup.remove(&(queue.clone(), key.clone()));
            assert_eq!(held.as_ref(), Some(&row.id), "a deduplication key is held by its row");
        }
        if let Some(at) = open_deadline(row) {
            self.deadlines.remove(&row.app, &(at, row.id.clone()));
        }
        match row.status {
            Status::Enqueued => {
                let queue = self.enqueued.get_mut(queued(row)).expect("the queue of an enqueued row is indexed");
                queue.remove(&Kind::of(row), &row.rank());
                if queue.0.is_empty() {
                    self.enqueued.remove(queued(row));
                }
            }
            Status::Delayed => self.delayed.remove(&row.app, &(due(row), row.id.clone())),
            Status::Pending => self.remove_pending(record),
            Status::Success | Status::Error | Status::Cancelled | Status::Parked => {
                self.ended.remove(&row.app, &(completed(row), row.id.clone()));
            }
        }
    }

    fn add_pending(&mut self, record: &Record) {
        let row = &record.row;
        if let Some(queue) = &row.queue {
            self.running.add((queue.clone(), row.app.clone()), row.id.clone());
        }
        self.held_by_age.add(held(row).clone(), (row.created_at, row.id.clone()));
        self.held_by_id.add(held(row).clone(), row.id.clone());
        self.tokens.add(token(record).clone(), row.rank());
    }

    fn remove_pending(&mut self, record: &Record) {
        let row = &record.row;
        if let Some(queue) = &row.queue {
            self.running.remove(&(queue.clone(), row.app.clone()), &row.id);
        }
        self.held_by_age.remove(held(row), &(row.created_at, row.id.clone()));
        self.held_by_id.remove(held(row), &row.id);
        self.tokens.remove(token(record), &row.rank());
    }

    /// The kinds of enqueued rows of a queue, each with its rows in claim order.
    pub(crate) fn kinds(&self, queue: &QueueName) -> impl Iterator<Item = (&Kind, &BTreeSet<Rank>)> {
        self.enqueued.get(queue).into_iter().flat_map(|groups| &groups.0)
    }

    /// Pending rows of a queue that belong to the application or to none.
    pub(crate) fn running(&self, queue: &QueueName, app: &AppName) -> usize {
        let of = |app| self.running.count(&(queue.clone(), app));
        of(Some(app.clone())) + of(None)
    }
}

fn open_deadline(row: &WorkflowRow) -> Option<Timestamp> {
    row.deadline.filter(|_| !row.status.is_ended())
}

fn queued(row: &WorkflowRow) -> &QueueName {
    row.queue.as_ref().expect("an enqueued row has a queue")
}

fn due(row: &WorkflowRow) -> Timestamp {
    row.delay_until.expect("a delayed row has a due time")
}

fn completed(row: &WorkflowRow) -> Timestamp {
    row.completed_at.expect("an ended row has the time of its end")
}

fn held(row: &WorkflowRow) -> &ExecutorId {
    row.executor.as_ref().expect("a pending row has an executor")
}

fn token(record: &Record) -> &Token {
    &record.owner.as_ref().expect("a pending row has an owner").token
}
