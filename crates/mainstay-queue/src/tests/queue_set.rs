//! Properties of the set of queues.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{Queue, QueueName, Revision, wire};

use super::property::{Word, sequences};
use crate::{Plan, QueueSet, SetEffect, SetInput};

const SECOND: Duration = Duration::from_secs(1);

fn queue(name: &str, revision: i64) -> Queue {
    Queue::new(name, Revision(revision))
}

fn internal() -> QueueName {
    QueueName::from(wire::INTERNAL_QUEUE)
}

/// Workers as the world has them: what each was last told.
struct World {
    set: QueueSet,
    now: Monotonic,
    stored: BTreeMap<QueueName, Queue>,
    expected: BTreeMap<QueueName, Plan>,
    live: BTreeMap<QueueName, Option<Plan>>,
    died_at: BTreeMap<QueueName, Monotonic>,
    /// Workers that were told once that their queue is gone: they may end for that reason.
    dismissed: BTreeSet<QueueName>,
    warnings: u32,
}

impl World {
    fn step(&mut self, input: SetInput) {
        for effect in self.set.step(self.now, input) {
            match effect {
                SetEffect::Spawn { queue, plan, .. } => {
                    assert_eq!(self.expected.get(&queue), Some(&plan), "a worker gets the present form");
                    if let Some(died) = self.died_at.remove(&queue) {
                        assert!(self.now >= died + SECOND, "a dead worker is replaced after a pause");
                    }
                    assert!(self.live.insert(queue, Some(plan)).is_none(), "one worker a queue");
                }
                SetEffect::Publish(queue, plan) => {
                    if let Some(told) = self.live.get_mut(&queue) {
                        assert_ne!(*told, plan, "nothing is told twice");
                        *told = plan;
                        if plan.is_none() {
                            self.dismissed.insert(queue);
                        }
                    }
                }
                SetEffect::WarnReserved => self.warnings += 1,
            }
        }
        assert_eq!(self.set.published(), &self.expected);
        assert!(self.warnings <= 1, "one warning");
        for name in self.expected.keys() {
            let served = self.live.contains_key(name) || self.died_at.contains_key(name);
            assert!(served, "{name} has a worker, or will have one after its pause");
        }
        for (name, told) in &self.live {
            assert_eq!(told.as_ref(), self.expected.get(name), "{name} knows how it stands");
        }
        let due = self.died_at.keys().filter(|name| self.expected.contains_key(*name)).count();
        assert_eq!(self.set.until().is_some(), due > 0);
    }

    fn act(&mut self, mut word: Word, listen: Option<&BTreeSet<QueueName>>) {
        let name: QueueName = ["a", "b", "c", "d", wire::INTERNAL_QUEUE][word.below(5) as usize].into();
        match word.below(9) {
            0..=2 => {
                let revision = i64::from(word.below(1000));
                self.stored.insert(name.clone(), queue(name.as_str(), revision));
            }
            3 => drop(self.stored.remove(&name)),
            4 | 5 => self.read(&mut word, listen),
            6 => self.step(SetInput::Unread),
            7 => {
                if self.live.remove(&name).is_some() {
                    if !self.dismissed.remove(&name) && self.expected.contains_key(&name) {
                        self.died_at.insert(name.clone(), self.now);
                    }
                    self.step(SetInput::Ended(name));
                }
            }
            _ => {
                self.now = self.now + Duration::from_millis(u64::from(word.below(70_000)));
                self.step(SetInput::Unread);
            }
        }
    }

