//! `cargo xtask conformance`: the conformance binary of one backend, and how many cases passed and were skipped.

use crate::counts::{Counts, Outcome};
use crate::pg::Postgres;
use crate::shell;
use std::path::Path;

/// The backend that needs a server, which is started for the run.
pub(crate) const POSTGRES: &str = "postgres";

/// Names the layout of the databases to the binary.
pub(crate) const LAYOUT: &str = "MAINSTAY_CONFORMANCE_LAYOUT";

/// The groups in which a database held at 108 has statements of its own, for a run that has no time for all.
pub(crate) const HELD: &[&str] = &["fence", "claim", "units"];

/// Runs the cases whose names contain a filter, all without filters, on a server of the version where the backend has
/// one, and on databases of the layout. Errors: the binary or the server could not be started.
pub(crate) fn run(
    root: &Path,
    backend: &str,
    filters: &[String],
    version: Option<u32>,
    layout: Option<&str>,
) -> Result<Outcome, String> {
    let postgres = if backend == POSTGRES { Some(Postgres::demanded(root, version)?) } else { None };
    // The harness takes one filter a run.
    let runs: Vec<&[String]> = if filters.is_empty() { vec![&[]] } else { filters.chunks(1).collect() };
    let mut outcome = Outcome::default();
    for filter in runs {
        let package = format!("mainstay-{backend}");
        let mut command = shell::cargo(root, &["test", "--package", &package, "--test", "conformance", "--"]);
        command.args(filter);
        if let Some(postgres) = &postgres {
            postgres.tell(&mut command);
        }
        if let Some(layout) = layout {
            command.env(LAYOUT, layout);
        }
        let (status, output) = shell::tee(&mut command)?;
        let counts = Counts::of_libtest(&output).unwrap_or_default();
        outcome.and(Outcome { counts, error: shell::succeeded(&command, status).err() });
    }
    println!("\nconformance of {backend}{}", layout.map_or_else(String::new, |layout| format!(", layout {layout}")));
    Ok(outcome.demand_some())
}
