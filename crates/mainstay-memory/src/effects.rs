//! Effects of a unit: each is judged whole, then done.

use std::collections::BTreeSet;

use mainstay_store::{Effect, EffectReply, Fence, Move, QueueName, Refusal, Status, WorkflowId};

use crate::moves::internal;
use crate::operation::Operation;

/// What an effect did, or why its unit is refused.
pub(crate) type Judged = Result<EffectReply, Refusal>;

impl Operation<'_> {
    /// Does one effect of a unit with this fence, or nothing.
    pub(crate) fn effect(&mut self, effect: &Effect, fence: Option<&Fence>) -> Judged {
        let own = fence.map(Fence::workflow);
        match effect {
            Effect::Submit(submit) => self.submit(submit),
            Effect::Fork(fork) => self.fork(fork),
            Effect::Cancel { ids, children } => Ok(self.cancel(ids, *children, own)),
            Effect::Delete { ids, children } => Ok(self.delete(ids, *children, own)),
            Effect::Resume { ids, queue, force } => self.resume(ids, queue.as_ref(), *force),
            Effect::GiveBack { delay, begun } => {
                let Some(own) = own else { return Err(Refusal::Unsupported) };
                self.return_row(own, &internal(), *delay);
                if !*begun {
                    self.change(own, |record, _| record.row.attempts = record.row.attempts.saturating_sub(1));
                }
                Ok(EffectReply::Written)
            }
            Effect::SetDelay { id, delay } => {
                if !self.is(id, Status::Delayed) {
                    return Err(Refusal::Missing(id.clone()));
                }
                self.change(id, |record, now| record.row.delay_until = Some(delay.resolve(now)));
                Ok(EffectReply::Written)
            }
            Effect::Attributes { id, json } => {
                if !self.state.rows.contains_key(id) {
                    return Err(Refusal::Missing(id.clone()));
                }
                self.change(id, |record, _| record.row.attributes = json.clone());
                Ok(EffectReply::Written)
            }
            _ => Err(Refusal::Unsupported),
        }
    }

    fn is(&self, id: &WorkflowId, status: Status) -> bool {
        self.state.rows.get(id).is_some_and(|record| record.row.status == status)
    }

    fn cancel(&mut self, ids: &[WorkflowId], children: bool, own: Option<&WorkflowId>) -> EffectReply {
        let mut ids = self.family(ids, children, own);
        ids.retain(|id| self.state.rows[id].row.status.after(Move::Cancel).is_some());
        for id in &ids {
            self.cancel_row(id);
        }
        EffectReply::Moved(ids.into_iter().collect())
    }

    fn delete(&mut self, ids: &[WorkflowId], children: bool, own: Option<&WorkflowId>) -> EffectReply {
        let ids = self.family(ids, children, own);
        for id in &ids {
            self.remove(id);
            self.hint(mainstay_store::Wakeup::Workflow(id.clone()));
        }
        EffectReply::Moved(ids.into_iter().collect())
    }

    /// The rows that these ids name, with their descendants if asked for, without the unit's own.
    fn family(&self, ids: &[WorkflowId], children: bool, own: Option<&WorkflowId>) -> BTreeSet<WorkflowId> {
        let mut found: BTreeSet<WorkflowId> = BTreeSet::new();
        let mut open: Vec<WorkflowId> = ids.to_vec();
        while let Some(id) = open.pop() {
            if found.insert(id.clone()) && children {
                open.extend(self.state.index.children.members(&id).cloned());
            }
        }
        found.retain(|id| Some(id) != own && self.state.rows.contains_key(id));
        found
    }

    fn resume(&mut self, ids: &[WorkflowId], queue: Option<&QueueName>, force: bool) -> Judged {
        let mut moved = BTreeSet::new();
        for id in ids {
            let Some(record) = self.state.rows.get(id) else { return Err(Refusal::Missing(id.clone())) };
            if record.row.status == Status::Pending && !force {
                return Err(Refusal::Running(id.clone()));
            }
            if record.row.status.after(Move::Resume).is_some() {
                moved.insert(id.clone());
            }
        }
        let queue = queue.cloned().unwrap_or_else(internal);
        for id in &moved {
            self.resume_row(id, &queue);
        }
        Ok(EffectReply::Moved(moved.into_iter().collect()))
    }
}
