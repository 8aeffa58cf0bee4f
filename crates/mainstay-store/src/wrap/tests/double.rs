//! A store that answers from a script and keeps what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_env::{Env, Sim};

use super::now;
use crate::admission::Stop;
use crate::contract::*;
use crate::error::{ErrorKind, Result, StoreError};
use crate::model::*;
use crate::unit::{Unit, UnitReply};
use crate::wakeups::Wakeups;

/// Fails a number of calls, then answers; or refuses every call; or takes its time.
#[derive(Debug)]
pub(super) struct Double {
    env: Env,
    hub: Wakeups,
    slow: Duration,
    failure: ErrorKind,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    failures_left: u32,
    calls: BTreeMap<&'static str, u32>,
    repeats: Vec<bool>,
    batches: Vec<Vec<Unit>>,
}

impl Double {
    fn make(sim: &Sim, failures_left: u32, failure: ErrorKind, slow: Duration) -> Arc<Self> {
        let seen = Mutex::new(Seen { failures_left, ..Seen::default() });
        Arc::new(Self { env: sim.env("store"), hub: Wakeups::new(), slow, failure, seen })
    }

    pub(super) fn failing(sim: &Sim, failures: u32, kind: ErrorKind) -> Arc<Self> {
        Self::make(sim, failures, kind, Duration::ZERO)
    }

    pub(super) fn refusing(sim: &Sim) -> Arc<Self> {
        Self::make(sim, u32::MAX, ErrorKind::Denied, Duration::ZERO)
    }

    pub(super) fn slow(sim: &Sim, by: Duration) -> Arc<Self> {
        Self::make(sim, 0, ErrorKind::Bug, by)
    }

    /// Takes its time, and then is unavailable.
    pub(super) fn patient(sim: &Sim, by: Duration) -> Arc<Self> {
        Self::make(sim, u32::MAX, ErrorKind::Unavailable, by)
    }

    pub(super) fn calls(&self, op: &str) -> u32 {
        self.seen.lock().expect("seen").calls.get(op).copied().unwrap_or(0)
    }

    pub(super) fn repeats(&self) -> Vec<bool> {
        self.seen.lock().expect("seen").repeats.clone()
    }

    pub(super) fn batches(&self) -> Vec<Vec<Unit>> {
        self.seen.lock().expect("seen").batches.clone()
    }

    /// Counts the call, and fails it while failures are left.
    async fn ask<T>(&self, op: &'static str, answer: T) -> Result<T> {
        if !self.slow.is_zero() {
            self.env.sleep(self.slow).await;
        }
        let mut seen = self.seen.lock().expect("seen");
        *seen.calls.entry(op).or_default() += 1;
        match seen.failures_left {
            0 => Ok(answer),
            _ => {
                seen.failures_left = seen.failures_left.saturating_sub(u32::from(seen.failures_left != u32::MAX));
                Err(StoreError::new(self.failure, op))
            }
        }
    }

    async fn refuse<T>(&self, op: &'static str) -> Result<T> {
        if !self.slow.is_zero() {
            self.env.sleep(self.slow).await;
        }
        Err(StoreError::new(self.failure, op))
    }
}

#[async_trait]
impl WriteStore for Double {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        self.seen.lock().expect("seen").batches.push(units.to_vec());
        let replies = units.iter().map(|_| Ok(UnitReply::done())).collect();
        self.ask("commit", Committed::new(now(), replies)).await
    }
}

#[async_trait]
impl WorkflowStore for Double {
    async fn workflow_standing(&self, _ids: &[WorkflowId]) -> Result<Vec<Standing>> {
        self.refuse("workflow_standing").await
    }
    async fn workflow_rows(&self, _ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>> {
        self.refuse("workflow_rows").await
    }
    async fn workflow_steps(&self, _request: ReadSteps) -> Result<Steps> {
        self.refuse("workflow_steps").await
    }
    async fn workflow_input(&self, _id: &WorkflowId) -> Result<Option<Payload>> {
        self.refuse("workflow_input").await
    }
    async fn workflow_holder(&self, _queue: &QueueName, _key: &DedupKey) -> Result<Option<WorkflowId>> {
        self.refuse("workflow_holder").await
    }
}

#[async_trait]
impl QueueStore for Double {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        self.seen.lock().expect("seen").repeats.push(request.repeat);
        self.ask("queue_claim", Claimed::new(now(), Stop::Drained)).await
    }
    async fn queue_probe(&self, _request: Probe) -> Result<Probed> {
        self.refuse("queue_probe").await
    }
    async fn queue_audit(&self, _request: Audit) -> Result<Audited> {
        self.refuse("queue_audit").await
    }
}

