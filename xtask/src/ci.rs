//! `cargo xtask ci`: every gate in a row, each stage timed, each group of stages held to its limit.

use crate::counts::{Counts, Outcome};
use crate::pg::Postgres;
use crate::test::{self, Part, Setting};
use crate::{bite, conformance, interop, shell, tidy, tools};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// The stages of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Build,
    Docs,
    Unit,
    Crash,
    Interop,
    Long,
}

impl Group {
    const ALL: [Self; 6] = [Self::Build, Self::Docs, Self::Unit, Self::Crash, Self::Interop, Self::Long];

    const fn name(self) -> &'static str {
        match self {
            Self::Build => "build and lint",
            Self::Docs => "documentation",
            Self::Unit => "unit, property, conformance",
            Self::Crash => "crash and random",
            Self::Interop => "interop",
            Self::Long => "long runs",
        }
    }

    /// The limits of the test levels in docs/testing.md: a cold run on two cores. A full run is held only in what it
    /// does not lengthen.
    const fn limit(self, full: bool) -> Option<Duration> {
        match self {
            Self::Build => Some(Duration::from_secs(11 * 60)),
            Self::Docs => Some(Duration::from_secs(4 * 60)),
            Self::Unit if !full => Some(Duration::from_secs(6 * 60)),
            Self::Crash if !full => Some(Duration::from_secs(4 * 60)),
            Self::Interop if !full => Some(Duration::from_secs(2 * 60)),
            Self::Unit | Self::Crash | Self::Interop | Self::Long => None,
        }
    }
}

/// The limit of a whole run, docs/testing.md.
const TOTAL: Duration = Duration::from_secs(25 * 60);

#[derive(Clone, Debug)]
struct Stage {
    name: &'static str,
    group: Group,
    took: Duration,
    error: Option<String>,
}

/// Runs every stage, also after one has failed, and prints the table. The outcome's error says which stages failed
/// and which groups were too slow.
pub(crate) fn run(root: &Path, full: bool) -> Outcome {
    let mut run = Run { root, full, postgres: None, stages: Vec::new(), counts: Counts::default() };
    run.stage("fmt", Group::Build, |run| shell::run(&mut shell::cargo(run.root, &["fmt", "--all", "--check"])));
    run.stage("tidy", Group::Build, |run| tidy::run(run.root));
    run.stage("deny", Group::Build, |run| deny(run.root));
    run.stage("clippy", Group::Build, |run| clippy(run.root));
    run.stage("docs", Group::Docs, |run| docs(run.root));
    run.stage("build tests", Group::Build, |run| test::build(run.root));
    run.stage("fetch sdks", Group::Build, |run| interop::fetch(run.root, !run.full));
    run.stage("postgres", Group::Build, |run| run.start_postgres());
    run.stage("tests", Group::Unit, |run| run.tests(Part::Unit));
    run.stage("held at 108", Group::Unit, |run| run.held());
    run.stage("doctests", Group::Docs, |run| test::doc(run.setting()).and_then(|outcome| run.count(outcome)));
    run.stage("system tests", Group::Crash, |run| run.tests(Part::System));
    run.stage("interop", Group::Interop, |run| run.interop());
    if full {
        run.stage("bite", Group::Long, Run::bite);
    }
    let (table, faults) = report(&run.stages, full);
    println!("\n{table}");
    Outcome { counts: run.counts, error: (!faults.is_empty()).then(|| faults.join("; ")) }
}

/// Licences, bans and sources of every dependency. Advisories need a database that is not on every network.
pub(crate) fn deny(root: &Path) -> Result<(), String> {
    let deny = tools::find(root, tools::DENY)?;
    shell::run(deny.command(root).args(["--log-level", "error", "check", "bans", "licenses", "sources"]))
}

