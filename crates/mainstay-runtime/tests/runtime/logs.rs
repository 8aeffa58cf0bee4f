//! What is logged while a test runs.

use mainstay_env::LogLine;
use tracing::Level;

/// Runs `work`, and gives what the runtime logged meanwhile on this thread, from the level info on.
pub(crate) fn logged<R>(work: impl FnOnce() -> R) -> (R, Vec<LogLine>) {
    mainstay_env::logged("mainstay_runtime", Level::INFO, work)
}

/// The lines of a level that contain a text.
pub(crate) fn count(lines: &[LogLine], level: Level, text: &str) -> usize {
    lines.iter().filter(|line| line.level == level && line.text.contains(text)).count()
}
