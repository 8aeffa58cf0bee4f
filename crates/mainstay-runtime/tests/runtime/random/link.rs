//! The way from one process to the store: others run before and after every call, and the ledger hears what calls did.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mainstay_env::yield_now;
use mainstay_memory::Memory;
use mainstay_store::*;

use super::ledger::{Ledger, Run};

/// How often each method was called; clones count the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Calls {
    fn note(&self, method: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(method).or_default() += 1;
    }

    pub(crate) fn of(&self, method: &str) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(method).copied().unwrap_or(0)
    }

    pub(crate) fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A store as one incarnation of a process has it.
pub(crate) struct Linked {
    pub(crate) inner: Memory,
    pub(crate) run: Run,
    pub(crate) ledger: Ledger,
    pub(crate) calls: Calls,
}

impl std::fmt::Debug for Linked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Linked").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Linked {
    /// A call: others run before it is executed, and before its answer arrives.
    async fn go<T>(&self, method: &'static str, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.calls.note(method);
        yield_now().await;
        let answer = call.await;
        yield_now().await;
        answer
    }
}

#[async_trait]
impl WriteStore for Linked {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        self.calls.note("commit");
        yield_now().await;
        let answer = self.inner.commit(units).await;
        let _under_way = answer.as_ref().ok().map(|committed| self.ledger.committed(&self.run, units, committed));
        yield_now().await;
        answer
    }
}

pass_on! { Linked => inner via go: WorkflowStore, Registry }
pass_on! { Linked => inner: Store }

#[async_trait]
impl QueueStore for Linked {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        self.calls.note("queue_claim");
        yield_now().await;
        let answer = self.inner.queue_claim(request).await;
        let _under_way = answer.as_ref().ok().map(|claimed| self.ledger.claimed(&self.run, claimed));
        yield_now().await;
        answer
    }

    async fn queue_probe(&self, request: Probe) -> Result<Probed> {
        self.go("queue_probe", self.inner.queue_probe(request)).await
    }

    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        self.go("queue_audit", self.inner.queue_audit(request)).await
    }
}

#[async_trait]
impl ExecutorStore for Linked {
    async fn lease_beat(&self, request: Beat) -> Result<Beaten> {
        self.ledger.beats(&self.run, &request.executor);
        self.go("lease_beat", self.inner.lease_beat(request)).await
    }

    async fn lease_list(&self, app: &AppName) -> Result<Leases> {
        self.go("lease_list", self.inner.lease_list(app)).await
    }

    async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver> {
        self.calls.note("lease_take_over");
        yield_now().await;
        let answer = self.inner.lease_take_over(request).await;
        if let Ok(TakenOver::Rows { ids, .. }) = &answer {
            self.ledger.taken(ids);
        }
        yield_now().await;
        answer
    }
}

#[async_trait]
impl Maintenance for Linked {
    async fn tick(&self, request: Tick) -> Result<Ticked> {
        self.calls.note("tick");
        yield_now().await;
        let answer = self.inner.tick(request).await;
        if let Ok(ticked) = &answer {
            self.ledger.ended(&ticked.cancelled);
        }
        yield_now().await;
        answer
    }

    async fn collect(&self, request: Collect) -> Result<Collected> {
        self.go("collect", self.inner.collect(request)).await
    }
}

// The runtime uses no optional part of the contract.
impl SignalStore for Linked {}
impl ScheduleStore for Linked {}
impl AdminStore for Linked {}
