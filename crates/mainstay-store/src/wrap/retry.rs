//! Repeats calls whose answer was lost, where that is safe.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mainstay_env::{Env, Rng};

use super::call::{Call, Layer, commit_call};
use super::wrapped::Wrapped;
use crate::contract::{Committed, Store};
use crate::error::{ErrorKind, Result, StoreError};
use crate::unit::{Unit, UnitReply};

/// Pauses before each of the three repeats: with jitter at most 1.8 s in all.
const PAUSES: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1000)];

/// No repeat begins later than this after the first failure: a backend that is patient itself has failed late already.
const LIMIT: Duration = Duration::from_secs(2);

/// Jitter of a pause, so that clients that lost one server do not come back in step.
const JITTER: (f64, f64) = (0.8, 1.2);

/// Repeats `Unavailable` at most three times, and begins none later than 2 s after the first failure. A claim sent again says
/// so; of a batch of units only those that are [`Unit::repeatable`] are sent again, and the others are answered
/// [`UnitReply::Unknown`].
#[derive(Debug)]
pub(super) struct Retry {
    env: Env,
    rng: Rng,
}

/// Names the wrapper that repeats.
#[derive(Debug)]
pub struct WithRetry;

impl WithRetry {
    /// The store with lost answers asked for again.
    #[must_use]
    #[allow(clippy::new_ret_no_self, reason = "a wrapped store is a store")]
    pub fn new(inner: Arc<dyn Store>) -> Arc<dyn Store> {
        let env = inner.env().clone();
        let layer = Retry { rng: env.rng().child("store retry"), env };
        Arc::new(Wrapped { inner, layer })
    }
}

fn lost(error: &StoreError) -> bool {
    error.kind() == ErrorKind::Unavailable
}

impl Retry {
    /// Asks again until an answer comes, or the pauses or the time are used up.
    async fn repeat<T: Send + 'static>(&self, call: &Call<T>, mut answer: Result<T>) -> Result<T> {
        let mut limit = None;
        for pause in PAUSES {
            if !answer.as_ref().is_err_and(lost) {
                break;
            }
            let limit = *limit.get_or_insert_with(|| self.env.deadline(LIMIT));
            let next = self.env.deadline(self.rng.jitter(pause, JITTER.0, JITTER.1));
            if next > limit {
                break;
            }
            self.env.sleep_until(next).await;
            answer = call.again().await;
        }
        answer
    }
}

#[async_trait]
impl Layer for Retry {
    async fn around<T: Send + 'static>(&self, call: Call<T>) -> Result<T> {
        let first = call.first().await;
        self.repeat(&call, first).await
    }

    async fn commit(&self, inner: &Arc<dyn Store>, units: &[Unit]) -> Result<Committed> {
        let call = commit_call(inner, units);
        let first = call.first().await;
        if !first.as_ref().is_err_and(lost) || units.iter().all(Unit::repeatable) {
            return self.repeat(&call, first).await;
        }
        let safe: Vec<Unit> = units.iter().filter(|unit| unit.repeatable()).cloned().collect();
        if safe.is_empty() {
            return first;
        }
        let committed = self.repeat(&commit_call(inner, &safe), first).await?;
        let mut answers = committed.units.into_iter();
        let missing = || Err(StoreError::new(ErrorKind::Bug, "commit"));
        let merge = |unit: &Unit| match unit.repeatable() {
            true => answers.next().unwrap_or_else(missing),
            false => Ok(UnitReply::Unknown),
        };
        Ok(Committed::new(committed.now, units.iter().map(merge).collect()))
    }
}