#[async_trait]
impl Registry for Double {
    async fn queue_register(&self, _request: RegisterQueue) -> Result<QueueReply> {
        self.refuse("queue_register").await
    }
    async fn queue_update(&self, _request: UpdateQueue) -> Result<QueueReply> {
        self.refuse("queue_update").await
    }
    async fn queue_delete(&self, _app: &AppName, _name: &QueueName) -> Result<bool> {
        self.refuse("queue_delete").await
    }
    async fn queue_list(&self, _app: &AppName) -> Result<Vec<Queue>> {
        self.refuse("queue_list").await
    }
    async fn version_register(&self, _app: &AppName, _version: &VersionName) -> Result<VersionReply> {
        self.refuse("version_register").await
    }
    async fn version_promote(&self, _app: &AppName, _version: &VersionName) -> Result<VersionReply> {
        self.refuse("version_promote").await
    }
    async fn version_list(&self, _app: &AppName) -> Result<Vec<Version>> {
        self.refuse("version_list").await
    }
}

#[async_trait]
impl ExecutorStore for Double {
    async fn lease_beat(&self, _request: Beat) -> Result<Beaten> {
        self.refuse("lease_beat").await
    }
    async fn lease_list(&self, _app: &AppName) -> Result<Leases> {
        self.ask("lease_list", Leases::new(now())).await
    }
    async fn lease_take_over(&self, _request: TakeOver) -> Result<TakenOver> {
        self.refuse("lease_take_over").await
    }
}

#[async_trait]
impl Maintenance for Double {
    async fn tick(&self, _request: Tick) -> Result<Ticked> {
        self.ask("tick", Ticked::new(now(), RegistryStamp(0))).await
    }
    async fn collect(&self, _request: Collect) -> Result<Collected> {
        self.refuse("collect").await
    }
}

#[async_trait]
impl SignalStore for Double {
    async fn message_peek(&self, _to: &WorkflowId, _topic: Option<&Topic>) -> Result<Option<Message>> {
        self.refuse("message_peek").await
    }
    async fn event_get(&self, _id: &WorkflowId, _key: &EventKey) -> Result<Option<Payload>> {
        self.refuse("event_get").await
    }
    async fn stream_read(&self, _id: &WorkflowId, _key: &EventKey, _from: u32) -> Result<StreamPage> {
        self.refuse("stream_read").await
    }
}

#[async_trait]
impl ScheduleStore for Double {
    async fn schedule_get(&self, _name: &ScheduleName) -> Result<Option<ScheduleRow>> {
        self.refuse("schedule_get").await
    }
    async fn schedule_list(&self, _app: &AppName) -> Result<Vec<ScheduleRow>> {
        self.refuse("schedule_list").await
    }
}

#[async_trait]
impl AdminStore for Double {
    async fn workflow_list(&self, _filter: WorkflowFilter) -> Result<WorkflowPage> {
        self.refuse("workflow_list").await
    }
    async fn workflow_aggregate(&self, _request: Aggregate) -> Result<Vec<Group>> {
        self.refuse("workflow_aggregate").await
    }
    async fn workflow_export(&self, _ids: &[WorkflowId]) -> Result<Vec<Archive>> {
        self.refuse("workflow_export").await
    }
    async fn workflow_import(&self, _archives: &[Archive]) -> Result<Vec<WorkflowId>> {
        self.refuse("workflow_import").await
    }
}

impl Store for Double {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none()
    }
    fn env(&self) -> &Env {
        &self.env
    }
    fn wakeups(&self) -> &Wakeups {
        &self.hub
    }
}
