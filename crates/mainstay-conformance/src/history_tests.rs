//! The checker itself: it takes every history of a correct queue, and none that was spoilt in one place.

use super::*;
use mainstay_env::Rng;

/// A queue that does one call at a time, and what it answered.
struct Queue {
    rng: Rng,
    now: i64,
    limit: u32,
    moment: u64,
    rows: BTreeMap<WorkflowId, WorkflowRow>,
    live: BTreeMap<Fence, ExecutorId>,
    void: Vec<Fence>,
    events: Vec<Event>,
}

impl Queue {
    fn new(seed: u64) -> Self {
        let rng = Rng::seeded(seed);
        let (rows, live) = (BTreeMap::new(), BTreeMap::new());
        Self { rng, now: 1_000, limit: 3, moment: 0, rows, live, void: Vec::new(), events: Vec::new() }
    }

    /// Intervals overlap: each reaches up to two moments back and forth.
    fn note(&mut self, did: Did) {
        self.moment += 10;
        let (back, on) = (self.rng.below(15), self.rng.below(15));
        self.events.push(Event { begun: self.moment - back.min(self.moment), ended: self.moment + on + 1, did });
    }

    fn enqueue(&mut self) {
        let id = WorkflowId::from(format!("w{:03}", self.rows.len()));
        let row = WorkflowRow::new(&id, "work", Status::Enqueued, Timestamp(self.now), Timestamp(self.now));
        self.rows.insert(id.clone(), row.priority(self.rng.between(0, 2)));
        self.note(Did::Enqueued(id));
    }

    fn claim(&mut self) {
        let executor = ExecutorId::from(format!("e{}", self.rng.below(2)));
        let room = (self.limit as usize).saturating_sub(self.live.len());
        let mut waiting: Vec<_> =
            self.rows.values().filter(|row| row.status == Status::Enqueued).map(WorkflowRow::rank).collect();
        waiting.sort();
        let mut rows = Vec::new();
        for rank in waiting.into_iter().take(room.min(2)) {
            let row = self.rows.get_mut(&rank.2).expect("a waiting row");
            row.status = Status::Pending;
            row.attempts += 1;
            let fence = Fence::issue(rank.2.clone(), format!("{}", row.attempts));
            self.live.insert(fence.clone(), executor.clone());
            rows.push(Taken { fence, attempts: row.attempts, rank });
        }
        self.now += 5;
        self.note(Did::Claimed { executor, now: Timestamp(self.now), rows });
    }

    fn pick(&self) -> Option<Fence> {
        let fences: Vec<_> = self.live.keys().cloned().collect();
        self.rng.pick(&fences).cloned()
    }

    fn leave(&mut self, id: &WorkflowId, status: Status) {
        self.rows.get_mut(id).expect("a row").status = status;
        let gone: Vec<_> = self.live.keys().filter(|fence| fence.workflow() == id).cloned().collect();
        for fence in gone {
            self.live.remove(&fence);
            self.void.push(fence);
        }
    }

    fn step(&mut self) {
        match self.rng.below(10) {
            0..3 => self.enqueue(),
            3..6 => self.claim(),
            6 => {
                let Some(fence) = self.pick() else { return };
                self.leave(&fence.workflow().clone(), Status::Success);
                self.note(Did::Settled { fence, done: true });
            }
            7 => {
                let Some(fence) = self.pick() else { return };
                self.leave(&fence.workflow().clone(), Status::Enqueued);
                self.note(Did::GaveBack { fence, done: true });
            }
            8 => {
                let ids: Vec<_> = self.rows.keys().cloned().collect();
                let Some(id) = self.rng.pick(&ids).cloned() else { return };
                let moved = !self.rows[&id].status.is_ended();
                if moved {
                    self.leave(&id, Status::Cancelled);
                }
                self.note(Did::Cancelled { id, moved });
            }
            _ if self.rng.chance(0.5) => {
                let executor = ExecutorId::from("e0");
                let held = self.live.iter().filter(|(_, by)| **by == executor);
                let ids: Vec<_> = held.map(|(fence, _)| fence.workflow().clone()).collect();
                for id in &ids {
                    self.leave(id, Status::Enqueued);
                }
                self.note(Did::TookOver { executor, ids });
            }
            _ => {
                let Some(fence) = self.void.last().cloned() else { return };
                self.note(Did::Settled { fence, done: false });
            }
        }
    }

