//! Mailboxes of the engine's tasks: what others tell one, and how it waits for that beside a call and a timer.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use mainstay_env::{BoxFuture, Env, Monotonic};
use tokio::sync::Notify;

/// Notes for one reader. An equal one that waits already moves to the end: it is read once, and the latest word counts.
#[derive(Debug)]
pub(crate) struct Mail<T> {
    notes: Mutex<VecDeque<T>>,
    arrived: Notify,
}

impl<T> Default for Mail<T> {
    fn default() -> Self {
        Self { notes: Mutex::default(), arrived: Notify::new() }
    }
}

impl<T: PartialEq> Mail<T> {
    pub(crate) fn post(&self, note: T) {
        {
            let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            notes.retain(|waiting| *waiting != note);
            notes.push_back(note);
        }
        self.arrived.notify_one();
    }

    pub(crate) fn take(&self) -> VecDeque<T> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there is a note; for one reader at a time.
    pub(crate) async fn wait(&self) {
        loop {
            if !self.notes.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            self.arrived.notified().await;
        }
    }
}

/// A call to the store that may be out.
pub(crate) type Call<T> = Option<BoxFuture<'static, T>>;

/// Polls a call that is out, and takes it away with its answer.
pub(crate) fn poll_call<T>(call: &mut Call<T>, cx: &mut Context<'_>) -> Poll<T> {
    match call {
        Some(future) => {
            let poll = future.as_mut().poll(cx);
            if poll.is_ready() {
                *call = None;
            }
            poll
        }
        None => Poll::Pending,
    }
}

/// Ends when a note is there, or when the time has come.
pub(crate) async fn note_before<T: PartialEq>(mail: &Mail<T>, env: &Env, until: Monotonic) {
    let _ = env.timeout_at(until, mail.wait()).await;
}
