//! Who is dead. Pure: lists of leases as this process read them in, leases to take over out.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{ExecutorId, Lease};

/// A lease that should be taken over, with the beat that was seen standing still.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dead {
    /// The executor.
    pub executor: ExecutorId,
    /// Its beat; the take-over is refused when it has moved.
    pub beat: u64,
}

#[derive(Clone, Debug)]
struct Observed {
    beat: u64,
    still: Duration,
}

/// Watches the beats of the other executors.
///
/// A lease is dead when its beat has stood still through one ttl of this process's own successful reads. The time between
/// two reads counts for at most two ticks, so that neither an outage, nor a pause of this process, nor a clock kills anybody.
#[derive(Clone, Debug)]
pub struct Watch {
    ttl: Duration,
    longest_gap: Duration,
    last_read: Option<Monotonic>,
    observed: BTreeMap<ExecutorId, Observed>,
}

impl Watch {
    /// Watches with this ttl, reading about once a `tick`.
    #[must_use]
    pub fn new(ttl: Duration, tick: Duration) -> Self {
        Self { ttl, longest_gap: 2 * tick, last_read: None, observed: BTreeMap::new() }
    }

    /// Takes a successful read of all leases; `own` is never dead. Answers who is, until they are gone from the list.
    pub fn read(&mut self, now: Monotonic, own: &ExecutorId, leases: &[Lease]) -> Vec<Dead> {
        let gap = self.last_read.map_or(Duration::ZERO, |last| now.since(last).min(self.longest_gap));
        self.last_read = Some(now);
        let mut observed = BTreeMap::new();
        let mut dead = Vec::new();
        for lease in leases.iter().filter(|lease| lease.executor != *own) {
            let still = match self.observed.get(&lease.executor) {
                Some(seen) if seen.beat == lease.beat => seen.still + gap,
                _ => Duration::ZERO,
            };
            if lease.dead || lease.ended || still >= self.ttl {
                dead.push(Dead { executor: lease.executor.clone(), beat: lease.beat });
            }
            observed.insert(lease.executor.clone(), Observed { beat: lease.beat, still });
        }
        self.observed = observed;
        dead
    }
}
