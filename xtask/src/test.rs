//! `cargo xtask test`: all that must pass on a fresh machine, with a PostgreSQL of the run where there are binaries.

use crate::counts::{Counts, Outcome};
use crate::pg::Postgres;
use crate::shell;
use crate::tools::{self, Found};
use std::path::Path;
use std::process::Command;

/// The package of the whole-system tests: several processes, crashes, long drains.
const SYSTEM: &str = "mainstay-tests";

/// Which part of the workspace a run covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// What runs inside one process: all but the whole-system tests.
    Unit,
    /// The whole-system tests alone.
    System,
}

/// What the runs of one command share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) root: &'a Path,
    pub(crate) postgres: Option<&'a Postgres>,
    /// Sets `MAINSTAY_FULL=1` and `MAINSTAY_SOAK=1` and has the runner wait longer.
    pub(crate) full: bool,
}

impl Setting<'_> {
    fn tell(&self, command: &mut Command) {
        if let Some(postgres) = self.postgres {
            postgres.tell(command);
        }
        if self.full {
            command.env("MAINSTAY_FULL", "1").env("MAINSTAY_SOAK", "1");
        }
    }
}

/// Runs the tests of the whole workspace, then the doctests unless `args` select some tests.
pub(crate) fn run(root: &Path, version: Option<u32>, args: &[String]) -> Result<Outcome, String> {
    let postgres = Postgres::for_tests(root, version)?;
    let setting = Setting { root, postgres: Some(&postgres), full: false };
    let mut outcome = tests(setting, Part::All, args)?;
    if args.is_empty() {
        outcome.and(doc(setting)?);
    }
    Ok(outcome.demand_some())
}

/// Runs unit tests, property tests and conformance binaries; `args` go to the runner. Errors: the runner could not be
/// started.
pub(crate) fn tests(setting: Setting<'_>, part: Part, args: &[String]) -> Result<Outcome, String> {
    let root = setting.root;
    let nextest = runner(root);
    let mut command = match &nextest {
        Some(nextest) => with_nextest(root, nextest, part, setting.full),
        None => with_cargo(root, part),
    };
    command.args(args);
    setting.tell(&mut command);
    let (status, output) = shell::tee(&mut command)?;
    let counts = if nextest.is_some() { Counts::of_nextest(&output) } else { Counts::of_libtest(&output) };
    Ok(Outcome { counts: counts.unwrap_or_default(), error: shell::succeeded(&command, status).err() })
}

/// Runs the conformance binary of a package again, of the groups or all of it, with a variable set. Errors: the runner could
/// not be started.
pub(crate) fn conformance(
    setting: Setting<'_>,
    package: &str,
    groups: &[&str],
    (name, value): (&str, &str),
) -> Result<Outcome, String> {
    let nextest = tools::find(setting.root, tools::NEXTEST)?;
    let mut command = nextest.command(setting.root);
    // Of the whole workspace, or cargo would build its dependencies again with fewer features.
    command.args(["run", "--no-fail-fast", "--workspace", "--filterset", &of_groups(package, groups)]);
    setting.tell(&mut command);
    let (status, output) = shell::tee(command.env(name, value))?;
    let error = shell::succeeded(&command, status).err();
    Ok(Outcome { counts: Counts::of_nextest(&output).unwrap_or_default(), error })
}

/// The cases of groups in the words of the runner.
fn of_groups(package: &str, groups: &[&str]) -> String {
    let groups = if groups.is_empty() { String::new() } else { format!(" & test(/^({})::/)", groups.join("|")) };
    format!("package({package}) & binary(=conformance){groups}")
}

/// Builds what `tests` runs.
pub(crate) fn build(root: &Path) -> Result<(), String> {
    match runner(root) {
        Some(nextest) => shell::run(nextest.command(root).args(["run", "--workspace", "--no-run"])),
        None => shell::run(shell::cargo(root, &["test", "--workspace"]).args(["--all-targets", "--no-run"])),
    }
}

/// Runs the examples in the documentation. There may be none.
pub(crate) fn doc(setting: Setting<'_>) -> Result<Outcome, String> {
    let mut command = shell::cargo(setting.root, &["test", "--workspace", "--doc", "--no-fail-fast"]);
    setting.tell(&mut command);
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

/// Each part is built as the whole workspace, or cargo would build its dependencies again with fewer features.
fn with_nextest(root: &Path, nextest: &Found, part: Part, full: bool) -> Command {
    let mut command = nextest.command(root);
    command.args(["run", "--no-fail-fast"]);
    let filter = match part {
        // The root is a virtual manifest: without a choice all packages are meant, with `-p` in the arguments these.
        Part::All => None,
        Part::Unit => Some(format!("not package({SYSTEM})")),
        Part::System => Some(format!("package({SYSTEM})")),
    };
    if let Some(filter) = filter {
        command.args(["--workspace", "--filterset", &filter]);
    }
    if full {
        command.args(["--profile", "full"]);
    }
    command
}

fn with_cargo(root: &Path, part: Part) -> Command {
    let mut command = shell::cargo(root, &["test", "--all-targets", "--no-fail-fast"]);
    match part {
        Part::All => &mut command,
        Part::Unit => command.args(["--workspace", "--exclude", SYSTEM]),
        Part::System => command.args(["--package", SYSTEM]),
    };
    command
}
