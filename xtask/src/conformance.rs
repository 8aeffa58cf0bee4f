//! `cargo xtask conformance`: the conformance binary of one backend, and how many cases passed and were skipped.

use crate::counts::Counts;
use crate::shell;
use std::path::Path;

/// Runs the cases whose names contain a filter, all without filters. Errors: a case failed, or none was run.
pub(crate) fn run(root: &Path, backend: &str, filters: &[String]) -> Result<(), String> {
    // The harness takes one filter a run.
    let runs: Vec<&[String]> = if filters.is_empty() { vec![&[]] } else { filters.chunks(1).collect() };
    let mut counts = Counts::default();
    let mut error = None;
    for filter in runs {
        let package = format!("mainstay-{backend}");
        let mut command = shell::cargo(root, &["test", "--package", &package, "--test", "conformance", "--"]);
        command.args(filter);
        let (status, output) = shell::tee(&mut command)?;
        counts += Counts::of_libtest(&output).unwrap_or_default();
        error = error.or(shell::succeeded(&command, status).err());
    }
    println!("\nconformance of {backend}: {counts}");
    match error {
        Some(error) => Err(error),
        None if counts.passed == 0 => Err("no case was run".into()),
        None => Ok(()),
    }
}
