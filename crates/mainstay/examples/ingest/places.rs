//! The folders and files of a run, checked before anything is done.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::output::Out;
use crate::path::PathText;
use crate::plan::Place;
use crate::work;

/// What SQLite and its store put beside a database file.
const BESIDE: [&str; 5] = ["", "-wal", "-shm", "-journal", "-exec"];

/// Where a run reads and writes, by real paths.
#[derive(Debug)]
pub(crate) struct Places {
    /// The folder that is read.
    pub(crate) folder: PathBuf,
    /// The folder of the results.
    pub(crate) out: Out,
    /// The store's address.
    pub(crate) url: String,
    /// What tells the folders from those of other machines.
    host: Option<String>,
}

impl Places {
    /// Finds the folder and makes the one of the results. The error is one line for the user.
    pub(crate) fn find(args: &Args) -> Result<Self, String> {
        let folder = real_folder(&args.folder)?;
        let cannot = |error: io::Error| format!("{}: cannot be the folder of results: {error}", args.out.display());
        fs::create_dir_all(&args.out).map_err(cannot)?;
        let out = args.out.canonicalize().map_err(cannot)?;
        if folder == out || ["files", "runs", "tmp"].iter().any(|own| folder.starts_with(out.join(own))) {
            return Err(format!(
                "{}: the results would be put into the folder itself; give another folder with --out DIR",
                args.folder.display()
            ));
        }
        let (url, out) = (args.url(&out)?, Out::new(out));
        let host = args.host(&url)?;
        match work::current(&out) {
            Ok(Some(current)) if current.folder != PathText::of(&folder) => Err(format!(
                "{}: holds the results of {}; give another folder with --out DIR",
                args.out.display(),
                current.folder
            )),
            Ok(_) => Ok(Self { folder, out, url, host }),
            Err(error) => Err(format!("{}: cannot be read: {}", out.current().display(), error.message())),
        }
    }

    /// The same as text.
    pub(crate) fn place(&self) -> Place {
        Place { folder: PathText::of(&self.folder), out: PathText::of(self.out.folder()), host: self.host.clone() }
    }

    /// What of the folder is no part of the work: the results, the files of the store, and the ledger.
    pub(crate) fn without(&self, ledger: Option<&Path>) -> Vec<PathBuf> {
        let file = self.url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path));
        let file = file.map(|path| real(Path::new(path.split('?').next().unwrap_or(path))));
        let beside = |file: &PathBuf| {
            BESIDE.map(|end| {
                let mut path = file.clone().into_os_string();
                path.push(end);
                path.into()
            })
        };
        let store = file.iter().flat_map(beside);
        std::iter::once(self.out.folder().to_owned()).chain(store).chain(ledger.map(real)).collect()
    }
}

fn real_folder(folder: &Path) -> Result<PathBuf, String> {
    let told = |error: io::Error| format!("{}: {}", folder.display(), reason(&error));
    let real = folder.canonicalize().map_err(told)?;
    if !real.is_dir() {
        return Err(format!("{}: is not a folder", folder.display()));
    }
    Ok(real)
}

fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound { "there is no such folder".to_owned() } else { error.to_string() }
}

/// The real path of a file that may not be there yet.
fn real(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = || Some(parent.canonicalize().ok()?.join(file.file_name()?));
    file.canonicalize().ok().or_else(beside).unwrap_or_else(|| file.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use tempfile::TempDir;

    fn args(folder: &Path, out: &Path, more: &[&str]) -> Args {
        let line = [Path::new("ingest").as_os_str(), folder.as_os_str(), "--out".as_ref(), out.as_os_str()];
        Args::try_parse_from(line.into_iter().chain(more.iter().map(|word| word.as_ref()))).expect("arguments")
    }

    fn dir() -> (TempDir, PathBuf) {
        let dir = TempDir::new().expect("a folder");
        let real = dir.path().canonicalize().expect("its real path");
        (dir, real)
    }

    #[test]
    fn a_folder_that_is_missing_or_none_is_told_in_a_line() {
        let (_dir, dir) = dir();
        fs::write(dir.join("file"), "x").expect("a file");
        for (name, told) in [("none", "none: there is no such folder"), ("file", "file: is not a folder")] {
            let error = Places::find(&args(&dir.join(name), &dir.join("out"), &[])).expect_err("no folder");
            assert!(error.ends_with(told) && !error.contains('\n'), "{error}");
        }
        assert!(!dir.join("out").exists(), "nothing was made");
    }

    #[test]
    fn results_go_nowhere_into_what_is_read() {
        let (_dir, dir) = dir();
        fs::create_dir_all(dir.join("files/x")).expect("folders");
        for folder in [dir.clone(), dir.join("files"), dir.join("files/x")] {
            let error = Places::find(&args(&folder, &dir, &[])).expect_err("into itself");
            assert!(error.ends_with("give another folder with --out DIR"), "{error}");
        }
        assert!(Places::find(&args(&dir, &dir.join("out"), &[])).is_ok());
    }

    #[test]
    fn results_of_another_folder_are_not_mixed_in() {
        let (_dir, dir) = dir();
        fs::create_dir_all(dir.join("in")).expect("a folder");
        let current = |folder: &Path| work::Current { folder: PathText::of(folder), run: "r".to_owned() };
        let write = |folder: &Path| {
            fs::create_dir_all(dir.join("out")).expect("a folder");
            let text = serde_json::to_vec(&current(folder)).expect("text");
            fs::write(dir.join("out/run.json"), text).expect("a file");
        };
        write(&dir.join("in"));
        assert!(Places::find(&args(&dir.join("in"), &dir.join("out"), &[])).is_ok());
        write(Path::new("/elsewhere"));
        let error = Places::find(&args(&dir.join("in"), &dir.join("out"), &[])).expect_err("another's");
        assert!(error.contains("/elsewhere") && error.contains("--out"), "{error}");
    }

    #[test]
    fn results_store_and_ledger_are_left_out() {
        let (_dir, dir) = dir();
        let url = format!("sqlite:{}", dir.join("s.db").display());
        let places = Places::find(&args(&dir, &dir.join("out"), &["--store", &url])).expect("places");
        let names = ["out", "s.db", "s.db-wal", "s.db-shm", "s.db-journal", "s.db-exec", "led"];
        assert_eq!(places.without(Some(&dir.join("led"))), names.map(|name| dir.join(name)));
        let places = Places::find(&args(&dir, &dir.join("out"), &["--store", "memory:"])).expect("places");
        assert_eq!(places.without(None), [dir.join("out")]);
    }
}
