//! Properties of the counts, and of the slot that owns one.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use mainstay_store::{Fence, HeldRow, QueueName, Timestamp, Token, WorkflowId};

use super::property::{Word, sequences};
use crate::slot::{Counts, Slot, Waker};
use crate::{Body, Count, Tally};

fn body(id: u32, queue: Option<u32>, key: Option<u32>) -> Body {
    Body {
        id: format!("w{id}").into(),
        queue: queue.map(|queue| format!("q{queue}").into()),
        key: queue.and(key).map(|key| format!("k{key}").into()),
        fence: Some(Fence::issue(format!("w{id}").into(), "f")),
        token: Some(Token::new("t")),
        executor: "e".into(),
    }
}

/// What is counted, kept by hand.
#[derive(Default)]
struct Expected {
    counts: BTreeMap<Count, (Body, bool)>,
    freed: Vec<Count>,
    reserved: u32,
    waiting: Vec<QueueName>,
}

fn act(tally: &mut Tally, expected: &mut Expected, mut word: Word) {
    let queue: QueueName = format!("q{}", word.below(3)).into();
    let nth = word.below(8) as usize;
    let some = expected.counts.keys().nth(nth % expected.counts.len().max(1)).copied();
    match (word.below(10), some) {
        (0..=2, _) => {
            let body =
                body(word.below(6), [None, Some(0), Some(1), Some(2)][word.below(4) as usize], Some(word.below(2)));
            let count = tally.take(body.clone());
            assert!(expected.counts.insert(count, (body, true)).is_none(), "a count is new");
        }
        (3 | 4, Some(count)) => {
            let (body, _) = expected.counts.remove(&count).unwrap();
            let wakes = tally.free(count);
            assert_eq!(wakes.freed, body.queue);
            assert_eq!(wakes.idle, expected.counts.is_empty());
            expected.freed.push(count);
        }
        (5, _) => {
            // A second release of the same count.
            if let Some(count) = expected.freed.get(nth) {
                assert_eq!(tally.free(*count).freed, None);
                tally.resume(*count);
                tally.pause(*count);
            }
        }
        (6, Some(count)) => {
            tally.pause(count);
            expected.counts.get_mut(&count).unwrap().1 = false;
        }
        (7, Some(count)) => {
            tally.resume(count);
            expected.counts.get_mut(&count).unwrap().1 = true;
        }
        (8, _) => {
            let room = tally.room(&queue).process;
            if room == 0 {
                tally.wait(&queue);
                if !expected.waiting.contains(&queue) {
                    expected.waiting.push(queue);
                }
            } else {
                let places = room.min(word.below(4) + 1);
                tally.reserve(&queue, places);
                expected.reserved += places;
                expected.waiting.retain(|waiting| *waiting != queue);
            }
        }
        (_, _) => {
            let places = expected.reserved.min(word.below(4));
            expected.reserved -= places;
            let wakes = tally.release(places);
            let first: Vec<_> = expected.waiting.iter().take(tally.places() as usize).cloned().collect();
            assert_eq!(wakes.waiting, first, "whoever waits longest is woken, as many as there are places");
        }
    }
}

fn compare(tally: &Tally, expected: &Expected) {
    let active = expected.counts.values().filter(|(_, active)| *active).count() as u32;
    assert_eq!((tally.running() as usize, tally.active()), (expected.counts.len(), active));
    assert_eq!(tally.places(), 5_u32.saturating_sub(active + expected.reserved));
    let mut sum = 0;
    for queue in ["q0", "q1", "q2"].map(QueueName::from) {
        let of = |body: &Body| body.queue.as_ref() == Some(&queue);
        let running = expected.counts.values().filter(|(body, _)| of(body)).count() as u32;
        let local = tally.local(&queue);
        assert_eq!((tally.running_of(&queue), local.running), (running, running));
        assert_eq!(local.keys.values().sum::<u32>(), running, "every row of the model has a key");
        assert!(local.keys.values().all(|count| *count > 0));
        sum += running;
        let ahead = expected.waiting.iter().take_while(|waiting| **waiting != queue).count() as u32;
        assert_eq!(tally.room(&queue).process, tally.places().saturating_sub(ahead));
    }
    assert!(sum <= tally.running());
    let ids: BTreeSet<_> = expected.counts.values().map(|(body, _)| body.id.clone()).collect();
    assert_eq!(tally.ids(), ids.into_iter().collect::<Vec<_>>());
}

