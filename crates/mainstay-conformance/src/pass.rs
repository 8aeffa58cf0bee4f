//! Stores around a store: a macro that passes calls on, and the store whose hints nobody hears.

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_store::*;

/// Implements for a type with a field `inner` the traits that it does not change: calls go on as they are.
macro_rules! passes_on {
    ($type:ty; $($part:ident),*) => { $(passes_on! { @$part $type })* };
    (@write $type:ty) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl WriteStore for $type {
            async fn commit(&self, units: &[Unit]) -> Result<Committed> {
                self.inner.commit(units).await
            }
        }
    };
    (@queue $type:ty) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl QueueStore for $type {
            async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
                self.inner.queue_claim(request).await
            }
            async fn queue_probe(&self, request: Probe) -> Result<Probed> {
                self.inner.queue_probe(request).await
            }
            async fn queue_audit(&self, request: Audit) -> Result<Audited> {
                self.inner.queue_audit(request).await
            }
        }
    };
    (@reads $type:ty) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl WorkflowStore for $type {
            async fn workflow_standing(&self, ids: &[WorkflowId]) -> Result<Vec<Standing>> {
                self.inner.workflow_standing(ids).await
            }
            async fn workflow_rows(&self, ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>> {
                self.inner.workflow_rows(ids).await
            }
            async fn workflow_steps(&self, request: ReadSteps) -> Result<Steps> {
                self.inner.workflow_steps(request).await
            }
            async fn workflow_input(&self, id: &WorkflowId) -> Result<Option<Payload>> {
                self.inner.workflow_input(id).await
            }
            async fn workflow_holder(&self, queue: &QueueName, key: &DedupKey) -> Result<Option<WorkflowId>> {
                self.inner.workflow_holder(queue, key).await
            }
        }
    };
    (@registry $type:ty) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl Registry for $type {
            async fn queue_register(&self, request: RegisterQueue) -> Result<QueueReply> {
                self.inner.queue_register(request).await
            }
            async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply> {
                self.inner.queue_update(request).await
            }
            async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool> {
                self.inner.queue_delete(app, name).await
            }
            async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>> {
                self.inner.queue_list(app).await
            }
            async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
                self.inner.version_register(app, version).await
            }
            async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
                self.inner.version_promote(app, version).await
            }
            async fn version_list(&self, app: &AppName) -> Result<Vec<Version>> {
                self.inner.version_list(app).await
            }
        }
    };
    (@upkeep $type:ty) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl ExecutorStore for $type {
            async fn lease_beat(&self, request: Beat) -> Result<Beaten> {
                self.inner.lease_beat(request).await
            }
            async fn lease_list(&self, app: &AppName) -> Result<Leases> {
                self.inner.lease_list(app).await
            }
            async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver> {
                self.inner.lease_take_over(request).await
            }
        }

        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl Maintenance for $type {
            async fn tick(&self, request: Tick) -> Result<Ticked> {
                self.inner.tick(request).await
            }
            async fn collect(&self, request: Collect) -> Result<Collected> {
                self.inner.collect(request).await
            }
        }
    };
    (@optional $type:ty) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl SignalStore for $type {
            async fn message_peek(&self, to: &WorkflowId, topic: Option<&Topic>) -> Result<Option<Message>> {
                self.inner.message_peek(to, topic).await
            }
            async fn event_get(&self, id: &WorkflowId, key: &EventKey) -> Result<Option<Payload>> {
                self.inner.event_get(id, key).await
            }
            async fn stream_read(&self, id: &WorkflowId, key: &EventKey, from: u32) -> Result<StreamPage> {
                self.inner.stream_read(id, key, from).await
            }
        }

        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl ScheduleStore for $type {
            async fn schedule_get(&self, name: &ScheduleName) -> Result<Option<ScheduleRow>> {
                self.inner.schedule_get(name).await
            }
            async fn schedule_list(&self, app: &AppName) -> Result<Vec<ScheduleRow>> {
                self.inner.schedule_list(app).await
            }
        }

        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl AdminStore for $type {
            async fn workflow_list(&self, filter: WorkflowFilter) -> Result<WorkflowPage> {
                self.inner.workflow_list(filter).await
            }
            async fn workflow_aggregate(&self, request: Aggregate) -> Result<Vec<Group>> {
                self.inner.workflow_aggregate(request).await
            }
            async fn workflow_export(&self, ids: &[WorkflowId]) -> Result<Vec<Archive>> {
                self.inner.workflow_export(ids).await
            }
            async fn workflow_import(&self, archives: &[Archive]) -> Result<Vec<WorkflowId>> {
                self.inner.workflow_import(archives).await
            }
        }
    };
}

/// A store that tells its hints to nobody.
#[derive(Debug)]
struct Silent {
    inner: Arc<dyn Store>,
    wakeups: Wakeups,
}

/// The same store without hints.
pub(crate) fn silent(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Silent { inner: store, wakeups: Wakeups::silent() })
}

passes_on! { Silent; write, queue, reads, registry, upkeep, optional }

impl Store for Silent {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn env(&self) -> &Env {
        self.inner.env()
    }

    fn wakeups(&self) -> &Wakeups {
        &self.wakeups
    }
}
