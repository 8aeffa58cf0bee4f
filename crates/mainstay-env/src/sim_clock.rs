//! A clock that moves only when told, and wakes its sleepers as it passes them.

use crate::clock::{BoxFuture, Clock};
use crate::sync::lock;
use crate::{Monotonic, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A virtual clock. Clones share one time.
///
/// ```
/// use mainstay_env::{Clock, SimClock, Timestamp};
/// use std::time::Duration;
///
/// let clock = SimClock::new(Timestamp::from_millis(5_000));
/// clock.advance(Duration::from_secs(1));
/// clock.skew_wall(-2_000);
/// assert_eq!(clock.now(), Timestamp::from_millis(4_000));
/// assert_eq!(clock.monotonic().0, Duration::from_secs(1), "a skew leaves the monotonic clock alone");
/// ```
#[derive(Clone)]
pub struct SimClock {
    state: Arc<Mutex<State>>,
}

struct State {
    start: Timestamp,
    skew: i64,
    elapsed: Monotonic,
    // Keyed by due time, then by order of arrival.
    waiters: BTreeMap<Place, Waker>,
    next: u64,
}

type Place = (Monotonic, u64);

impl SimClock {
    /// A clock whose wall reads `start` and whose monotonic reading is zero.
    pub fn new(start: Timestamp) -> SimClock {
        let state = State { start, skew: 0, elapsed: Monotonic::default(), waiters: BTreeMap::new(), next: 0 };
        SimClock { state: Arc::new(Mutex::new(state)) }
    }

    /// Moves wall and monotonic time on by `by` in one jump, and wakes the waiters passed, earliest due time first.
    pub fn advance(&self, by: Duration) {
        let to = lock(&self.state).elapsed + by;
        self.advance_until(to);
    }

    /// Moves time on until the monotonic reading is `to`, as [`advance`](Self::advance); does nothing when it is past.
    pub fn advance_until(&self, to: Monotonic) {
        let mut due = Vec::new();
        {
            let mut state = lock(&self.state);
            state.elapsed = state.elapsed.max(to);
            let elapsed = state.elapsed;
            while let Some(first) = state.waiters.first_entry() {
                if first.key().0 > elapsed {
                    break;
                }
                due.push(first.remove());
            }
        }
        for waker in due {
            waker.wake();
        }
    }

    /// Moves time on to the next due waiter and wakes it; false, and no move, when nobody waits.
    pub fn advance_to_next(&self) -> bool {
        match self.next_due() {
            Some(due) => {
                self.advance_until(due);
                true
            }
            None => false,
        }
    }

    /// When the earliest waiter is due.
    pub fn next_due(&self) -> Option<Monotonic> {
        lock(&self.state).waiters.first_key_value().map(|(place, _)| place.0)
    }

    /// How many sleeps are waiting.
    pub fn waiters(&self) -> usize {
        lock(&self.state).waiters.len()
    }

    /// Shifts the wall clock alone by `millis` milliseconds, back when negative. Shifts add up.
    pub fn skew_wall(&self, millis: i64) {
        let mut state = lock(&self.state);
        state.skew = state.skew.saturating_add(millis);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let state = lock(&self.state);
        let unskewed = state.start + state.elapsed.0;
        Timestamp(unskewed.0.saturating_add(state.skew))
    }

    fn monotonic(&self) -> Monotonic {
        lock(&self.state).elapsed
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        if at.is_never() {
            return Box::pin(std::future::pending());
        }
        Box::pin(SimSleep { clock: self.clone(), due: at, place: None })
    }
}

impl fmt::Debug for SimClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (elapsed, waiters) = (self.monotonic(), self.waiters());
        f.debug_struct("SimClock").field("elapsed", &elapsed.0).field("waiters", &waiters).finish()
    }
}

/// A sleep on a [`SimClock`]; it waits from its first poll and takes its waiter away when it is dropped.
struct SimSleep {
    clock: SimClock,
    due: Monotonic,
    place: Option<Place>,
}

impl Future for SimSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        // Cloned before and dropped after the lock: a foreign waker may do anything, even ask for the time.
        let waker = cx.waker().clone();
        let _replaced = {
            let mut state = lock(&this.clock.state);
            if state.elapsed >= this.due {
                return Poll::Ready(());
            }
            let place = *this.place.get_or_insert_with(|| {
                state.next += 1;
                (this.due, state.next)
            });
            state.waiters.insert(place, waker)
        };
        Poll::Pending
    }
}

impl Drop for SimSleep {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let waiter = lock(&self.clock.state).waiters.remove(&place);
        drop(waiter);
    }
}
