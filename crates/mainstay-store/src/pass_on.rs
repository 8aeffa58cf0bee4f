//! The macro that passes whole traits of a store on to another store.

/// Implements traits of the contract for a type around another store: every call goes on to a field as it is.
///
/// A store that changes one part writes that trait itself and passes the others on. `Store` stands for what a store is:
/// capabilities, environment and hints. With `via` each call goes through a method
/// `async fn hook<T>(&self, method: &'static str, call: impl Future<Output = Result<T>>) -> Result<T>` of the type.
/// No method is left to its default: a new one is passed on too.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use mainstay_store::*;
///
/// #[derive(Debug)]
/// struct Counted { inner: Arc<dyn Store>, units: std::sync::atomic::AtomicUsize }
///
/// #[async_trait]
/// impl WriteStore for Counted {
///     async fn commit(&self, units: &[Unit]) -> Result<Committed> {
///         self.units.fetch_add(units.len(), std::sync::atomic::Ordering::Relaxed);
///         self.inner.commit(units).await
///     }
/// }
/// pass_on! { Counted => inner: WorkflowStore, QueueStore, Registry, ExecutorStore, Maintenance }
/// pass_on! { Counted => inner: SignalStore, ScheduleStore, AdminStore, Store }
/// fn is_a_store(_: impl Store) {}
/// # fn check(counted: Counted) { is_a_store(counted) }
/// ```
#[macro_export]
macro_rules! pass_on {
    ($type:ty => $inner:ident: $($part:ident),+ $(,)?) => {
        $($crate::pass_on! { @part $part [$type; $inner] })+
    };
    ($type:ty => $inner:ident via $hook:ident: $($part:ident),+ $(,)?) => {
        $($crate::pass_on! { @part $part [$type; $inner; $hook] })+
    };

    (@part WriteStore $to:tt) => { $crate::pass_on! { @methods $to WriteStore
        commit(units: &[$crate::Unit]) -> $crate::Committed;
    } };
    (@part WorkflowStore $to:tt) => { $crate::pass_on! { @methods $to WorkflowStore
        workflow_standing(ids: &[$crate::WorkflowId]) -> Vec<$crate::Standing>;
        workflow_rows(ids: &[$crate::WorkflowId]) -> Vec<Option<$crate::WorkflowRow>>;
        workflow_steps(request: $crate::ReadSteps) -> $crate::Steps;
        workflow_input(id: &$crate::WorkflowId) -> Option<$crate::Payload>;
        workflow_holder(queue: &$crate::QueueName, key: &$crate::DedupKey) -> Option<$crate::WorkflowId>;
    } };
    (@part QueueStore $to:tt) => { $crate::pass_on! { @methods $to QueueStore
        queue_claim(request: $crate::Claim) -> $crate::Claimed;
        queue_probe(request: $crate::Probe) -> $crate::Probed;
        queue_audit(request: $crate::Audit) -> $crate::Audited;
    } };
    (@part Registry $to:tt) => { $crate::pass_on! { @methods $to Registry
        queue_register(request: $crate::RegisterQueue) -> $crate::QueueReply;
        queue_update(request: $crate::UpdateQueue) -> $crate::QueueReply;
        queue_delete(app: &$crate::AppName, name: &$crate::QueueName) -> bool;
        queue_list(app: &$crate::AppName) -> Vec<$crate::Queue>;
        version_register(app: &$crate::AppName, version: &$crate::VersionName) -> $crate::VersionReply;
        version_promote(app: &$crate::AppName, version: &$crate::VersionName) -> $crate::VersionReply;
        version_list(app: &$crate::AppName) -> Vec<$crate::Version>;
    } };
    (@part ExecutorStore $to:tt) => { $crate::pass_on! { @methods $to ExecutorStore
        lease_beat(request: $crate::Beat) -> $crate::Beaten;
        lease_list(app: &$crate::AppName) -> $crate::Leases;
        lease_take_over(request: $crate::TakeOver) -> $crate::TakenOver;
    } };
    (@part Maintenance $to:tt) => { $crate::pass_on! { @methods $to Maintenance
        tick(request: $crate::Tick) -> $crate::Ticked;
        collect(request: $crate::Collect) -> $crate::Collected;
    } };
    (@part SignalStore $to:tt) => { $crate::pass_on! { @methods $to SignalStore
        message_peek(to: &$crate::WorkflowId, topic: Option<&$crate::Topic>) -> Option<$crate::Message>;
        event_get(id: &$crate::WorkflowId, key: &$crate::EventKey) -> Option<$crate::Payload>;
        stream_read(id: &$crate::WorkflowId, key: &$crate::EventKey, from: u32) -> $crate::StreamPage;
    } };
    (@part ScheduleStore $to:tt) => { $crate::pass_on! { @methods $to ScheduleStore
        schedule_get(name: &$crate::ScheduleName) -> Option<$crate::ScheduleRow>;
        schedule_list(app: &$crate::AppName) -> Vec<$crate::ScheduleRow>;
    } };
    (@part AdminStore $to:tt) => { $crate::pass_on! { @methods $to AdminStore
        workflow_list(filter: $crate::WorkflowFilter) -> $crate::WorkflowPage;
        workflow_aggregate(request: $crate::Aggregate) -> Vec<$crate::Group>;
        workflow_export(ids: &[$crate::WorkflowId]) -> Vec<$crate::Archive>;
        workflow_import(archives: &[$crate::Archive]) -> Vec<$crate::WorkflowId>;
    } };
    (@part Store [$type:ty; $inner:ident $(; $hook:ident)?]) => {
        impl $crate::Store for $type {
            fn capabilities(&self) -> $crate::Capabilities {
                self.$inner.capabilities()
            }
            fn env(&self) -> &$crate::Env {
                self.$inner.env()
            }
            fn wakeups(&self) -> &$crate::Wakeups {
                self.$inner.wakeups()
            }
        }
    };

    (@methods [$type:ty; $inner:ident] $trait:ident $($name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)+) => {
        #[$crate::__private::async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl $crate::$trait for $type {
            $(async fn $name(&self, $($arg: $of),*) -> $crate::Result<$answer> {
                self.$inner.$name($($arg),*).await
            })+
        }
    };
    (@methods [$type:ty; $inner:ident; $hook:ident] $trait:ident
        $($name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)+) => {
        #[$crate::__private::async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl $crate::$trait for $type {
            $(async fn $name(&self, $($arg: $of),*) -> $crate::Result<$answer> {
                self.$hook(stringify!($name), self.$inner.$name($($arg),*)).await
            })+
        }
    };
}
