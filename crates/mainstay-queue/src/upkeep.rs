//! The upkeep: gives rows back, takes dead executors over, and audits what the own executor holds. One call at a time.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{
    Audit, AuditCursor, Committed, Effect, ErrorKind, ExecutorId, StoreError, TakeOver, TakenOver, Unit,
};

use crate::audit::{AuditInput, AuditPlan, AuditStep, lost_rows};
use crate::mail::note_before;
use crate::shared::{Errand, Return, Shared};

/// Most rows of one commit of give-backs.
const GIVE_BACKS: usize = 256;
/// A call of the upkeep that takes longer is given up: the next errand may fare better.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until the engine stops its tasks.
pub(crate) async fn run(shared: Arc<Shared>) {
    let plan = AuditPlan::new(shared.env.monotonic(), shared.config.audit);
    let mut upkeep = Upkeep { shared, plan, give_backs: VecDeque::new(), take_overs: BTreeMap::new() };
    // An earlier upkeep may have died with errands in hand.
    upkeep.tell(AuditInput::Suspect);
    loop {
        for errand in upkeep.shared.errands.take() {
            upkeep.note(errand);
        }
        if !upkeep.give_backs.is_empty() {
            upkeep.give_back().await;
        } else if let Some((executor, beat)) = upkeep.take_overs.pop_first() {
            upkeep.take_over(executor, beat).await;
        } else {
            match upkeep.plan.next(upkeep.shared.env.monotonic()) {
                AuditStep::Read(after) => upkeep.audit(after).await,
                AuditStep::Wait(until) => note_before(&upkeep.shared.errands, &upkeep.shared.env, until).await,
            }
        }
    }
}

struct Upkeep {
    shared: Arc<Shared>,
    plan: AuditPlan,
    give_backs: VecDeque<Return>,
    take_overs: BTreeMap<ExecutorId, u64>,
}

impl Upkeep {
    fn tell(&mut self, input: AuditInput) {
        self.plan.tell(self.shared.env.monotonic(), input);
    }

    fn note(&mut self, errand: Errand) {
        match errand {
            Errand::GiveBack(row) => self.give_backs.push_back(row),
            Errand::TakeOver(dead) => drop(self.take_overs.insert(dead.executor, dead.beat)),
            Errand::Suspect => self.tell(AuditInput::Suspect),
            Errand::Renewed => {
                self.tell(AuditInput::Renewed);
                self.tell(AuditInput::Suspect);
            }
        }
    }

    /// A call, given up when it takes too long.
    async fn call<T>(
        &self,
        op: &'static str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = self.shared.env.timeout(PATIENCE, call).await;
        let answer = answer.unwrap_or_else(|_| Err(StoreError::new(ErrorKind::Timeout, op)));
        answer.inspect_err(|error| tracing::warn!(%error, "upkeep failed"))
    }

    /// Returns rows to their queues; what fails is left to the next audit.
    async fn give_back(&mut self) {
        let rows: Vec<_> = self.give_backs.drain(..self.give_backs.len().min(GIVE_BACKS)).collect();
        let unit = |row: &Return| Unit::by(&row.fence).effect(Effect::GiveBack { delay: row.delay, begun: row.begun });
        let units: Vec<_> = rows.iter().map(unit).collect();
        let shared = self.shared.clone();
        let committed = self.call("commit", shared.store.commit(&units)).await;
        if let Ok(committed) = &committed {
            let done = returned(committed);
            tracing::info!(rows = rows.len(), done, "rows given back");
            shared.counters.lock().given_back += done;
        }
        if committed.is_ok_and(|committed| committed.units.iter().all(Result::is_ok)) {
            return;
        }
        self.tell(AuditInput::Suspect);
    }

    /// Takes one page of a dead executor's rows; the next page waits in line. A failure is found dead again by a tick.
    async fn take_over(&mut self, executor: ExecutorId, beat: u64) {
        let shared = self.shared.clone();
        let request = TakeOver::new(executor.clone(), beat);
        let Ok(TakenOver::Rows { ids, more }) =
            self.call("lease_take_over", shared.store.lease_take_over(request)).await
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
        let answer = self.call("queue_audit", shared.store.queue_audit(request)).await;
        let took = shared.env.monotonic().since(began);
        if shared.identity(|identity| identity.epoch) != epoch {
            return self.tell(AuditInput::Renewed);
        }
        let Ok(audited) = answer else { return self.tell(AuditInput::Failed) };
        let outstanding = shared.lanes.outstanding();
        let lost = lost_rows(&audited.rows, &shared.counts.lock(), &outstanding);
        // Why they run nowhere is not known, so that their attempts count.
        self.give_backs.extend(lost.into_iter().map(|fence| Return { fence, delay: None, begun: true }));
        self.tell(AuditInput::Page(took, audited.next));
        shared.counters.lock().audits = self.plan.finished();
    }
}

fn returned(committed: &Committed) -> u64 {
    committed.units.iter().filter(|unit| unit.as_ref().is_ok_and(mainstay_store::UnitReply::is_done)).count() as u64
}
