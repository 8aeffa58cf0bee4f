//! A lost lease: what ran under it is dropped, and the process goes on under a new executor id.

use std::sync::Arc;

use mainstay_store::{Beat, Beaten, ExecutorId};

use crate::backoff::hold_off;
use crate::lane::LaneInput;
use crate::pulse::PATIENCE;
use crate::shared::Shared;

/// Marks the lease of `epoch` as lost and drops every body; false when that was done before.
pub(crate) fn lose(shared: &Shared, epoch: u64) -> bool {
    let lost = shared.identity(|identity| {
        let current = identity.leased && identity.epoch == epoch;
        if current {
            identity.leased = false;
            identity.epoch += 1;
        }
        current.then(|| identity.executor.clone())
    });
    let Some(executor) = lost else { return false };
    shared.lanes.post_all(&LaneInput::Lost);
    let running = shared.counts.lock().ids();
    tracing::warn!(%executor, running = running.len(), "lease lost");
    for id in &running {
        shared.evict(id);
    }
    shared.counters.lock().renewals += 1;
    true
}

/// Opens a lease under a new id, trying until the store answers.
pub(crate) async fn open(shared: Arc<Shared>) {
    let mut executor = new_id(&shared);
    let mut failures = 0;
    loop {
        let beat = Beat::new(executor.clone(), shared.config.app.clone(), 1_u64);
        match shared.call("lease_beat", PATIENCE, shared.store.lease_beat(beat)).await {
            Ok(Beaten::Alive) => break,
            Ok(_) => executor = new_id(&shared),
            Err(_) => {}
        }
        failures += 1;
        shared.env.sleep(hold_off(failures, shared.draw())).await;
    }
    tracing::info!(%executor, "lease renewed");
    shared.identity(|identity| {
        identity.executor = executor;
        // Raised at the loss and here: what was begun between the two belongs to no lease.
        identity.epoch += 1;
        identity.beat = 1;
        identity.leased = true;
    });
}

pub(crate) fn new_id(shared: &Shared) -> ExecutorId {
    ExecutorId::new(format!("{}~{}", shared.config.executor, shared.env.nonce()))
}