    fn run(seed: u64) -> Self {
        let mut queue = Self::new(seed);
        for _ in 0..120 {
            queue.step();
        }
        queue
    }

    fn faults(&self) -> Vec<String> {
        let rate = Some(Rate { starts: 2, period: Duration::from_millis(5) });
        check(&self.events, &self.rows, Allowed { concurrency: Some(self.limit), rate })
    }
}

const SEEDS: std::ops::Range<u64> = 0..200;

#[test]
fn every_history_of_a_correct_queue_is_taken() {
    for seed in SEEDS {
        let queue = Queue::run(seed);
        assert_eq!(queue.faults(), Vec::<String>::new(), "seed {seed}");
        assert!(queue.events.len() > 60, "seed {seed}");
    }
}

/// Spoils each history in one place, where it has one, and demands a fault with these words.
fn spoilt(words: &str, spoil: impl Fn(&mut Queue) -> Option<()>) {
    let mut hit = 0;
    for seed in SEEDS {
        let mut queue = Queue::run(seed);
        if spoil(&mut queue).is_some() {
            hit += 1;
            let faults = queue.faults();
            assert!(faults.iter().any(|fault| fault.contains(words)), "seed {seed}: {words}: {faults:?}");
        }
    }
    assert!(hit >= 100, "{words}: only {hit} histories could be spoilt");
}

/// The place of the first event that `wanted` takes.
fn place(queue: &Queue, wanted: impl Fn(&Did) -> bool) -> Option<usize> {
    queue.events.iter().position(|event| wanted(&event.did))
}

fn took_rows(did: &Did) -> bool {
    matches!(did, Did::Claimed { rows, .. } if !rows.is_empty())
}

#[test]
fn a_row_claimed_by_two_at_once_is_found() {
    spoilt("claimed twice", |queue| {
        let (fence, executor) = queue.live.iter().next().map(|(fence, by)| (fence.clone(), by.clone()))?;
        let row = queue.rows.get_mut(fence.workflow())?;
        row.attempts += 1;
        let taken = Taken { fence: Fence::issue(row.id.clone(), "second"), attempts: row.attempts, rank: row.rank() };
        queue.note(Did::Claimed { executor, now: Timestamp(queue.now + 1_000), rows: vec![taken] });
        Some(())
    });
}

#[test]
fn a_row_claimed_before_it_was_let_go_of_is_found() {
    spoilt("was live", |queue| {
        let at = queue.events.iter().position(|event| match &event.did {
            Did::GaveBack { fence, .. } => queue.rows[fence.workflow()].attempts.to_string().as_str() != fence.raw(),
            _ => false,
        })?;
        queue.events[at].begun += 10_000;
        queue.events[at].ended += 10_000;
        Some(())
    });
}

#[test]
fn a_fence_given_out_twice_is_found() {
    spoilt("given out twice", |queue| {
        let at = place(queue, took_rows)?;
        let again = queue.events[at].did.clone();
        queue.note(again);
        Some(())
    });
}

#[test]
fn two_ends_of_one_execution_are_found() {
    spoilt("let go of twice", |queue| {
        let at = place(queue, |did| matches!(did, Did::Settled { done: true, .. }))?;
        let again = queue.events[at].did.clone();
        queue.note(again);
        Some(())
    });
}

#[test]
fn an_end_of_no_execution_is_found() {
    spoilt("was never claimed", |queue| {
        let id = queue.rows.keys().next()?.clone();
        queue.note(Did::GaveBack { fence: Fence::issue(id, "invented"), done: true });
        Some(())
    });
}

#[test]
fn a_lost_enqueue_is_found() {
    spoilt("is lost", |queue| queue.rows.pop_first().map(|_| ()));
}

