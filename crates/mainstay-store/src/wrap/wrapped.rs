//! The nine traits for a layer over a store: every method passes through the layer.

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_env::Env;

use super::call::{Call, Layer, Method};
use crate::contract::*;
use crate::error::Result;
use crate::model::*;
use crate::unit::Unit;
use crate::wakeups::Wakeups;

/// A store behind a layer.
#[derive(Clone, Debug)]
pub(super) struct Wrapped<L> {
    pub(super) inner: Arc<dyn Store>,
    pub(super) layer: L,
}

/// Turns a method call into a [`Call`] over owned arguments and hands it to the layer.
macro_rules! pass {
    ($self:ident, $method:ident, |$store:ident $(, $arg:ident)*| $call:expr) => {{
        let inner = $self.inner.clone();
        $(let $arg = $arg.to_owned();)*
        let call = Call::new(Method::$method, move |_again| {
            let $store = inner.clone();
            $(let $arg = $arg.clone();)*
            Box::pin(async move { $call.await })
        });
        $self.layer.around(call).await
    }};
}

#[async_trait]
impl<L: Layer> WriteStore for Wrapped<L> {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        self.layer.commit(&self.inner, units).await
    }
}

#[async_trait]
impl<L: Layer> WorkflowStore for Wrapped<L> {
    async fn workflow_standing(&self, ids: &[WorkflowId]) -> Result<Vec<Standing>> {
        pass!(self, WorkflowStanding, |store, ids| store.workflow_standing(&ids))
    }

    async fn workflow_rows(&self, ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>> {
        pass!(self, WorkflowRows, |store, ids| store.workflow_rows(&ids))
    }

    async fn workflow_steps(&self, request: ReadSteps) -> Result<Steps> {
        pass!(self, WorkflowSteps, |store, request| store.workflow_steps(request))
    }

    async fn workflow_input(&self, id: &WorkflowId) -> Result<Option<Payload>> {
        pass!(self, WorkflowInput, |store, id| store.workflow_input(&id))
    }

    async fn workflow_holder(&self, queue: &QueueName, key: &DedupKey) -> Result<Option<WorkflowId>> {
        pass!(self, WorkflowHolder, |store, queue, key| store.workflow_holder(&queue, &key))
    }
}

#[async_trait]
impl<L: Layer> QueueStore for Wrapped<L> {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        let inner = self.inner.clone();
        let call = Call::new(Method::QueueClaim, move |again| {
            let (store, mut request) = (inner.clone(), request.clone());
            // Its rows may have been taken by the try whose answer was lost.
            request.repeat |= again;
            Box::pin(async move { store.queue_claim(request).await })
        });
        self.layer.around(call).await
    }

    async fn queue_probe(&self, request: Probe) -> Result<Probed> {
        pass!(self, QueueProbe, |store, request| store.queue_probe(request))
    }

    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        pass!(self, QueueAudit, |store, request| store.queue_audit(request))
    }
}

#[async_trait]
impl<L: Layer> Registry for Wrapped<L> {
    async fn queue_register(&self, request: RegisterQueue) -> Result<QueueReply> {
        pass!(self, QueueRegister, |store, request| store.queue_register(request))
    }

    async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply> {
        pass!(self, QueueUpdate, |store, request| store.queue_update(request))
    }

    async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool> {
        pass!(self, QueueDelete, |store, app, name| store.queue_delete(&app, &name))
    }

    async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>> {
        pass!(self, QueueList, |store, app| store.queue_list(&app))
    }

    async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        pass!(self, VersionRegister, |store, app, version| store.version_register(&app, &version))
    }

    async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        pass!(self, VersionPromote, |store, app, version| store.version_promote(&app, &version))
    }

    async fn version_list(&self, app: &AppName) -> Result<Vec<Version>> {
        pass!(self, VersionList, |store, app| store.version_list(&app))
    }
}

#[async_trait]
impl<L: Layer> ExecutorStore for Wrapped<L> {
    async fn lease_beat(&self, request: Beat) -> Result<Beaten> {
        pass!(self, LeaseBeat, |store, request| store.lease_beat(request))
    }

    async fn lease_list(&self, app: &AppName) -> Result<Leases> {
        pass!(self, LeaseList, |store, app| store.lease_list(&app))
    }

    async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver> {
        pass!(self, LeaseTakeOver, |store, request| store.lease_take_over(request))
    }
}

#[async_trait]
impl<L: Layer> Maintenance for Wrapped<L> {
    async fn tick(&self, request: Tick) -> Result<Ticked> {
        pass!(self, Tick, |store, request| store.tick(request))
    }

    async fn collect(&self, request: Collect) -> Result<Collected> {
        pass!(self, Collect, |store, request| store.collect(request))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<L: Layer> SignalStore for Wrapped<L> {
    async fn message_peek(&self, to: &WorkflowId, topic: Option<&Topic>) -> Result<Option<Message>> {
        let topic = topic.cloned();
        pass!(self, MessagePeek, |store, to, topic| store.message_peek(&to, topic.as_ref()))
    }

    async fn event_get(&self, id: &WorkflowId, key: &EventKey) -> Result<Option<Payload>> {
        pass!(self, EventGet, |store, id, key| store.event_get(&id, &key))
    }

    async fn stream_read(&self, id: &WorkflowId, key: &EventKey, from: u32) -> Result<StreamPage> {
        pass!(self, StreamRead, |store, id, key| store.stream_read(&id, &key, from))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<L: Layer> ScheduleStore for Wrapped<L> {
    async fn schedule_get(&self, name: &ScheduleName) -> Result<Option<ScheduleRow>> {
        pass!(self, ScheduleGet, |store, name| store.schedule_get(&name))
    }

    async fn schedule_list(&self, app: &AppName) -> Result<Vec<ScheduleRow>> {
        pass!(self, ScheduleList, |store, app| store.schedule_list(&app))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<L: Layer> AdminStore for Wrapped<L> {
    async fn workflow_list(&self, filter: WorkflowFilter) -> Result<WorkflowPage> {
        pass!(self, WorkflowList, |store, filter| store.workflow_list(filter))
    }

    async fn workflow_aggregate(&self, request: Aggregate) -> Result<Vec<Group>> {
        pass!(self, WorkflowAggregate, |store, request| store.workflow_aggregate(request))
    }

    async fn workflow_export(&self, ids: &[WorkflowId]) -> Result<Vec<Archive>> {
        pass!(self, WorkflowExport, |store, ids| store.workflow_export(&ids))
    }

    async fn workflow_import(&self, archives: &[Archive]) -> Result<Vec<WorkflowId>> {
        pass!(self, WorkflowImport, |store, archives| store.workflow_import(&archives))
    }
}

impl<L: Layer> Store for Wrapped<L> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn wakeups(&self) -> &Wakeups {
        self.inner.wakeups()
    }
}
