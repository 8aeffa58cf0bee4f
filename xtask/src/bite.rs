//! `cargo xtask bite`: a copy of the tree is broken on purpose, one patch at a time, and the tests must notice.

mod copy;
mod patch;
mod verdict;

use crate::counts::{Counts, Outcome};
use crate::pg::Postgres;
use crate::tools::{self, Found};
use copy::Copy;
use patch::Patch;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use verdict::{Run, Verdict};

/// The folder of the patches; docs/testing.md describes their header.
const BITES: &str = "xtask/bites";

/// Runs the patches of the names given, all without names, against a server; a patch that bit has passed. Errors: a faulty
/// header, and tests that fail without a patch.
pub(crate) fn run(root: &Path, names: &[String], postgres: &Postgres) -> Result<Outcome, String> {
    let patches = patch::read_all(&root.join(BITES), names)?;
    let nextest = tools::find(root, tools::NEXTEST)?;
    let bench = Bench { copy: Copy::make(root, &root.join("target/bite/tree"))?, nextest, postgres };
    println!("xtask: the tests without a patch");
    bench.demand_green(&patches)?;
    let mut verdicts = Vec::new();
    for patch in &patches {
        println!("\nxtask: {}", patch.name);
        verdicts.push((patch.name.as_str(), bench.try_patch(patch)?));
    }
    println!();
    for (name, verdict) in &verdicts {
        println!("{name:<44} {verdict}");
    }
    let bitten = verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Bitten).count() as u64;
    let counts = Counts { passed: bitten, failed: verdicts.len() as u64 - bitten, skipped: 0 };
    let error = (counts.failed > 0).then(|| "the suite did not notice every broken tree".to_owned());
    Ok(Outcome { counts, error })
}

struct Bench<'a> {
    copy: Copy,
    nextest: Found,
    postgres: &'a Postgres,
}

impl Bench<'_> {
    fn demand_green(&self, patches: &[Patch]) -> Result<(), String> {
        let runs: BTreeSet<&[String]> = patches.iter().flat_map(|patch| &patch.expect).map(Vec::as_slice).collect();
        for args in runs {
            match self.tests(args)? {
                Run::Green => {}
                other => return Err(format!("without a patch, `{}` is {other}", args.join(" "))),
            }
        }
        Ok(())
    }

    fn try_patch(&self, patch: &Patch) -> Result<Verdict, String> {
        let changed = match self.copy.apply(patch) {
            Ok(changed) => changed,
            Err(error) => {
                println!("{error}");
                return Ok(Verdict::NotApplied);
            }
        };
        let runs: Result<Vec<Run>, String> = patch.expect.iter().map(|args| self.tests(args)).collect();
        self.copy.restore(&changed)?;
        Ok(verdict::of(&runs?))
    }

    /// Builds first, so that code which does not compile is told from a test that fails.
    fn tests(&self, args: &[String]) -> Result<Run, String> {
        let mut build = self.command(args);
        let built = build.arg("--no-run").status().map_err(|error| format!("the build cannot be started: {error}"))?;
        if !built.success() {
            return Ok(Run::of_build(built.code()));
        }
        let mut tests = self.command(args);
        let status = tests.args(["--profile", "bite"]).status();
        Ok(Run::of_tests(status.map_err(|error| format!("the tests cannot be started: {error}"))?.code()))
    }

    fn command(&self, args: &[String]) -> Command {
        let mut command = self.nextest.command(self.copy.tree());
        command.arg("run").args(args).env("CARGO_TARGET_DIR", self.copy.tree().with_file_name("target"));
        self.postgres.tell(&mut command);
        command
    }
}
