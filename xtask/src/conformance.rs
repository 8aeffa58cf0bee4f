//! `cargo xtask conformance`: the conformance binary of one backend, and how many cases passed and were skipped.

use crate::counts::{Counts, Outcome};
use crate::shell;
use std::path::Path;

/// Runs the cases whose names contain a filter, all without filters. Errors: the binary could not be started.
pub(crate) fn run(root: &Path, backend: &str, filters: &[String]) -> Result<Outcome, String> {
    // The harness takes one filter a run.
    let runs: Vec<&[String]> = if filters.is_empty() { vec![&[]] } else { filters.chunks(1).collect() };
    let mut outcome = Outcome::default();
    for filter in runs {
        let package = format!("mainstay-{backend}");
        let mut command = shell::cargo(root, &["test", "--package", &package, "--test", "conformance", "--"]);
        command.args(filter);
        let (status, output) = shell::tee(&mut command)?;
        let counts = Counts::of_libtest(&output).unwrap_or_default();
        outcome.and(Outcome { counts, error: shell::succeeded(&command, status).err() });
    }
    println!("\nconformance of {backend}");
    Ok(outcome.demand_some())
}
