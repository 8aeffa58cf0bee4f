//! What the named tests are built from.

use crate::plan::{Body, End, Member};
use crate::seen::Launched;
use crate::world::World;
use mainstay_env::Monotonic;
use mainstay_memory::Trouble;
use mainstay_store::{Limits, Place, QueueName, Rate, Status, Submit, WorkflowId};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::time::Duration;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A process of `shop` at `v1` that knows every function and meets no fault.
pub(crate) fn shop() -> Member {
    Member { app: 0, version: 0, names: 7, max_running: 1024, faults: 0, up: true }
}

/// A row of `shop` for the function `alpha`.
pub(crate) fn row(id: &str, queue: &str) -> Submit {
    Submit::new(id, "alpha", format!("token of {id}"), Place::queue(queue)).app("shop")
}

/// A body that runs for so long and succeeds.
pub(crate) fn runs(run_ms: u16) -> Body {
    Body { run_ms, end: End::Succeed, waits: false }
}

/// A body that ends in this way after so long.
pub(crate) fn ends(run_ms: u16, end: End) -> Body {
    Body { run_ms, end, waits: false }
}

pub(crate) fn concurrency(limit: u32) -> Limits {
    Limits { concurrency: Some(limit), ..Limits::default() }
}

pub(crate) fn worker(limit: u32) -> Limits {
    Limits { worker_concurrency: Some(limit), ..Limits::default() }
}

pub(crate) fn rate(starts: u32, period: Duration) -> Limits {
    Limits { rate: Some(Rate { starts, period }), ..Limits::default() }
}

pub(crate) fn name(queue: &str) -> QueueName {
    QueueName::from(queue)
}

pub(crate) fn id(text: &str) -> WorkflowId {
    WorkflowId::from(text)
}

impl World {
    /// A world in which hints arrive and no claim is contended.
    pub(crate) fn kind(seed: u64) -> World {
        World::new(seed, Trouble::none())
    }

    /// A world in which no hint arrives.
    pub(crate) fn silent(seed: u64) -> World {
        World::new(seed, Trouble::silent())
    }

    /// Adds a process and runs the world until its engine is launched.
    pub(crate) fn serve(&mut self, member: Member) -> usize {
        let process = self.add(member);
        self.launch(process);
        self.engine(process);
        process
    }

    /// Submits a row whose executions go as planned.
    pub(crate) fn enqueue(&mut self, submit: Submit, body: Body) -> WorkflowId {
        self.seen.lock().plans.insert(submit.id.clone(), body);
        let id = submit.id.clone();
        let reply = self.submit(submit);
        assert!(reply.is_done(), "{reply:?}");
        id
    }

    /// Submits rows `<prefix>00`, `<prefix>01` and so on.
    pub(crate) fn enqueue_many(&mut self, prefix: &str, count: usize, queue: &str, body: Body) -> Vec<WorkflowId> {
        (0..count).map(|number| self.enqueue(row(&format!("{prefix}{number:02}"), queue), body)).collect()
    }

    /// Every launch so far.
    pub(crate) fn launched(&self) -> Vec<Launched> {
        self.seen.lock().launched.clone()
    }

    /// Ids in the order of their launches.
    pub(crate) fn order(&self) -> Vec<String> {
        self.launched().iter().map(|launched| launched.claimed.row.id.to_string()).collect()
    }

    /// When a workflow was launched, each time.
    pub(crate) fn starts(&self, id: &WorkflowId) -> Vec<Monotonic> {
        self.launched().iter().filter(|launched| launched.claimed.row.id == *id).map(|launched| launched.at).collect()
    }

    /// Live bodies of a queue, over all processes.
    pub(crate) fn running(&self, queue: &str) -> usize {
        let seen = self.seen.lock();
        seen.live.values().filter(|live| !live.evicted && live.queue.as_ref().is_some_and(|name| name == queue)).count()
    }

    /// Claims on a queue so far.
    pub(crate) fn claims_on(&self, queue: &str) -> usize {
        self.seen.lock().claims.iter().filter(|call| call.request.queue == *queue).count()
    }

    /// Runs until all of these rows have ended; says how long it took.
    #[track_caller]
    pub(crate) fn ended(&mut self, ids: &[WorkflowId], limit: Duration) -> Duration {
        let begun = self.now();
        let all = |world: &mut World| ids.iter().all(|id| world.status(id).is_none_or(Status::is_ended));
        let done = self.until(limit, all);
        let left: Vec<_> = ids.iter().filter(|id| !self.status(id).is_none_or(Status::is_ended)).collect();
        assert!(done, "after {limit:?} there are left {left:?}");
        self.now().since(begun)
    }
}

/// Checks a property on so many drawn values, always the same ones, and shrinks the first that fails it.
#[track_caller]
pub(crate) fn check<S: Strategy>(cases: u32, values: S, property: impl Fn(S::Value))
where
    S::Value: std::fmt::Debug,
{
    let config = Config { cases, max_shrink_iters: 500, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng).run(&values, |value| {
        property(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