    fn read(&mut self, word: &mut Word, listen: Option<&BTreeSet<QueueName>>) {
        let broken = word.below(3) == 0;
        let bad: QueueName = ["a", "b"][word.below(2) as usize].into();
        let malformed: Vec<_> = self.stored.keys().filter(|name| broken && **name == bad).cloned().collect();
        let queues: Vec<_> = self.stored.values().filter(|queue| !malformed.contains(&queue.name)).cloned().collect();
        let mut next: BTreeMap<_, _> = queues
            .iter()
            .filter(|queue| queue.name != internal() && listen.is_none_or(|listen| listen.contains(&queue.name)))
            .map(|queue| (queue.name.clone(), Plan::of(queue)))
            .collect();
        next.insert(internal(), Plan::internal());
        for name in &malformed {
            if let Some(known) = self.expected.get(name) {
                next.insert(name.clone(), *known);
            }
        }
        self.died_at.retain(|name, _| next.contains_key(name));
        self.expected = next;
        self.step(SetInput::Read { queues, malformed });
    }
}

#[test]
fn every_queue_of_the_set_has_one_worker_that_knows_its_form() {
    sequences(1_200, 180_000, |words| {
        let listen = [None, Some(vec![]), Some(vec![QueueName::from("a"), "c".into()])][words[0] as usize % 3].clone();
        let mut world = World {
            set: QueueSet::new(listen.as_deref()),
            now: Monotonic(SECOND),
            stored: BTreeMap::new(),
            expected: BTreeMap::from([(internal(), Plan::internal())]),
            live: BTreeMap::new(),
            died_at: BTreeMap::new(),
            dismissed: BTreeSet::new(),
            warnings: 0,
        };
        world.step(SetInput::Unread);
        let listen = listen.map(|names| names.into_iter().collect());
        for word in words {
            world.act(Word(*word), listen.as_ref());
        }
    });
}

#[test]
fn a_failed_read_keeps_the_previous_set() {
    let mut set = QueueSet::new(None);
    set.step(Monotonic(SECOND), SetInput::Read { queues: vec![queue("a", 1)], malformed: vec![] });
    assert!(set.step(Monotonic(2 * SECOND), SetInput::Unread).is_empty());
    assert!(set.published().contains_key("a"));
}

#[test]
fn a_registered_again_queue_gets_a_worker_again() {
    let mut set = QueueSet::new(None);
    let read = |queues| SetInput::Read { queues, malformed: vec![] };
    set.step(Monotonic(SECOND), read(vec![queue("a", 1)]));
    let gone = set.step(Monotonic(2 * SECOND), read(vec![]));
    assert_eq!(gone, [SetEffect::Publish("a".into(), None)]);
    let back = set.step(Monotonic(3 * SECOND), read(vec![queue("a", 1)]));
    let plan = Plan::of(&queue("a", 1));
    assert_eq!(back, [SetEffect::Publish("a".into(), Some(plan))], "its worker may not have ended yet");
    let ended = set.step(Monotonic(3 * SECOND), SetInput::Ended("a".into()));
    assert_eq!(ended, [SetEffect::Spawn { queue: "a".into(), plan, again: false }]);
}

#[test]
fn a_worker_that_dies_again_and_again_is_replaced_more_and_more_slowly() {
    let mut set = QueueSet::new(None);
    let mut now = Monotonic(SECOND);
    set.step(now, SetInput::Unread);
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        set.step(now, SetInput::Ended(internal()));
        assert_eq!(set.until().map(|until| until.since(now)), Some(seconds * SECOND));
        now = set.until().unwrap();
        assert!(matches!(set.step(now, SetInput::Unread)[..], [SetEffect::Spawn { again: true, .. }]));
    }
    now = now + 60 * SECOND;
    set.step(now, SetInput::Ended(internal()));
    assert_eq!(set.until().map(|until| until.since(now)), Some(SECOND), "a long life is forgiven");
}

#[test]
fn after_the_stop_no_worker_is_spawned() {
    let mut set = QueueSet::new(None);
    set.step(Monotonic(SECOND), SetInput::Stop);
    assert!(set.step(Monotonic(SECOND), SetInput::Read { queues: vec![queue("a", 1)], malformed: vec![] }).is_empty());
    assert_eq!(set.until(), None);
}
