//! Upkeep: the tick of a supervisor, and the collection of ended rows.

use std::collections::BTreeSet;

use async_trait::async_trait;
use mainstay_store::{
    AppName, Bounds, Collect, Collected, Maintenance, QueueName, Result, StoreError, Tick, Ticked, Timestamp,
    WorkflowId,
};

use crate::index::Groups;
use crate::memory::Memory;
use crate::operation::Operation;
use crate::queue::first_delay;

#[async_trait]
impl Maintenance for Memory {
    async fn tick(&self, request: Tick) -> Result<Ticked> {
        self.run("tick", move |operation| {
            request.check(&Bounds::default()).map_err(|error| StoreError::field_error("tick", error))?;
            Ok(operation.tick(&request))
        })
        .await
    }

    async fn collect(&self, request: Collect) -> Result<Collected> {
        self.run("collect", move |operation| {
            request.check(&Bounds::default()).map_err(|error| StoreError::field_error("collect", error))?;
            Ok(operation.collect(&request))
        })
        .await
    }
}

type ByTime = Groups<Option<AppName>, (Timestamp, WorkflowId)>;

/// Rows of an application and of none that are due at `until`, by (time, id), at most so many.
fn due(index: &ByTime, app: &AppName, until: Timestamp, most: u32) -> Vec<WorkflowId> {
    let of = |app| index.members(&app).take_while(|(at, _)| *at <= until).take(most as usize).cloned();
    let mut found: Vec<(Timestamp, WorkflowId)> = of(Some(app.clone())).collect();
    found.extend(of(None));
    found.sort_unstable();
    found.truncate(most as usize);
    found.into_iter().map(|(_, id)| id).collect()
}

fn first(index: &ByTime, app: &AppName) -> Option<Timestamp> {
    let of = |app| index.members(&app).next().map(|(at, _)| *at);
    of(Some(app.clone())).into_iter().chain(of(None)).min()
}

impl Operation<'_> {
    fn tick(&mut self, request: &Tick) -> Ticked {
        let released = self.release(request);
        let cancelled = self.sweep(request);
        let beat = request.beat.as_ref().map(|beat| self.beat(beat));
        let stamp = self.state.stamp;
        let mut ticked =
            Ticked::new(self.now, stamp).released(released).cancelled(cancelled).leases(self.leases(&request.app));
        ticked.beat = beat;
        if request.seen != Some(stamp) {
            ticked.queues = Some(self.queues(&request.app));
            ticked.malformed = self.malformed(&request.app);
        }
        let delay = first_delay(self.state, &request.app);
        let deadline = first(&self.state.index.deadlines, &request.app);
        ticked.next_due = delay.into_iter().chain(deadline).min().map(|at| at.since(self.now));
        ticked
    }

    /// Makes delayed rows that are due claimable; answers their queues by name.
    fn release(&mut self, request: &Tick) -> Vec<QueueName> {
        let mut queues = BTreeSet::new();
        for id in due(&self.state.index.delayed, &request.app, self.now, request.limit) {
            queues.extend(self.state.rows[&id].row.queue.clone());
            self.release_row(&id);
        }
        queues.into_iter().collect()
    }

    /// Cancels open rows whose deadline has come; answers them by id.
    fn sweep(&mut self, request: &Tick) -> Vec<WorkflowId> {
        let mut ids = due(&self.state.index.deadlines, &request.app, self.now, request.limit);
        for id in &ids {
            self.cancel_row(id);
        }
        ids.sort_unstable();
        ids
    }

    fn collect(&mut self, request: &Collect) -> Collected {
        let until = self.now - request.age;
        let ids = due(&self.state.index.ended, &request.app, until, request.limit);
        for id in &ids {
            self.remove(id);
        }
        let more = first(&self.state.index.ended, &request.app).is_some_and(|at| at <= until);
        Collected::new(self.now).removed(u32::try_from(ids.len()).unwrap_or(u32::MAX)).more(more)
    }
}
