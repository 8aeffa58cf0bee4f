//! The probe coordinator: polls of many queues that fall together are one call.

use std::sync::Arc;
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::Probe;

use crate::lane::{Due, LaneInput};
use crate::pulse::PATIENCE;
use crate::shared::Shared;

/// Least time from one probe to the next, unless a queue polls more often. With a tick a second, its jitter and the audit
/// it keeps an idle process under three round trips a second.
const GAP: Duration = Duration::from_millis(750);

/// Runs until the engine stops its tasks.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut last: Option<Monotonic> = None;
    loop {
        let wanted = shared.lanes.wanted.notified();
        let Some(interval) = shared.lanes.probing() else {
            wanted.await;
            continue;
        };
        let at = last.map_or(Monotonic::default(), |last| last + GAP.min(interval));
        if shared.env.monotonic() < at {
            // Another lane may be in more haste.
            let _ = shared.env.timeout_at(at, wanted).await;
            continue;
        }
        last = Some(shared.env.monotonic());
        probe(&shared).await;
    }
}

async fn probe(shared: &Shared) {
    let queues = shared.lanes.join(shared.env.monotonic(), &shared.counts);
    shared.counters.lock().probes += 1;
    let (app, version) = (shared.config.app.clone(), shared.config.version.clone());
    let request = Probe::new(app, version).queues(queues.clone()).names(shared.names.to_vec());
    let probed = shared.call("queue_probe", PATIENCE, shared.store.queue_probe(request)).await.ok();
    for queue in &queues {
        let due = match &probed {
            None => Due::Unknown,
            Some(probed) if probed.due.contains(queue) => Due::Yes,
            Some(_) => Due::No,
        };
        shared.lanes.post(queue, LaneInput::Probed(due));
    }
}
