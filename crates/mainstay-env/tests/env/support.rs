//! What several test modules need: a log of strings, a guard that notes its drop, a capture of the tracing log.

use mainstay_env::Listen;
use std::sync::{Arc, Mutex};
use tracing::Level;

/// A shared list of lines.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(crate) fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// A value that adds `line` when it is dropped.
    pub(crate) fn on_drop(&self, line: &str) -> OnDrop<impl FnOnce() + Send + use<>> {
        let (lines, line) = (self.clone(), line.to_owned());
        OnDrop(Some(move || lines.push(line)))
    }
}

/// Calls a function when it is dropped.
pub(crate) struct OnDrop<F: FnOnce()>(pub(crate) Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

/// The events that `run` logs on this thread, as `field=value` text; none when it logs nothing in many runs.
///
/// More than one run may be needed: tracing keeps "nobody listens" for an event that a test on another thread, which has
/// no subscriber, was the first to reach, and that thread may be about to write this down while we correct it.
pub(crate) fn captured(run: impl Fn()) -> Vec<String> {
    let lines = Lines::default();
    let heard = lines.clone();
    let listen = Listen::new("", Level::TRACE, move |line| heard.push(line.text.trim_end()));
    tracing::subscriber::with_default(listen, || {
        for _ in 0..100 {
            tracing::callsite::rebuild_interest_cache();
            run();
            let logged = lines.take();
            if !logged.is_empty() {
                return logged;
            }
            std::thread::yield_now();
        }
        Vec::new()
    })
}
