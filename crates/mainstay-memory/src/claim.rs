//! The claim.

use mainstay_store::{
    Admission, Allowance, Bounds, Claim, Claimed, ClaimedRow, Counts, ErrorKind, Input, Limits, Outcome, Result, Steps,
    Stop, StoreError, WorkflowId, wire,
};

use crate::operation::Operation;
use crate::select::Claimer;
use crate::state::Record;

const OP: &str = "queue_claim";

impl Operation<'_> {
    /// Takes rows, in the order that the contract fixes.
    pub(crate) fn claim(&mut self, claim: &Claim) -> Result<Claimed> {
        if !self.state.is_leased(&claim.executor) {
            return Ok(Claimed::new(self.now, Stop::Unleased));
        }
        if claim.repeat {
            let held = self.held_by(claim);
            if !held.is_empty() {
                return Ok(Claimed::new(self.now, Stop::More).rows(self.replies(&held, claim)));
            }
        }
        if self.state.damage.queues.contains(&claim.queue) {
            return Err(StoreError::new(ErrorKind::Corrupt, OP));
        }
        let limits = match self.limits(claim) {
            Ok(limits) => limits,
            Err(stop) => return Ok(Claimed::new(self.now, stop)),
        };
        if limits.partitioned() {
            return Err(StoreError::unsupported(OP, "partitions"));
        }
        let allowance = self.allowance(claim, &limits);
        Ok(self.take(claim, &limits, allowance))
    }

    /// The rows that the first try of this claim took and still holds, in claim order.
    fn held_by(&self, claim: &Claim) -> Vec<WorkflowId> {
        let held = self.state.index.tokens.members(&claim.token).map(|(_, _, id)| id);
        held.filter(|id| {
            let row = &self.state.rows[*id].row;
            row.queue.as_ref() == Some(&claim.queue) && row.executor.as_ref() == Some(&claim.executor)
        })
        .cloned()
        .collect()
    }

    /// The limits of the queue, or why nothing may be taken of it.
    fn limits(&self, claim: &Claim) -> std::result::Result<Limits, Stop> {
        if claim.queue == *wire::INTERNAL_QUEUE {
            return Ok(Limits::default());
        }
        let Some(queue) = self.state.queues.get(&claim.queue) else { return Err(Stop::NoQueue) };
        match claim.revision {
            Some(revision) if revision != queue.revision => Err(Stop::Stale(Box::new(queue.clone()))),
            _ => Ok(queue.limits()),
        }
    }

    /// Counts what the limits ask for, and lets `Admission` decide.
    fn allowance(&self, claim: &Claim, limits: &Limits) -> Allowance {
        let admission = Admission { limits, local: &claim.local, budget: claim.budget };
        let needs = admission.needs();
        let mut counts = Counts::default();
        if let Some(bound) = needs.running {
            let running = self.state.index.running(&claim.queue, &claim.app);
            counts.running = u32::try_from(running).unwrap_or(u32::MAX).min(bound);
        }
        if let (Some(rate), Some(starts)) = (needs.starts, self.state.starts.get(&claim.queue)) {
            counts.starts = starts.within(self.now, rate);
        }
        admission.decide(&counts)
    }

    fn take(&mut self, claim: &Claim, limits: &Limits, allowance: Allowance) -> Claimed {
        let claimer = Claimer::new(self.state, &claim.app, &claim.version, &claim.names);
        let found = claimer.first(self.state, &claim.queue, allowance.total);
        let drained = found.len() < allowance.total as usize;
        let (mut taken, mut parked) = (Vec::new(), Vec::new());
        for (_, _, id) in found {
            let row = &self.state.rows[&id].row;
            let most = claim.registered(row).map_or(0, |registered| registered.max_attempts);
            if self.state.damage.rows.remove(&id) {
                self.end_row(&id, unreadable());
                parked.push(id);
            } else if row.attempts >= most {
                self.park_row(&id);
                parked.push(id);
            } else {
                self.start(&id, claim, limits);
                taken.push(id);
            }
        }
        let stop = match (drained, parked.is_empty()) {
            (true, _) => Stop::Drained,
            (false, false) => Stop::More,
            (false, true) => allowance.full,
        };
        Claimed::new(self.now, stop).rows(self.replies(&taken, claim)).parked(parked)
    }

    /// Flips one row, and notes the start where the queue has a rate.
    fn start(&mut self, id: &WorkflowId, claim: &Claim, limits: &Limits) {
        self.claim_row(id, claim, limits.rate.is_some());
        if let Some(rate) = limits.rate {
            let key = self.state.rows[id].row.key.clone();
            self.state.starts.entry(claim.queue.clone()).or_default().record(self.now, key, rate);
        }
    }

    /// The rows with what starting them needs, as far as the byte budgets go.
    fn replies(&self, ids: &[WorkflowId], claim: &Claim) -> Vec<ClaimedRow> {
        let mut left = claim.claim_bytes;
        let mut rows = Vec::with_capacity(ids.len());
        for id in ids {
            let budget = claim.row_bytes.min(left);
            let mut unused = budget;
            rows.extend(reply(&self.state.rows[id], &mut unused));
            left -= budget - unused;
        }
        rows
    }
}

/// One row, its input before its steps; there is always a fence, for it is pending.
fn reply(record: &Record, budget: &mut u64) -> Option<ClaimedRow> {
    let input = match &record.input {
        None => Input::Missing,
        Some(payload) if payload.bytes() > *budget => Input::Deferred { bytes: payload.bytes() },
        Some(payload) => {
            *budget -= payload.bytes();
            Input::Inline(payload.clone())
        }
    };
    let steps = Steps::within(record.steps.values().cloned().collect(), budget, 0);
    Some(ClaimedRow::new(record.row.clone(), record.fence()?, input, steps))
}

/// What is written for a row that cannot be read: a portable error, as for one that has had its attempts.
fn unreadable() -> Outcome {
    Outcome::Parked(r#"{"name":"Unreadable","message":"a test has damaged it"}"#.into())
}

/// What no claim may carry.
pub(crate) fn check(claim: &Claim) -> Result<()> {
    claim.check(&Bounds::default()).map_err(|error| StoreError::field_error(OP, error))
}
