//! What the tests of waits, recovery and ends share: calls by name, processes that are cut off, and looks into the store.

use std::future::{Future, IntoFuture, poll_fn};
use std::task::Poll;
use std::time::Duration;

use mainstay_env::Sim;
use mainstay_memory::{Memory, Trouble};
use mainstay_runtime::{Builder, Engine, Invocation, Named, Status};
use mainstay_store::wrap::{FaultPlan, Faults, Rates, WithFaults};
use mainstay_store::{Effect, Outcome, Standing, StoreClock, Unit, WorkflowRow, WorkflowStore, WriteStore};
use serde::de::DeserializeOwned;
use std::sync::Arc;

use crate::support::{Log, World};

/// A closure that is registered: it clones what it captures for every execution.
macro_rules! body {
    ([$($captured:ident),*] |$ctx:ident $(, $arg:ident: $of:ty)*| $block:block) => {{
        $(let $captured = $captured.clone();)*
        move |$ctx: mainstay_runtime::Ctx $(, $arg: $of)*| {
            $(let $captured = $captured.clone();)*
            async move { $block }
        }
    }};
}
pub(crate) use body;

/// Seconds.
pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A call of a registered closure that returns `T`.
pub(crate) fn call<T: DeserializeOwned + Send + 'static>(name: &str) -> Invocation<Named<T>> {
    Invocation::named(name).returning()
}

/// Polls once, and drops what is not ready.
pub(crate) async fn poll_once<F: IntoFuture>(future: F) -> Option<F::Output> {
    let mut future = Box::pin(future.into_future());
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Notes when it is dropped.
pub(crate) struct Gone(pub(crate) Log, pub(crate) &'static str);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

impl World {
    /// A world in which no hint ever arrives.
    pub(crate) fn silent(seed: u64) -> Self {
        Self::troubled(seed, Trouble::silent())
    }

    /// A world whose store makes this trouble.
    pub(crate) fn troubled(seed: u64, trouble: Trouble) -> Self {
        let sim = Sim::new(seed);
        let memory = Memory::troubled(sim.env("store"), StoreClock::Manual(sim.clock().clone()), seed, trouble);
        Self { sim, memory }
    }

    /// A builder for a process that is cut off from the store while the faults are on.
    pub(crate) fn cuttable(&self, process: &str) -> (Builder, Faults) {
        let plan = FaultPlan::new(1).everywhere(Rates { before: 1.0, ..Rates::default() });
        let (store, faults) = WithFaults::new(Arc::new(self.memory.attach(self.env(process))), plan);
        faults.stop();
        (Engine::builder(store).app("shop").executor(process), faults)
    }

    /// Virtual time passed so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.env("reader").monotonic().0
    }

    /// Virtual time passed so far in seconds; stamps are whole milliseconds, so that a wait may end a bit before its time.
    pub(crate) fn seconds(&self) -> u64 {
        (self.elapsed() + Duration::from_millis(5)).as_secs()
    }

    fn reader(&self) -> Memory {
        self.memory.attach(self.env("reader"))
    }

    /// The row of a workflow, where there is one.
    pub(crate) fn find(&self, id: &str) -> Option<WorkflowRow> {
        let store = self.reader();
        self.run(store.workflow_rows(&[id.into()])).expect("rows").pop().flatten()
    }

    /// The row of a workflow.
    pub(crate) fn row(&self, id: &str) -> WorkflowRow {
        self.find(id).expect("a row")
    }

    /// The status of a workflow.
    pub(crate) fn status(&self, id: &str) -> Status {
        self.row(id).status
    }

    /// How a workflow stands, with its outcome.
    pub(crate) fn standing(&self, id: &str) -> Standing {
        let store = self.reader();
        self.run(store.workflow_standing(&[id.into()])).expect("standing").remove(0)
    }

    /// The recorded error of a workflow that ended with one, or was set aside with a reason.
    pub(crate) fn failure(&self, id: &str) -> serde_json::Value {
        match self.standing(id) {
            Standing::Ended(Outcome::Error(error) | Outcome::Parked(error)) => {
                serde_json::from_str(error.as_str()).expect("an error as JSON")
            }
            other => panic!("{id} has no error: {other:?}"),
        }
    }

    /// Deletes a workflow.
    pub(crate) fn delete(&self, id: &str) {
        let store = self.reader();
        let unit = Unit::new().effect(Effect::Delete { ids: vec![id.into()], children: false });
        let committed = self.run(store.commit(&[unit])).expect("a commit");
        assert!(committed.units[0].as_ref().is_ok_and(mainstay_store::UnitReply::is_done), "{committed:?}");
    }

    /// Lets time pass until a condition holds, in steps of 50 ms, for ten minutes at most.
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let limit = self.elapsed() + secs(600);
        while !holds() {
            assert!(self.elapsed() < limit, "never: {what}");
            self.pass(Duration::from_millis(50));
        }
    }
}
