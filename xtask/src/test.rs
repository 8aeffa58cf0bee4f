//! `cargo xtask test`: all that must pass on a fresh machine without a server.

use crate::counts::Counts;
use crate::shell;
use crate::tools::{self, Found};
use std::path::Path;

/// Which tests to run and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tests<'a> {
    /// The packages, as the arguments that cargo and nextest share (`--workspace`, `-p x`).
    pub(crate) packages: &'a [&'a str],
    /// Further words for the runner: filters.
    pub(crate) args: &'a [String],
    /// The long runs: `MAINSTAY_FULL=1` for the tests, the patient profile for the runner.
    pub(crate) full: bool,
}

/// Runs the tests of the whole workspace, then the doctests unless `args` select some tests.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<(), String> {
    let tests = Tests { packages: &["--workspace"], args, full: false };
    let mut outcome = unit(root, &tests)?;
    if args.is_empty() {
        outcome.and(doc(root)?);
    }
    println!("\n{}", outcome.counts);
    outcome.result()
}

/// What a runner said and what was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    /// The first error; a run with a failed test has one too.
    pub(crate) error: Option<String>,
}

impl Outcome {
    /// Adds a second run; the first error stays.
    pub(crate) fn and(&mut self, other: Self) {
        self.counts += other.counts;
        self.error = self.error.take().or(other.error);
    }

    /// The outcome as a result. A run without a single test has shown nothing and is an error.
    pub(crate) fn result(self) -> Result<(), String> {
        match self.error {
            Some(error) => Err(error),
            None if self.counts.passed == 0 => Err("no test was run".into()),
            None => Ok(()),
        }
    }
}

/// Runs unit tests, property tests and conformance binaries. Errors: the runner could not be started.
pub(crate) fn unit(root: &Path, tests: &Tests<'_>) -> Result<Outcome, String> {
    match runner(root) {
        Some(nextest) => with_nextest(root, &nextest, tests),
        None => with_cargo(root, tests),
    }
}

/// Builds what `unit` runs.
pub(crate) fn build(root: &Path) -> Result<(), String> {
    match runner(root) {
        Some(nextest) => shell::run(nextest.command(root).args(["run", "--workspace", "--no-run"])),
        None => shell::run(shell::cargo(root, &["test", "--workspace"]).args(["--all-targets", "--no-run"])),
    }
}

/// Runs the examples in the documentation.
pub(crate) fn doc(root: &Path) -> Result<Outcome, String> {
    let mut command = shell::cargo(root, &["test", "--workspace", "--doc", "--no-fail-fast"]);
    let (status, output) = shell::tee(&mut command)?;
    let error = shell::succeeded(&command, status).err();
    Ok(Outcome { counts: Counts::of_libtest(&output).unwrap_or_default(), error })
}

fn runner(root: &Path) -> Option<Found> {
    match tools::find(root, tools::NEXTEST) {
        Ok(nextest) => Some(nextest),
        Err(error) => {
            println!("xtask: {error}\nxtask: going on with plain `cargo test`, which cannot end a test that hangs");
            None
        }
    }
}

fn with_nextest(root: &Path, nextest: &Found, tests: &Tests<'_>) -> Result<Outcome, String> {
    let mut command = nextest.command(root);
    command.args(["run", "--no-fail-fast"]).args(tests.packages).args(tests.args);
    if tests.full {
        command.args(["--profile", "full"]).env("MAINSTAY_FULL", "1");
    }
    let (status, output) = shell::tee(&mut command)?;
    let error = shell::succeeded(&command, status).err();
    Ok(Outcome { counts: Counts::of_nextest(&output).unwrap_or_default(), error })
}

fn with_cargo(root: &Path, tests: &Tests<'_>) -> Result<Outcome, String> {
    let mut command = shell::cargo(root, &["test", "--all-targets", "--no-fail-fast"]);
    command.args(tests.packages).args(tests.args);
    if tests.full {
        command.env("MAINSTAY_FULL", "1");
    }
    let (status, output) = shell::tee(&mut command)?;
    let error = shell::succeeded(&command, status).err();
    Ok(Outcome { counts: Counts::of_libtest(&output).unwrap_or_default(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(passed: u64, error: Option<&str>) -> Outcome {
        Outcome { counts: Counts { passed, ..Counts::default() }, error: error.map(str::to_owned) }
    }

    #[test]
    fn a_run_without_a_test_is_an_error() {
        assert!(ran(0, None).result().is_err());
        assert!(ran(1, None).result().is_ok());
    }

    #[test]
    fn the_first_error_of_two_runs_stays() {
        let mut both = ran(1, Some("first"));
        both.and(ran(2, Some("second")));
        assert_eq!(both.counts.passed, 3);
        assert_eq!(both.result(), Err("first".into()));
        let mut late = ran(1, None);
        late.and(ran(2, Some("second")));
        assert_eq!(late.result(), Err("second".into()));
    }
}
