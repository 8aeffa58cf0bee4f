//! The set of queues that have a worker. Pure: what ticks read and how workers end in, workers to spawn and forms to publish out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{Queue, QueueName, wire};

use crate::lane::Plan;

/// Wait before a worker that died is started again; it doubles with each death.
const RESTART_FIRST: Duration = Duration::from_secs(1);
/// Longest such wait.
const RESTART_MOST: Duration = Duration::from_secs(60);
/// A worker that lived this long has its earlier deaths forgiven.
const FORGIVEN: Duration = Duration::from_secs(60);

/// What happened to the set.
#[derive(Clone, Debug, PartialEq)]
pub enum SetInput {
    /// A tick brought the stored queues.
    Read {
        /// Those that could be read.
        queues: Vec<Queue>,
        /// Those that could not; they keep their last known form.
        malformed: Vec<QueueName>,
    },
    /// A tick failed, or brought nothing new: the set stays.
    Unread,
    /// The task of a worker has ended.
    Ended(QueueName),
    /// The engine stops: no worker is spawned any more.
    Stop,
}

/// What the supervisor must do.
#[derive(Clone, Debug, PartialEq)]
pub enum SetEffect {
    /// Spawn a worker for this queue.
    Spawn {
        /// The queue.
        queue: QueueName,
        /// Its form.
        plan: Plan,
        /// The last one died.
        again: bool,
    },
    /// Tell the worker the new form of its queue, or that it has left the set.
    Publish(QueueName, Option<Plan>),
    /// Warn that a stored row carries the name of the internal queue; once.
    WarnReserved,
}

#[derive(Clone, Debug)]
enum Worker {
    Live { since: Monotonic, deaths: u32, dismissed: bool },
    Dead { until: Monotonic, deaths: u32 },
}

/// The published queues and their workers.
#[derive(Clone, Debug)]
pub struct QueueSet {
    internal: QueueName,
    listen: Option<BTreeSet<QueueName>>,
    published: BTreeMap<QueueName, Plan>,
    workers: BTreeMap<QueueName, Worker>,
    warned: bool,
    stopped: bool,
}

impl QueueSet {
    /// The internal queue alone; `listen` narrows what is read, `None` does not.
    #[must_use]
    pub fn new(listen: Option<&[QueueName]>) -> Self {
        let internal = QueueName::from(wire::INTERNAL_QUEUE);
        Self {
            listen: listen.map(|names| names.iter().cloned().collect()),
            published: BTreeMap::from([(internal.clone(), Plan::internal())]),
            internal,
            workers: BTreeMap::new(),
            warned: false,
            stopped: false,
        }
    }

    /// The queues that should have a worker.
    #[must_use]
    pub const fn published(&self) -> &BTreeMap<QueueName, Plan> {
        &self.published
    }

    /// The queues whose worker lives, as far as is known.
    pub fn workers(&self) -> impl Iterator<Item = &QueueName> {
        self.workers.iter().filter(|(_, worker)| matches!(worker, Worker::Live { .. })).map(|(name, _)| name)
    }

    /// When a dead worker is due again.
    #[must_use]
    pub fn until(&self) -> Option<Monotonic> {
        let due = self.workers.iter().filter_map(|(name, worker)| match worker {
            Worker::Dead { until, .. } if self.published.contains_key(name) => Some(*until),
            _ => None,
        });
        if self.stopped { None } else { due.min() }
    }

    /// Takes an input.
    pub fn step(&mut self, now: Monotonic, input: SetInput) -> Vec<SetEffect> {
        let mut effects = Vec::new();
        match input {
            SetInput::Read { queues, malformed } => self.read(queues, &malformed, &mut effects),
            SetInput::Unread => {}
            SetInput::Ended(queue) => self.ended(now, &queue),
            SetInput::Stop => self.stopped = true,
        }
        if !self.stopped {
            self.spawn(now, &mut effects);
        }
        effects
    }

    fn read(&mut self, queues: Vec<Queue>, malformed: &[QueueName], effects: &mut Vec<SetEffect>) {
        let mut next = BTreeMap::from([(self.internal.clone(), Plan::internal())]);
        for queue in &queues {
            if queue.name == self.internal {
                if !std::mem::replace(&mut self.warned, true) {
                    effects.push(SetEffect::WarnReserved);
                }
            } else if self.listens(&queue.name) {
                next.insert(queue.name.clone(), Plan::of(queue));
            }
        }
        for name in malformed {
            if let Some(known) = self.published.get(name) {
                next.entry(name.clone()).or_insert(*known);
            }
        }
        for name in self.published.keys().filter(|name| !next.contains_key(*name)) {
            if let Some(Worker::Live { dismissed, .. }) = self.workers.get_mut(name) {
                *dismissed = true;
            }
            effects.push(SetEffect::Publish(name.clone(), None));
        }
        for (name, plan) in &next {
            let lives = matches!(self.workers.get(name), Some(Worker::Live { .. }));
            if lives && self.published.get(name) != Some(plan) {
                effects.push(SetEffect::Publish(name.clone(), Some(*plan)));
            }
        }
        self.published = next;
        let published = &self.published;
        self.workers.retain(|name, worker| published.contains_key(name) || matches!(worker, Worker::Live { .. }));
    }

    fn listens(&self, name: &QueueName) -> bool {
        self.listen.as_ref().is_none_or(|listen| listen.contains(name))
    }

    fn ended(&mut self, now: Monotonic, queue: &QueueName) {
        let Some(Worker::Live { since, deaths, dismissed }) = self.workers.remove(queue) else { return };
        if dismissed || !self.published.contains_key(queue) {
            return;
        }
        let deaths = if now.since(since) >= FORGIVEN { 0 } else { deaths };
        let doubled = 1_u32.checked_shl(deaths).unwrap_or(u32::MAX);
        let until = now + RESTART_FIRST.saturating_mul(doubled).min(RESTART_MOST);
        self.workers.insert(queue.clone(), Worker::Dead { until, deaths: deaths.saturating_add(1) });
    }

    fn spawn(&mut self, now: Monotonic, effects: &mut Vec<SetEffect>) {
        for (name, plan) in &self.published {
            let deaths = match self.workers.get(name) {
                Some(Worker::Live { .. }) => continue,
                Some(Worker::Dead { until, .. }) if now < *until => continue,
                Some(Worker::Dead { deaths, .. }) => *deaths,
                None => 0,
            };
            self.workers.insert(name.clone(), Worker::Live { since: now, deaths, dismissed: false });
            effects.push(SetEffect::Spawn { queue: name.clone(), plan: *plan, again: deaths > 0 });
        }
    }
}
