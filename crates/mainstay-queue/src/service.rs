//! Keeps the long-lived tasks of an engine alive: one that panics or ends is started again.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::hold_off;
use crate::shared::Shared;

/// A task that lived this long has its earlier deaths forgiven.
const FORGIVEN: Duration = Duration::from_secs(60);

/// Spawns a keeper that runs the service, again and again, until the engine stops its tasks.
pub(crate) fn keep<F>(shared: &Arc<Shared>, name: &'static str, service: fn(Arc<Shared>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let keeper = keeper(shared.clone(), name, service);
    // Its group owns it.
    drop(shared.tasks.spawn(format!("keeper/{name}"), keeper));
}

async fn keeper<F>(shared: Arc<Shared>, name: &'static str, service: fn(Arc<Shared>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut deaths = 0;
    loop {
        let born = shared.env.monotonic();
        let end = shared.tasks.spawn(name, service(shared.clone())).await;
        if shared.tasks.is_closed() {
            return;
        }
        deaths = if shared.env.monotonic().since(born) >= FORGIVEN { 1 } else { deaths + 1 };
        tracing::error!(service = name, deaths, error = ?end.err(), "service ended");
        shared.counters.lock().service_restarts += 1;
        shared.env.sleep(hold_off(deaths, shared.draw())).await;
    }
}
