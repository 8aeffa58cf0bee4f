//! Which calls to the store fail: told of when one begins to fail and when it is answered again, not each time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use mainstay_env::{Env, Monotonic};
use mainstay_store::{ErrorKind, QueueName, StoreError};

/// A kind of call, and the queue where the queue itself is to blame.
type Call = (&'static str, Option<QueueName>);

/// The calls that failed when they were last made. At most one for each kind, and one for each queue that cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Failing(Mutex<BTreeMap<Call, Run>>);

/// A run of failures.
#[derive(Clone, Copy, Debug)]
struct Run {
    since: Monotonic,
    failures: u64,
}

impl Failing {
    /// Tells of a failure: aloud when it is the first of its run.
    pub(crate) fn failed(&self, env: &Env, op: &'static str, queue: Option<&QueueName>, error: &StoreError) {
        // An outage is one, however many queues meet it.
        let queue = queue.filter(|_| !is_outage(error.kind()));
        let is_first = {
            let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let new = Run { since: env.monotonic(), failures: 0 };
            let run = runs.entry((op, queue.cloned())).or_insert(new);
            run.failures += 1;
            run.failures == 1
        };
        let queue = queue.map(tracing::field::display);
        if is_first {
            tracing::warn!(op, queue, %error, "calls fail and are made again");
        } else {
            tracing::debug!(op, queue, %error, "call failed again");
        }
    }

    /// Tells of an answer when it is the first after failures.
    pub(crate) fn answered(&self, env: &Env, op: &'static str, queue: Option<&QueueName>) {
        let ended: Vec<_> = {
            let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if runs.is_empty() {
                return;
            }
            let calls = [(op, None), (op, queue.cloned())];
            calls.into_iter().filter_map(|call| runs.remove(&call).map(|run| (call.1, run))).collect()
        };
        for (queue, Run { since, failures }) in ended {
            let (queue, lasted) = (queue.map(tracing::field::display), env.monotonic().since(since));
            tracing::info!(op, queue, ?lasted, failures, "calls are answered again");
        }
    }
}

/// Whether a failure is the store's as a whole.
const fn is_outage(kind: ErrorKind) -> bool {
    !matches!(kind, ErrorKind::Corrupt | ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Bug)
}