#[test]
fn a_row_out_of_nowhere_is_found() {
    spoilt("never enqueued", |queue| {
        let taken = queue.events.iter().find_map(|event| match &event.did {
            Did::Claimed { rows, .. } => rows.first().cloned(),
            _ => None,
        })?;
        let id = taken.fence.workflow().clone();
        queue.events.retain(|event| !matches!(&event.did, Did::Enqueued(enqueued) if *enqueued == id));
        Some(())
    });
}

#[test]
fn a_lost_update_is_found() {
    spoilt("was left", |queue| {
        let row = queue.rows.values_mut().find(|row| row.status == Status::Success)?;
        row.status = Status::Pending;
        Some(())
    });
}

#[test]
fn a_refusal_without_a_cause_is_found() {
    spoilt("without a cause", |queue| {
        let fence = queue.pick()?;
        queue.note(Did::Settled { fence, done: false });
        Some(())
    });
}

#[test]
fn a_cancel_that_missed_an_open_row_is_found() {
    spoilt("without a cause", |queue| {
        let id = queue.rows.values().find(|row| !row.status.is_ended())?.id.clone();
        queue.note(Did::Cancelled { id, moved: false });
        Some(())
    });
}

#[test]
fn a_claim_of_a_cancelled_row_is_found() {
    spoilt("after it was cancelled", |queue| {
        let row = queue.rows.values_mut().find(|row| row.status == Status::Cancelled)?;
        row.attempts += 1;
        let taken = Taken { fence: Fence::issue(row.id.clone(), "late"), attempts: row.attempts, rank: row.rank() };
        queue.moment += 1_000;
        queue.note(Did::Claimed { executor: "e1".into(), now: Timestamp(queue.now + 1_000), rows: vec![taken] });
        Some(())
    });
}

#[test]
fn a_claim_after_the_end_is_found() {
    spoilt("after its end", |queue| {
        let row = queue.rows.values_mut().find(|row| row.status == Status::Success)?;
        row.attempts += 1;
        let taken = Taken { fence: Fence::issue(row.id.clone(), "late"), attempts: row.attempts, rank: row.rank() };
        queue.moment += 1_000;
        queue.note(Did::Claimed { executor: "e1".into(), now: Timestamp(queue.now + 1_000), rows: vec![taken] });
        Some(())
    });
}

#[test]
fn rows_out_of_order_are_found() {
    spoilt("out of order", |queue| {
        let at = place(queue, |did| matches!(did, Did::Claimed { rows, .. } if rows.len() > 1))?;
        let Did::Claimed { rows, .. } = &mut queue.events[at].did else { return None };
        rows.reverse();
        Some(())
    });
}

#[test]
fn a_fleet_over_its_limit_is_found() {
    spoilt("were live at once", |queue| {
        queue.limit = u32::try_from(queue.live.len()).ok()?.checked_sub(1)?;
        Some(())
    });
}

#[test]
fn starts_over_the_rate_are_found() {
    spoilt("starts in the window", |queue| {
        let mut claims = queue.events.iter_mut().filter(|event| took_rows(&event.did));
        let Did::Claimed { now: first, .. } = claims.next()?.did.clone() else { return None };
        for event in claims.take(2) {
            if let Did::Claimed { now, .. } = &mut event.did {
                *now = first;
            }
        }
        Some(())
    });
}

#[test]
fn a_repeat_with_a_row_of_its_own_is_found() {
    spoilt("which its claim had not", |queue| {
        let mut taken = queue.events.iter().find_map(|event| match &event.did {
            Did::Claimed { rows, .. } => rows.first().cloned(),
            _ => None,
        })?;
        taken.fence = Fence::issue(taken.fence.workflow().clone(), "other");
        queue.note(Did::Repeated { rows: vec![taken] });
        Some(())
    });
}

#[test]
fn a_take_over_of_another_s_row_is_found() {
    spoilt("did not run it", |queue| {
        let (fence, _) = queue.live.iter().next()?;
        let ids = vec![fence.workflow().clone()];
        queue.note(Did::TookOver { executor: "e9".into(), ids });
        Some(())
    });
}
