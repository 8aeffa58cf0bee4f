//! Where PostgreSQL's programs are, and how an unprivileged user gets at them.

use crate::error::{During, Error};
use crate::process::{User, cache_folder};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names the folder of the programs before any other place.
pub const PROGRAMS_VARIABLE: &str = "MAINSTAY_PG_BIN";
/// Where Debian's packages put each major version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A folder with `initdb` and `postgres`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
    version: String,
}

impl Binaries {
    /// Those of `$MAINSTAY_PG_BIN`, else looks in Debian's folders (newest first), in the folder where `cargo xtask pg` puts
    /// other versions, and in `$PATH`. `None`: there is none. Panics: the folder that is named has none.
    pub fn find() -> Option<Self> {
        if let Some(named) = std::env::var_os(PROGRAMS_VARIABLE).filter(|named| !named.is_empty()) {
            // Another version in its place would be tested without a word.
            return Some(Self::of(Path::new(&named)).unwrap_or_else(|error| panic!("{PROGRAMS_VARIABLE}: {error}")));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = debian().into_iter().chain(fetched()).chain(std::env::split_paths(&path));
        places.into_iter().find_map(|folder| Self::of(&folder).ok())
    }

    /// The programs of one folder. Errors: one is missing or does not run.
    pub fn of(folder: &Path) -> Result<Self, Error> {
        let here = folder.display();
        if !folder.join("initdb").is_file() {
            return Err(Error::new(format!("no initdb in {here}")));
        }
        let output = Command::new(folder.join("postgres")).arg("--version").output();
        let output = output.during(&format!("postgres in {here}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`
        let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let version = version.ok_or_else(|| Error::new(format!("postgres in {here} says no version")))?;
        Ok(Self { folder: folder.to_owned(), version: version.to_owned() })
    }

    /// `15.18`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The first number of the version.
    pub fn major(&self) -> u32 {
        let digits = self.version.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// The folder of the programs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of one program, which need not be there.
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// These programs at a place that the user who runs servers can reach: here, or as a copy in the cache.
    pub(crate) fn reachable(&self) -> Result<Self, Error> {
        Ok(Self { folder: reachable(&self.folder)?, version: self.version.clone() })
    }
}

fn debian() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(DEBIAN).into_iter().flatten().filter_map(Result::ok);
    let named = entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())));
    let mut found: Vec<(u32, PathBuf)> = named.map(|(major, path)| (major, path.join("bin"))).collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// `target/postgres/MAJOR/bin` of the workspace, newest first.
fn fetched() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/postgres");
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path().join("bin")).collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

/// A folder of programs (`PREFIX/bin`) as the unprivileged user can reach it: itself when every folder above it lets
/// others through, else a copy of `PREFIX` in a cache. Errors: the copy cannot be made.
pub fn reachable(folder: &Path) -> Result<PathBuf, Error> {
    let folder = std::fs::canonicalize(folder).during(&format!("{}", folder.display()))?;
    if !User::current().is_dropped() || folder.ancestors().all(lets_others_through) {
        return Ok(folder);
    }
    let prefix = folder.parent().unwrap_or(&folder);
    let stamp = std::fs::metadata(&folder).during("the programs")?;
    let copy = cache_folder()?.join(format!("programs-{}-{}", stamp.ino(), stamp.mtime()));
    if !copy.is_dir() {
        let half = copy.with_extension(format!("{}", std::process::id()));
        // cp keeps the links between libraries, which a copy of contents would turn into as many files.
        let copied = Command::new("cp").arg("-R").arg(prefix).arg(&half).status().during("cp")?;
        let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(&half).status().during("chmod")?;
        if !copied.success() || !opened.success() {
            return Err(Error::new(format!("{} cannot be copied to {}", prefix.display(), half.display())));
        }
        settle(&half, &copy)?;
    }
    Ok(copy.join(folder.file_name().unwrap_or_default()))
}

/// Renames a finished folder to the name that others look for; the first one that gets there stays.
pub(crate) fn settle(half: &Path, whole: &Path) -> Result<(), Error> {
    if let Err(error) = std::fs::rename(half, whole) {
        std::fs::remove_dir_all(half).during("a second copy")?;
        if !whole.is_dir() {
            return Err(error).during("the cache");
        }
    }
    Ok(())
}

fn lets_others_through(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|meta| meta.mode() & 0o001 != 0)
}
