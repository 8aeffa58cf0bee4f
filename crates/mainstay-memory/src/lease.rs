//! Leases of executors.

use async_trait::async_trait;
use mainstay_store::{
    AppName, Beat, Beaten, Bounds, ExecutorId, ExecutorStore, Lease, Leases, Result, StoreError, TakeOver, TakenOver,
    Wakeup, WorkflowId,
};

use crate::memory::Memory;
use crate::operation::Operation;
use crate::state::LeaseRecord;

#[async_trait]
impl ExecutorStore for Memory {
    async fn lease_beat(&self, request: Beat) -> Result<Beaten> {
        self.run("lease_beat", move |operation| {
            request.check(&Bounds::default()).map_err(|error| StoreError::field_error("lease_beat", error))?;
            Ok(operation.beat(&request))
        })
        .await
    }

    async fn lease_list(&self, app: &AppName) -> Result<Leases> {
        self.run("lease_list", |operation| Ok(Leases::new(operation.now).leases(operation.leases(app)))).await
    }

    async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver> {
        self.run("lease_take_over", move |operation| {
            request.check(&Bounds::default()).map_err(|error| StoreError::field_error("lease_take_over", error))?;
            Ok(operation.take_over(&request))
        })
        .await
    }
}

impl Operation<'_> {
    pub(crate) fn beat(&mut self, request: &Beat) -> Beaten {
        match self.state.leases.get_mut(&request.executor) {
            Some(lease) if lease.ended => Beaten::Gone,
            Some(lease) => {
                lease.beat = lease.beat.max(request.beat);
                Beaten::Alive
            }
            None if request.beat == 1 => {
                let lease = LeaseRecord { app: request.app.clone(), beat: 1, ended: false };
                self.state.leases.insert(request.executor.clone(), lease);
                Beaten::Alive
            }
            None => Beaten::Gone,
        }
    }

    /// The leases of an application, by executor.
    pub(crate) fn leases(&self, app: &AppName) -> Vec<Lease> {
        let of_app = self.state.leases.iter().filter(|(_, lease)| lease.app == *app);
        let shown = |(executor, lease): (&ExecutorId, &LeaseRecord)| {
            Lease::new(executor.clone(), lease.app.clone(), lease.beat).ended(lease.ended)
        };
        of_app.map(shown).collect()
    }

    fn take_over(&mut self, request: &TakeOver) -> TakenOver {
        let Some(lease) = self.state.leases.get_mut(&request.executor) else {
            return TakenOver::Rows { ids: Vec::new(), more: false };
        };
        if !lease.ended && lease.beat != request.beat {
            return TakenOver::Alive;
        }
        lease.ended = true;
        let held = self.state.index.held_by_id.members(&request.executor);
        let ids: Vec<WorkflowId> = held.take(request.limit as usize).cloned().collect();
        for id in &ids {
            self.return_row(id, &request.fallback, None);
            self.hint(Wakeup::Workflow(id.clone()));
        }
        let more = self.state.index.held_by_id.count(&request.executor) > 0;
        if !more {
            self.state.leases.remove(&request.executor);
        }
        TakenOver::Rows { ids, more }
    }
}