#[test]
fn counts_are_those_of_the_live_slots_and_end_at_zero() {
    sequences(500, 80_000, |words| {
        let (mut tally, mut expected) = (Tally::new(5), Expected::default());
        for word in words {
            act(&mut tally, &mut expected, Word(*word));
            compare(&tally, &expected);
        }
        for count in std::mem::take(&mut expected.counts).into_keys() {
            tally.free(count);
        }
        compare(&tally, &expected);
        assert!(tally.by_queue().is_empty() && tally.ids().is_empty());
    });
}

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Waker for Heard {
    fn freed(&self, queue: &QueueName) {
        self.0.lock().unwrap().push(format!("freed {queue}"));
    }
    fn room(&self, queue: &QueueName) {
        self.0.lock().unwrap().push(format!("room {queue}"));
    }
}

/// How many hold a place, and how many places are left.
fn places(counts: &Counts) -> (u32, u32) {
    let tally = counts.lock();
    (tally.active(), tally.places())
}

fn slot(counts: &Arc<Counts>, body: Body) -> Slot {
    let count = counts.lock().take(body);
    Slot::new(counts.clone(), count)
}

#[test]
fn a_slot_is_released_once_by_return_panic_and_drop_alike() {
    let heard = Heard::default();
    let counts = Counts::new(2, heard.clone());
    drop(slot(&counts, body(1, Some(0), None)));
    let panicking = slot(&counts, body(2, Some(0), None));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _slot = panicking;
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!(*heard.0.lock().unwrap(), ["freed q0", "freed q0"]);
    assert_eq!(places(&counts), (0, 2));
}

#[test]
fn a_pause_gives_the_place_to_whoever_waits_and_a_resume_may_exceed_the_bound() {
    let heard = Heard::default();
    let counts = Counts::new(1, heard.clone());
    let first = slot(&counts, body(1, Some(0), None));
    counts.lock().wait(&"q1".into());
    first.pause();
    first.pause();
    assert_eq!(*heard.0.lock().unwrap(), ["room q1"]);
    let second = slot(&counts, body(2, Some(1), None));
    first.resume();
    assert_eq!(places(&counts), (2, 0));
    drop((first, second));
    assert_eq!(places(&counts), (0, 1));
}

#[test]
fn a_poisoned_lock_admits_less_and_never_more() {
    let counts = Counts::new(3, Heard::default());
    let (doubtful, sound) = (slot(&counts, body(1, Some(0), None)), slot(&counts, body(2, Some(0), None)));
    let poisoned = catch_unwind(AssertUnwindSafe(|| {
        let _held = counts.lock();
        panic!("while the counts are held");
    }));
    assert!(poisoned.is_err());
    drop(doubtful);
    drop(sound);
    let tally = counts.lock();
    assert_eq!((tally.places(), tally.running_of(&"q0".into())), (2, 1), "the doubtful one stays counted");
    assert!(tally.ids().is_empty(), "and is not taken for alive");
}

#[test]
fn a_held_row_is_accounted_for_by_fence_by_token_or_by_an_unfenced_start() {
    let mut tally = Tally::new(9);
    let held = |raw: &str, token: Option<&str>| {
        let mut row = HeldRow::new(Fence::issue("w1".into(), raw), Timestamp::from_millis(0));
        row.token = token.map(Token::from);
        row
    };
    assert!(!tally.accounts_for(&held("f", Some("t"))));
    let claimed = tally.take(body(1, Some(0), None));
    assert!(tally.accounts_for(&held("f", None)) && tally.accounts_for(&held("other", Some("t"))));
    assert!(!tally.accounts_for(&held("other", Some("later"))), "a later execution of the row does not run here");
    tally.free(claimed);
    let direct = tally.take(Body { fence: None, token: None, queue: None, ..body(1, None, None) });
    assert!(tally.accounts_for(&held("any", None)));
    tally.bind(direct, Fence::issue(WorkflowId::from("w1"), "mine"));
    assert!(tally.accounts_for(&held("mine", None)) && !tally.accounts_for(&held("any", None)));
}
