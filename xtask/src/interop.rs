//! `cargo xtask interop`: fetches the DBOS SDKs, pinned, and runs their programs and ours on one database.

use crate::counts::Outcome;
use crate::pg::Postgres;
use crate::{shell, tools};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the pins and the programs of the SDKs are.
const PEERS: &str = "tests/interop/peers";
/// Where the SDKs are put.
const SDKS: &str = "target/interop";
/// Holds the pins that a folder was filled by; one that is there is complete.
const MARK: &str = "fetched";

/// What brings an SDK.
#[derive(Clone, Copy, Debug)]
enum From {
    Pip,
    Npm,
    Cargo,
}

/// An SDK in one version.
#[derive(Clone, Copy, Debug)]
struct Sdk {
    /// Its folder below [`SDKS`], by which `tests/interop` knows it.
    folder: &'static str,
    from: From,
    /// The file of its pins, below [`PEERS`].
    pins: &'static str,
    /// Whether the smoke part runs with it.
    smoke: bool,
}

const ALL: &[Sdk] = &[
    Sdk { folder: "python-3.4.0", from: From::Pip, pins: "python/requirements-3.4.0.txt", smoke: true },
    Sdk { folder: "typescript-5.3.0", from: From::Npm, pins: "typescript/5.3.0/package-lock.json", smoke: true },
    Sdk { folder: "python-2.31.1", from: From::Pip, pins: "python/requirements-2.31.1.txt", smoke: false },
    Sdk { folder: "typescript-4.27.6", from: From::Npm, pins: "typescript/4.27.6/package-lock.json", smoke: false },
    Sdk { folder: "rust-0.5.0", from: From::Cargo, pins: "rust/Cargo.lock", smoke: false },
];

/// Fetches what is missing and runs the scenarios, or their smoke part; `filters` are parts of their names. Errors: an SDK cannot
/// be had, there is no PostgreSQL, or a scenario failed.
pub(crate) fn run(root: &Path, smoke: bool, filters: &[String]) -> Result<Outcome, String> {
    let postgres = Postgres::demanded(root, None)?;
    fetch(root, smoke)?;
    on(root, Some(&postgres), smoke, filters).map(|()| Outcome::default())
}

/// Fetches the SDKs that are missing, and builds the program that plays our side. It is built as the whole workspace, or cargo
/// would build its dependencies again with fewer features.
pub(crate) fn fetch(root: &Path, smoke: bool) -> Result<(), String> {
    let wanted: Vec<Sdk> = ALL.iter().copied().filter(|sdk| sdk.smoke || !smoke).collect();
    prepare(&wanted)?;
    let fetched = std::thread::scope(|scope| {
        let all: Vec<_> = wanted.iter().map(|sdk| scope.spawn(move || sdk.fetched(root))).collect();
        all.into_iter().map(|one| one.join().unwrap_or_else(|_| Err("fetching panicked".into()))).collect()
    });
    fetched_all(fetched)?;
    shell::run(&mut shell::cargo(root, &["build", "--quiet", "--workspace", "--bins"]))
}

/// As [`run`], on the server of a run that goes on, after [`fetch`].
pub(crate) fn on(root: &Path, postgres: Option<&Postgres>, smoke: bool, filters: &[String]) -> Result<(), String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut command = Command::new(target.join("debug/interop"));
    command.current_dir(root).arg(SDKS);
    command.args(smoke.then_some("--smoke")).args(filters);
    if let Some(postgres) = postgres {
        postgres.tell(&mut command);
    }
    shell::run(&mut command)
}

/// The programs that fetching and running need; those that are missing are installed once, before anything goes on at a time.
fn prepare(wanted: &[Sdk]) -> Result<(), String> {
    if wanted.iter().any(|sdk| matches!(sdk.from, From::Npm)) {
        tools::npm()?;
    }
    Ok(())
}

fn fetched_all(fetched: Vec<Result<(), String>>) -> Result<(), String> {
    let errors: Vec<String> = fetched.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

impl Sdk {
    /// Fills its folder unless it was filled by the same pins.
    fn fetched(self, root: &Path) -> Result<(), String> {
        let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
        let pins = root.join(PEERS).join(self.pins);
        let text = std::fs::read_to_string(&pins).map_err(|error| failed(&pins, error))?;
        let folder = root.join(SDKS).join(self.folder);
        let mark = folder.join(MARK);
        let is_there = std::fs::read_to_string(&mark).is_ok_and(|fetched| fetched == text);
        // Cargo knows by itself what has changed, of the program too.
        if is_there && !matches!(self.from, From::Cargo) {
            return Ok(());
        }
        println!("xtask: fetching {}", self.folder);
        std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        self.fill(&folder, &pins).map_err(|error| format!("{} cannot be had: {error}", self.folder))?;
        std::fs::write(&mark, text).map_err(|error| failed(&mark, error))
    }

    fn fill(self, folder: &Path, pins: &Path) -> Result<(), String> {
        match self.from {
            From::Pip => {
                let venv = folder.join("venv");
                if !venv.join("bin/pip").is_file() {
                    tools::make_venv(&venv)?;
                }
                let args = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"];
                shell::output(Command::new(venv.join("bin/pip")).args(args).arg(pins)).map(drop)
            }
            From::Npm => {
                for name in ["package.json", "package-lock.json"] {
                    let from = pins.with_file_name(name);
                    std::fs::copy(&from, folder.join(name)).map_err(|error| format!("{}: {error}", from.display()))?;
                }
                // The lock file names contents by their hashes, and no registry: the configured one is asked.
                let args = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
                shell::output(Command::new(tools::npm()?).current_dir(folder).args(args)).map(drop)
            }
            From::Cargo => {
                let manifest: PathBuf = pins.with_file_name("Cargo.toml");
                let mut build = Command::new("cargo");
                build
                    .args(["build", "--quiet", "--locked", "--manifest-path"])
                    .arg(manifest)
                    .arg("--target-dir")
                    .arg(folder);
                shell::output(&mut build).map(drop)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sdk_is_pinned_in_the_version_of_its_folder() -> Result<(), String> {
        let root = shell::root()?;
        for sdk in ALL {
            let path = root.join(PEERS).join(sdk.pins);
            let pins = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let (_, version) = sdk.folder.split_once('-').ok_or("a folder without a version")?;
            let line = match sdk.from {
                From::Pip => format!("dbos=={version}\n"),
                From::Npm => format!("\"@dbos-inc/dbos-sdk\": \"{version}\"\n"),
                From::Cargo => format!("name = \"dbos\"\nversion = \"{version}\"\n"),
            };
            assert!(pins.contains(&line), "{}: no {line}", sdk.pins);
            assert!(!pins.contains("\"resolved\""), "{}: it names a registry", sdk.pins);
        }
        Ok(())
    }

    #[test]
    fn what_could_not_be_fetched_is_named() {
        assert_eq!(fetched_all(vec![Ok(()), Ok(())]), Ok(()));
        let error = fetched_all(vec![Err("a".into()), Ok(()), Err("b".into())]);
        assert_eq!(error, Err("a\nb".into()));
    }
}
