//! The crate's way to lock: a panic elsewhere never makes a lock unusable, because no critical section can panic halfway.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, whatever happened to an earlier holder.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
