//! Collects what the runner logs.

use std::sync::{Mutex, Once, PoisonError};

use mainstay_env::{Listen, LogLine};
use tracing::Level;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static STARTED: Once = Once::new();

/// Begins to collect, for the whole process.
pub(crate) fn collect() {
    let keep = |LogLine { level, text }: LogLine| {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{level} {text}"));
    };
    let listen = move || Listen::new("mainstay_postgres", Level::TRACE, keep);
    STARTED.call_once(|| tracing::subscriber::set_global_default(listen()).expect("no other subscriber"));
}

/// The lines that name all of `parts`.
pub(crate) fn with(parts: &[&str]) -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().filter(|line| parts.iter().all(|part| line.contains(part))).cloned().collect()
}
