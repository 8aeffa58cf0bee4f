//! The store whose hints nobody hears.

use std::sync::Arc;

use mainstay_store::*;

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

pass_on! { Silent => inner: WriteStore, WorkflowStore, QueueStore, Registry, ExecutorStore, Maintenance }
pass_on! { Silent => inner: SignalStore, ScheduleStore, AdminStore }

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
