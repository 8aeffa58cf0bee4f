//! One call of a store method as a value that a wrapper can make, repeat, delay or move into a task.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use mainstay_env::BoxFuture;

use crate::contract::{Committed, Store};
use crate::error::Result;
use crate::unit::Unit;

macro_rules! methods {
    ($($name:ident => $text:literal,)*) => {
        /// A method of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $(#[doc = concat!("`", $text, "`")] $name,)*
        }

        impl Method {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name, as errors and traces give it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

methods! {
    Commit => "commit",
    WorkflowStanding => "workflow_standing",
    WorkflowRows => "workflow_rows",
    WorkflowSteps => "workflow_steps",
    WorkflowInput => "workflow_input",
    WorkflowHolder => "workflow_holder",
    QueueClaim => "queue_claim",
    QueueProbe => "queue_probe",
    QueueAudit => "queue_audit",
    QueueRegister => "queue_register",
    QueueUpdate => "queue_update",
    QueueDelete => "queue_delete",
    QueueList => "queue_list",
    VersionRegister => "version_register",
    VersionPromote => "version_promote",
    VersionList => "version_list",
    LeaseBeat => "lease_beat",
    LeaseList => "lease_list",
    LeaseTakeOver => "lease_take_over",
    Tick => "tick",
    Collect => "collect",
    MessagePeek => "message_peek",
    EventGet => "event_get",
    StreamRead => "stream_read",
    ScheduleGet => "schedule_get",
    ScheduleList => "schedule_list",
    WorkflowList => "workflow_list",
    WorkflowAggregate => "workflow_aggregate",
    WorkflowExport => "workflow_export",
    WorkflowImport => "workflow_import",
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Makes the call once more; the argument says whether it was made before.
type Run<T> = Arc<dyn Fn(bool) -> BoxFuture<'static, Result<T>> + Send + Sync>;

/// A call that has everything it needs, so that it may outlive its caller.
pub(super) struct Call<T> {
    pub(super) method: Method,
    run: Run<T>,
}

impl<T> Call<T> {
    pub(super) fn new(
        method: Method,
        run: impl Fn(bool) -> BoxFuture<'static, Result<T>> + Send + Sync + 'static,
    ) -> Self {
        Self { method, run: Arc::new(run) }
    }

    pub(super) fn first(&self) -> BoxFuture<'static, Result<T>> {
        (self.run)(false)
    }

    pub(super) fn again(&self) -> BoxFuture<'static, Result<T>> {
        (self.run)(true)
    }
}

/// What one wrapper does around every call.
#[async_trait]
pub(super) trait Layer: fmt::Debug + Send + Sync + 'static {
    /// Makes the call.
    async fn around<T: Send + 'static>(&self, call: Call<T>) -> Result<T>;

    /// The same for a batch of units, whose members may be treated apart.
    async fn commit(&self, inner: &Arc<dyn Store>, units: &[Unit]) -> Result<Committed> {
        self.around(commit_call(inner, units)).await
    }
}

pub(super) fn commit_call(inner: &Arc<dyn Store>, units: &[Unit]) -> Call<Committed> {
    let (store, units): (_, Arc<[Unit]>) = (inner.clone(), units.into());
    Call::new(Method::Commit, move |_again| {
        let (store, units) = (store.clone(), units.clone());
        Box::pin(async move { store.commit(&units).await })
    })
}
