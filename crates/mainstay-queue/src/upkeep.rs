//! The upkeep: gives rows back, takes dead executors over, and audits what the own executor holds. One call at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{Audit, AuditCursor, Committed, ExecutorId, Fence, TakeOver, TakenOver};

use crate::audit::{AuditInput, AuditPlan, AuditStep, lost_rows};
use crate::backoff::hold_off;
use crate::mail::note_before;
use crate::shared::{Errand, Return, Shared};

/// Most rows of one commit of give-backs.
const GIVE_BACKS: usize = 256;
/// Most rows that wait to be given back: what is over is left to the audit.
const KEPT: usize = 4_096;
/// Most failures in a row before those that failed are left to the audit: with their pauses, ten minutes at least.
const TRIES: u32 = 128;
/// A call of the upkeep that takes longer is given up: the next errand may fare better.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until the engine stops its tasks.
pub(crate) async fn run(shared: Arc<Shared>) {
    let plan = AuditPlan::new(shared.env.monotonic(), shared.config.audit);
    let due = shared.env.monotonic();
    let mut upkeep = Upkeep { shared, plan, due, failures: 0, take_overs: BTreeMap::new() };
    // An earlier upkeep may have died with errands in hand.
    upkeep.tell(AuditInput::Suspect);
    loop {
        upkeep.read_errands();
        let due = upkeep.give_backs_due();
        if due.is_some_and(|due| due <= upkeep.shared.env.monotonic()) {
            upkeep.give_back().await;
        } else if let Some((executor, beat)) = upkeep.take_overs.pop_first() {
            upkeep.take_over(executor, beat).await;
        } else {
            match upkeep.plan.next(upkeep.shared.env.monotonic()) {
                AuditStep::Read(after) => upkeep.audit(after).await,
                AuditStep::Wait(until) => {
                    let until = due.map_or(until, |due| due.min(until));
                    note_before(&upkeep.shared.errands, &upkeep.shared.env, until).await;
                }
            }
        }
    }
}

struct Upkeep {
    shared: Arc<Shared>,
    plan: AuditPlan,
    /// When rows may be given back again.
    due: Monotonic,
    /// Failures to give rows back, in a row.
    failures: u32,
    take_overs: BTreeMap<ExecutorId, u64>,
}

impl Upkeep {
    fn tell(&mut self, input: AuditInput) {
        self.plan.tell(self.shared.env.monotonic(), input);
    }

    fn read_errands(&mut self) {
        for errand in self.shared.errands.take() {
            self.note(errand);
        }
    }

    fn note(&mut self, errand: Errand) {
        match errand {
            Errand::GiveBack(row) => self.keep(row),
            Errand::TakeOver(dead) => drop(self.take_overs.insert(dead.executor, dead.beat)),
            Errand::Suspect => self.tell(AuditInput::Suspect),
            Errand::Renewed => {
                self.tell(AuditInput::Renewed);
                self.tell(AuditInput::Suspect);
            }
        }
    }

    /// Has a row given back, unless too many wait for that.
    fn keep(&mut self, row: Return) {
        let kept = {
            let mut rows = self.shared.returns();
            let keeps = rows.len() < KEPT;
            if keeps {
                rows.push_back(row);
            }
            keeps
        };
        if !kept {
            self.tell(AuditInput::Suspect);
        }
    }

    /// When rows are given back next; never while none waits.
    fn give_backs_due(&self) -> Option<Monotonic> {
        (!self.shared.returns().is_empty()).then_some(self.due)
    }

    /// Returns rows to their queues. A commit of which nothing is known is sent again, for what an audit finds has lost the
    /// word of whether it began; a row that has left its execution meanwhile is superseded. A row alone that fails is left to
    /// the next audit.
    async fn give_back(&mut self) {
        let shared = self.shared.clone();
        let units: Vec<_> = shared.returns().iter().take(GIVE_BACKS).map(Return::unit).collect();
        let committed = shared.call("commit", PATIENCE, shared.store.commit(&units)).await;
        let Ok(committed) = committed else { return self.put_off(units.len()) };
        self.forget(units.len());
        let done = returned(&committed);
        tracing::info!(rows = units.len(), done, "rows given back");
        shared.counters.lock().given_back += done;
        if !committed.units.iter().all(Result::is_ok) {
            self.tell(AuditInput::Suspect);
        }
    }

    /// Lets rows that were not given back wait, or leaves them to the next audit.
    fn put_off(&mut self, rows: usize) {
        self.failures += 1;
        self.due = self.shared.env.deadline(hold_off(self.failures, self.shared.draw()));
        if self.failures >= TRIES {
            self.forget(rows);
            self.tell(AuditInput::Suspect);
        }
    }

    fn forget(&mut self, rows: usize) {
        self.failures = 0;
        let mut waiting = self.shared.returns();
        let rows = rows.min(waiting.len());
        waiting.drain(..rows);
    }

    /// Takes one page of a dead executor's rows; the next page waits in line. A failure is found dead again by a tick.
    async fn take_over(&mut self, executor: ExecutorId, beat: u64) {
        let shared = self.shared.clone();
        let request = TakeOver::new(executor.clone(), beat);
        let Ok(TakenOver::Rows { ids, more }) =
            shared.call("lease_take_over", PATIENCE, shared.store.lease_take_over(request)).await
        else {
            return;
        };
        tracing::info!(%executor, rows = ids.len(), more, "executor taken over");
        shared.counters.lock().taken_over += ids.len() as u64;
        if more {
            self.take_overs.insert(executor, beat);
        }
    }

    async fn audit(&mut self, after: Option<AuditCursor>) {
        let shared = self.shared.clone();
        let (executor, epoch) = shared.identity(|identity| (identity.executor.clone(), identity.epoch));
        let mut request = Audit::new(executor);
        request.after = after;
        let began = shared.env.monotonic();
        let answer = shared.call("queue_audit", PATIENCE, shared.store.queue_audit(request)).await;
        let took = shared.env.monotonic().since(began);
        if shared.identity(|identity| identity.epoch) != epoch {
            return self.tell(AuditInput::Renewed);
        }
        let Ok(audited) = answer else { return self.tell(AuditInput::Failed) };
        let outstanding = shared.lanes.outstanding();
        let lost = lost_rows(&audited.rows, &shared.counts.lock(), &outstanding);
        // After the look at what is lost: a row that was given up before it is known here by now.
        self.read_errands();
        let known: BTreeSet<Fence> = shared.returns().iter().map(|row| row.fence.clone()).collect();
        for fence in lost.into_iter().filter(|fence| !known.contains(fence)) {
            // Why it runs nowhere is not known, so that its attempt counts.
            self.keep(Return { fence, delay: None, begun: true });
        }
        self.tell(AuditInput::Page(took, audited.next));
        shared.counters.lock().audits = self.plan.finished();
    }
}

fn returned(committed: &Committed) -> u64 {
    committed.units.iter().filter(|unit| unit.as_ref().is_ok_and(mainstay_store::UnitReply::is_done)).count() as u64
}