fn clippy(root: &Path) -> Result<(), String> {
    shell::run(&mut shell::cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn docs(root: &Path) -> Result<(), String> {
    shell::run(shell::cargo(root, &["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

struct Run<'a> {
    root: &'a Path,
    full: bool,
    postgres: Option<Postgres>,
    stages: Vec<Stage>,
    counts: Counts,
}

impl Run<'_> {
    fn stage(&mut self, name: &'static str, group: Group, work: impl FnOnce(&mut Self) -> Result<(), String>) {
        println!("\n--- {name}");
        let start = Instant::now();
        let error = work(self).err();
        let took = start.elapsed();
        match &error {
            Some(error) => println!("--- {name} failed after {}: {error}", seconds(took)),
            None => println!("--- {name} passed in {}", seconds(took)),
        }
        self.stages.push(Stage { name, group, took, error });
    }

    /// The stages after it run without one if it fails, so that one run shows all that is wrong.
    fn start_postgres(&mut self) -> Result<(), String> {
        self.postgres = Some(Postgres::demanded(self.root, None)?);
        Ok(())
    }

    fn setting(&self) -> Setting<'_> {
        Setting { root: self.root, postgres: self.postgres.as_ref(), full: self.full }
    }

    fn tests(&mut self, part: Part) -> Result<(), String> {
        let outcome = test::tests(self.setting(), part, &[])?;
        self.count(outcome.demand_some())
    }

    /// The conformance suite on databases held at 108: where they have statements of their own, or all of it and that of the
    /// other layouts.
    fn held(&mut self) -> Result<(), String> {
        let layouts: &[(&str, &[&str])] =
            if self.full { &[("108", &[]), ("114", &[]), ("inline", &[])] } else { &[("108", conformance::HELD)] };
        for (layout, groups) in layouts {
            let layout = (conformance::LAYOUT, *layout);
            // Long random lists are run once, on what a fresh database has.
            let setting = Setting { full: false, ..self.setting() };
            let outcome = test::conformance(setting, "mainstay-postgres", groups, layout)?.demand_some();
            self.count(outcome)?;
        }
        Ok(())
    }

    /// The smoke part, or all of it, on the server of the run.
    fn interop(&self) -> Result<(), String> {
        interop::on(self.root, self.postgres.as_ref(), !self.full, &[])
    }

    fn bite(&mut self) -> Result<(), String> {
        let postgres = self.postgres.as_ref().ok_or("there is no PostgreSQL")?;
        let outcome = bite::run(self.root, &[], postgres)?;
        self.count(outcome)
    }

    fn count(&mut self, outcome: Outcome) -> Result<(), String> {
        self.counts += outcome.counts;
        outcome.error.map_or(Ok(()), Err)
    }
}

/// The closing table, and what is wrong: a stage that failed, a group or the whole over its limit.
fn report(stages: &[Stage], full: bool) -> (String, Vec<String>) {
    let mut table = String::new();
    let mut faults = Vec::new();
    for stage in stages {
        let state = if stage.error.is_some() { "FAILED" } else { "ok" };
        let _ = writeln!(table, "{:<28} {:>9} {:>9}  {state}", stage.name, seconds(stage.took), "");
        faults.extend(stage.error.as_ref().map(|_| format!("stage `{}` failed", stage.name)));
    }
    for group in Group::ALL {
        let mut took = stages.iter().filter(|stage| stage.group == group).map(|stage| stage.took).peekable();
        if took.peek().is_some() {
            sum(&mut table, &mut faults, (group.name(), took.sum(), group.limit(full)));
        }
    }
    let total = stages.iter().map(|stage| stage.took).sum();
    sum(&mut table, &mut faults, ("all stages", total, (!full).then_some(TOTAL)));
    (table, faults)
}

fn sum(table: &mut String, faults: &mut Vec<String>, (name, took, limit): (&str, Duration, Option<Duration>)) {
    let slow = limit.is_some_and(|limit| took > limit);
    let shown = limit.map_or_else(String::new, |limit| format!("/ {}", seconds(limit)));
    let state = if slow { "OVER ITS LIMIT" } else { "" };
    let _ = writeln!(table, "= {name:<26} {:>9} {shown:>9}  {state}", seconds(took));
    if slow {
        faults.push(format!("{name} took {} of {}", seconds(took), limit.map_or_else(String::new, seconds)));
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &'static str, group: Group, secs: u64) -> Stage {
        Stage { name, group, took: Duration::from_secs(secs), error: None }
    }

    #[test]
    fn stages_of_one_group_share_its_limit() {
        let within = [stage("a", Group::Build, 300), stage("b", Group::Build, 359)];
        assert_eq!(report(&within, false).1, Vec::<String>::new());
        let over = [stage("a", Group::Build, 300), stage("b", Group::Build, 361)];
        assert_eq!(report(&over, false).1, ["build and lint took 661.0 s of 660.0 s"]);
    }

    #[test]
    fn a_failed_stage_fails_the_run_by_name() {
        let failed = Stage { error: Some("x".into()), ..stage("clippy", Group::Build, 1) };
        let (table, faults) = report(&[failed], false);
        assert_eq!(faults, ["stage `clippy` failed"]);
        assert!(table.contains("FAILED"), "{table}");
    }

    #[test]
    fn a_full_run_has_no_limit_on_what_it_lengthens() {
        let long = [stage("tests", Group::Unit, 10_000), stage("bite", Group::Long, 10_000)];
        assert_eq!(report(&long, true).1, Vec::<String>::new());
        assert_eq!(report(&long[..1], false).1.len(), 2);
    }
}
