//! Where the queue engine and direct starts hand executions over.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use mainstay_queue::{Launcher, Work};
use mainstay_store::{Fence, RecordedStep, Registered, Standing, Status, Steps, WorkflowId, WorkflowRow};

use crate::driver::{self, Entry, Start};
use crate::execution::{Execution, Stop};
use crate::registry::Key;
use crate::shared::Shared;

/// The runtime as the queue engine sees it. The engine is made before the parts are complete, so they come later.
pub(crate) struct Bodies {
    registered: Arc<[Registered]>,
    shared: OnceLock<Weak<Shared>>,
}

impl Bodies {
    pub(crate) fn new(registered: Arc<[Registered]>) -> Arc<Self> {
        Arc::new(Self { registered, shared: OnceLock::new() })
    }

    pub(crate) fn attach(&self, shared: &Arc<Shared>) {
        // Set once, by the launch.
        let _ = self.shared.set(Arc::downgrade(shared));
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.get().and_then(Weak::upgrade)
    }
}

impl std::fmt::Debug for Bodies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bodies").field("registered", &self.registered.len()).finish_non_exhaustive()
    }
}

impl Launcher for Bodies {
    fn registered(&self) -> Arc<[Registered]> {
        self.registered.clone()
    }

    fn launch(&self, work: Work) {
        let Some(shared) = self.shared() else { return };
        let Work { claimed, slot, .. } = work;
        let Some(body) = shared.registry.get(&Key::of(&claimed.row)) else {
            // A claim names what is registered; a row of anything else is left to the audit.
            tracing::error!(workflow = %claimed.row.id, name = %claimed.row.name, "claimed, but not registered");
            return;
        };
        let (steps, more) = match claimed.steps {
            Steps::Complete(steps) => (steps, None),
            Steps::Partial { first, next } => (first, Some(next)),
        };
        let codec = claimed.row.codec.clone();
        let start = Start { body, input: claimed.input, codec, more, slot };
        shared.begin(&claimed.row, claimed.fence, steps, start);
    }

    fn evict(&self, id: &WorkflowId) {
        let exec = self.shared().and_then(|shared| shared.running_here(id));
        if let Some(exec) = exec {
            exec.stop(Stop::Evicted);
            exec.shared.leave(&exec);
        }
    }
}

impl Shared {
    /// Starts the body of a row that this process holds.
    pub(crate) fn begin(self: &Arc<Self>, row: &WorkflowRow, fence: Fence, steps: Vec<RecordedStep>, start: Start) {
        let exec = Execution::new(self, row, fence, steps);
        if let Some(older) = self.enter(&exec) {
            older.stop(Stop::Superseded(Standing::Open(Status::Pending)));
        }
        // Nobody waits for the task: its end is the outcome, and the group owns it.
        let driving = driver::drive(Entry::new(exec), start);
        drop(self.bodies.spawn(format!("{}/{}", row.name, row.id), driving));
    }

    /// A body was dropped before its first poll: the caller's runtime has ended. Unless the engine stops too, it takes no more
    /// work, which it could only give back again with an attempt lost.
    pub(crate) fn bodies_lost(&self, id: &WorkflowId) {
        let Some(dispatch) = self.dispatch().filter(|_| !self.is_stopping()) else { return };
        if self.bodies_lost.swap(true, Ordering::Relaxed) {
            return;
        }
        tracing::error!(workflow = %id, "the runtime that launched the engine has ended: no more work is taken here");
        let dispatch = dispatch.clone();
        drop(self.env.tasks().spawn("stop claiming", async move { dispatch.stop_claiming().await }));
    }
}
