//! Temporary: delete a block here when its impl is there (each helper its own).

use crate::store::Postgres; use async_trait::async_trait; use mainstay_store::*;
#[async_trait] impl WriteStore for Postgres { async fn commit(&self, _u: &[Unit]) -> Result<Committed> { todo!() } }
#[async_trait] impl WorkflowStore for Postgres {
    async fn workflow_standing(&self, _ids: &[WorkflowId]) -> Result<Vec<Standing>> {todo!()}
    async fn workflow_rows(&self, _ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>>{todo!()}
    async fn workflow_steps(&self, _request: ReadSteps) -> Result<Steps>{todo!()}
    async fn workflow_input(&self, _id: &WorkflowId) -> Result<Option<Payload>>{todo!()}
    async fn workflow_holder(&self, _queue: &QueueName, _key: &DedupKey) -> Result<Option<WorkflowId>>{todo!()}
}
#[async_trait] impl QueueStore for Postgres {
    async fn queue_claim(&self, _r: Claim) -> Result<Claimed>{todo!()}
    async fn queue_probe(&self, _r: Probe) -> Result<Probed>{todo!()}
    async fn queue_audit(&self, _r: Audit) -> Result<Audited>{todo!()}
}
#[async_trait] impl Registry for Postgres {
    async fn queue_register(&self, _r: RegisterQueue) -> Result<QueueReply>{todo!()}
    async fn queue_update(&self, _r: UpdateQueue) -> Result<QueueReply>{todo!()}
    async fn queue_delete(&self, _app: &AppName, _name: &QueueName) -> Result<bool>{todo!()}
    async fn queue_list(&self, _app: &AppName) -> Result<Vec<Queue>>{todo!()}
    async fn version_register(&self, _app: &AppName, _v: &VersionName) -> Result<VersionReply>{todo!()}
    async fn version_promote(&self, _app: &AppName, _v: &VersionName) -> Result<VersionReply>{todo!()}
    async fn version_list(&self, _app: &AppName) -> Result<Vec<Version>>{todo!()}
}
#[async_trait] impl ExecutorStore for Postgres {
    async fn lease_beat(&self, _r: Beat) -> Result<Beaten>{todo!()}
    async fn lease_list(&self, _a: &AppName) -> Result<Leases>{todo!()}
    async fn lease_take_over(&self, _r: TakeOver) -> Result<TakenOver>{todo!()}
}
#[async_trait] impl Maintenance for Postgres {
    async fn tick(&self, _r: Tick) -> Result<Ticked>{todo!()}
    async fn collect(&self, _r: Collect) -> Result<Collected>{todo!()}
}
