//! Questions about queues: the trait, probe and audit.

use async_trait::async_trait;
use mainstay_store::{
    AppName, Audit, AuditCursor, Audited, Bounds, Claim, Claimed, HeldRow, Probe, Probed, QueueName, QueueStore,
    Result, Stop, StoreError, Timestamp, WorkflowId, wire,
};

use crate::claim;
use crate::memory::Memory;
use crate::operation::Operation;
use crate::select::Claimer;
use crate::state::{Record, State};

#[async_trait]
impl QueueStore for Memory {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        let missed = self.misses_claim();
        self.run("queue_claim", move |operation| {
            claim::check(&request)?;
            if missed {
                return Ok(Claimed::new(operation.now, Stop::Contended));
            }
            operation.claim(&request)
        })
        .await
    }

    async fn queue_probe(&self, request: Probe) -> Result<Probed> {
        self.run("queue_probe", move |operation| {
            request.check(&Bounds::default()).map_err(|error| StoreError::field_error("queue_probe", error))?;
            Ok(operation.probe(&request))
        })
        .await
    }

    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        self.run("queue_audit", move |operation| {
            request.check(&Bounds::default()).map_err(|error| StoreError::field_error("queue_audit", error))?;
            Ok(operation.audit(&request))
        })
        .await
    }
}

impl Operation<'_> {
    fn probe(&self, request: &Probe) -> Probed {
        let claimer = Claimer::new(self.state, &request.app, &request.version, &request.names);
        // Nothing can be claimed of a queue that is not registered, whatever its rows.
        let known = |queue: &QueueName| *queue == *wire::INTERNAL_QUEUE || self.state.queues.contains_key(queue);
        let due = |queue: &&QueueName| known(queue) && claimer.has_work(self.state, queue);
        let due = request.queues.iter().filter(due).cloned().collect();
        let mut probed = Probed::new(self.now).due(due);
        probed.next_due = first_delay(self.state, &request.app).map(|at| at.since(self.now));
        probed
    }

    fn audit(&self, request: &Audit) -> Audited {
        let none = std::collections::BTreeSet::new();
        let held = self.state.index.held_by_age.get(&request.executor).unwrap_or(&none);
        let from = match &request.after {
            Some(after) => std::ops::Bound::Excluded((after.created_at, after.id.clone())),
            None => std::ops::Bound::Unbounded,
        };
        let mut page = held.range((from, std::ops::Bound::Unbounded));
        let taken: Vec<&(Timestamp, WorkflowId)> = page.by_ref().take(request.limit as usize).collect();
        let rows = taken.iter().filter_map(|(_, id)| held_row(&self.state.rows[id])).collect();
        let mut audited = Audited::new(self.now).rows(rows);
        if let (Some((created_at, id)), Some(_)) = (taken.last(), page.next()) {
            audited.next = Some(AuditCursor { created_at: *created_at, id: id.clone() });
        }
        audited
    }
}

/// When the first delayed row of an application or of none is due.
pub(crate) fn first_delay(state: &State, app: &AppName) -> Option<Timestamp> {
    let first = |app| state.index.delayed.members(&app).next().map(|(at, _)| *at);
    first(Some(app.clone())).into_iter().chain(first(None)).min()
}

fn held_row(record: &Record) -> Option<HeldRow> {
    let owner = record.owner.as_ref()?;
    let mut held = HeldRow::new(record.fence()?, record.row.created_at).token(owner.token.clone());
    held.queue = record.row.queue.clone();
    Some(held)
}
