//! `cargo xtask migrate-check`: the ladder of the shared schema against the golden catalog, number by number, from every
//! older number to the newest, and against the checksums of its files.

use crate::counts::{Counts, Outcome};
use crate::pg::Postgres;
use crate::shell;
use std::path::Path;
use std::process::Command;

/// What the tests that compare with `crates/mainstay-postgres/src/schema/facts.txt` begin with.
const GOLDEN: &str = "golden_";

/// Runs both on a server of the version. Errors: a binary or the server could not be started.
pub(crate) fn run(root: &Path, version: Option<u32>) -> Result<Outcome, String> {
    let postgres = Postgres::demanded(root, version)?;
    let mut outcome = counted(&mut shell::cargo(root, &["test", "--package", "mainstay-migrations", "--lib"]))?;
    let mut golden =
        shell::cargo(root, &["test", "--package", "mainstay-postgres", "--test", "postgres", "--", GOLDEN]);
    postgres.tell(&mut golden);
    // Every number, not only those that each run of the tests takes.
    golden.env("MAINSTAY_FULL", "1");
    outcome.and(counted(&mut golden)?.demand_some());
    Ok(outcome.demand_some())
}

fn counted(command: &mut Command) -> Result<Outcome, String> {
    let (status, output) = shell::tee(command)?;
    let counts = Counts::of_libtest(&output).unwrap_or_default();
    Ok(Outcome { counts, error: shell::succeeded(command, status).err() })
}
