//! What a folder holds: its regular files, and what is not read with the reason.

use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::path::PathText;

/// A regular file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    /// Relative to the folder.
    pub(crate) path: PathText,
    /// In bytes.
    pub(crate) size: u64,
    /// Last change, in nanoseconds since 1970.
    pub(crate) mtime: i128,
}

/// Something that is not ingested, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Left {
    /// Relative to the folder.
    pub(crate) path: PathText,
    /// In words.
    pub(crate) reason: String,
}

/// A folder's contents, each list in order of its paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Regular files.
    pub(crate) files: Vec<Found>,
    /// What is no file: links, sockets, pipes, devices.
    pub(crate) skipped: Vec<Left>,
    /// Folders and entries that could not be read.
    pub(crate) unread: Vec<Left>,
}

/// Walks a folder without following links. `folder` and `without` are real paths; what is below one of `without` is left
/// out without a word. Errors: the folder itself cannot be read.
pub(crate) fn scan(folder: &Path, without: &[PathBuf]) -> io::Result<Scan> {
    let mut scan = Scan::default();
    let mut folders = vec![PathBuf::new()];
    while let Some(relative) = folders.pop() {
        match fs::read_dir(folder.join(&relative)) {
            Ok(entries) => scan.enter(folder, &relative, entries, without, &mut folders),
            Err(error) if relative.as_os_str().is_empty() => return Err(error),
            Err(error) => scan.unread(&relative, &error),
        }
    }
    scan.files.sort();
    scan.skipped.sort();
    scan.unread.sort();
    Ok(scan)
}

impl Scan {
    fn enter(
        &mut self,
        folder: &Path,
        relative: &Path,
        entries: fs::ReadDir,
        without: &[PathBuf],
        folders: &mut Vec<PathBuf>,
    ) {
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.unread(relative, &error);
                    continue;
                }
            };
            let path = relative.join(entry.file_name());
            if without.contains(&folder.join(&path)) {
                continue;
            }
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(path),
                Ok(meta) if meta.is_file() => match mtime(&meta) {
                    Ok(mtime) => self.files.push(Found { path: PathText::of(&path), size: meta.len(), mtime }),
                    Err(error) => self.unread(&path, &error),
                },
                Ok(meta) => {
                    let reason = kind(meta.file_type()).to_owned();
                    self.skipped.push(Left { path: PathText::of(&path), reason });
                }
                // It was there a moment ago, and now it is not in the folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.unread(&path, &error),
            }
        }
    }

    fn unread(&mut self, path: &Path, error: &io::Error) {
        self.unread.push(Left { path: PathText::of(path), reason: format!("cannot be read: {error}") });
    }
}

fn mtime(meta: &fs::Metadata) -> io::Result<i128> {
    let modified = meta.modified()?;
    let nanos = |time: std::time::Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
    Ok(match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => -nanos(before.duration()),
    })
}

#[cfg(unix)]
fn kind(file_type: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if file_type.is_symlink() {
        "is a symbolic link"
    } else if file_type.is_socket() {
        "is a socket"
    } else if file_type.is_fifo() {
        "is a pipe"
    } else {
        "is a device"
    }
}

#[cfg(not(unix))]
fn kind(file_type: FileType) -> &'static str {
    if file_type.is_symlink() { "is a symbolic link" } else { "is no regular file" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder(files: &[&str]) -> (TempDir, PathBuf) {
        let dir = TempDir::new().expect("a folder");
        let real = dir.path().canonicalize().expect("its real path");
        for file in files {
            fs::create_dir_all(real.join(file).parent().expect("a parent")).expect("folders");
            fs::write(real.join(file), file).expect("a file");
        }
        (dir, real)
    }

    fn paths(scan: &Scan) -> Vec<&str> {
        scan.files.iter().map(|found| found.path.as_str()).collect()
    }

    #[test]
    fn files_are_listed_in_order_with_size_and_time() {
        let (_dir, folder) = folder(&["b", "a/c", "a/b/d", "a.b"]);
        let scan = scan(&folder, &[]).expect("a scan");
        assert_eq!(paths(&scan), ["a.b", "a/b/d", "a/c", "b"]);
        assert_eq!(scan.files[1].size, 5);
        assert!(scan.files.iter().all(|found| found.mtime > 1_000_000_000_000_000_000), "nanoseconds of our century");
        assert!(scan.skipped.is_empty() && scan.unread.is_empty());
    }

    #[test]
    fn what_is_to_be_left_out_is_not_entered_or_named() {
        let (_dir, folder) = folder(&["a", "out/x", "store.db", "outside/y", "sub/out/z"]);
        let without = [folder.join("out"), folder.join("store.db")];
        assert_eq!(paths(&scan(&folder, &without).expect("a scan")), ["a", "outside/y", "sub/out/z"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_sockets_and_pipes_are_skipped_with_a_reason() {
        let (_dir, folder) = folder(&["a"]);
        std::os::unix::fs::symlink("a", folder.join("link")).expect("a link");
        std::os::unix::fs::symlink("..", folder.join("loop")).expect("a link");
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).expect("a socket");
        let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().expect("mkfifo");
        assert!(made.success());
        let scan = scan(&folder, &[]).expect("a scan");
        let skipped: Vec<_> = scan.skipped.iter().map(|left| (left.path.as_str(), left.reason.as_str())).collect();
        let link = "is a symbolic link";
        assert_eq!(skipped, [("link", link), ("loop", link), ("pipe", "is a pipe"), ("socket", "is a socket")]);
        assert_eq!(paths(&scan), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_no_text_is_found_under_its_own_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let (_dir, folder) = folder(&[]);
        let name = std::ffi::OsStr::from_bytes(b"x\xFE\n");
        fs::write(folder.join(name), "x").expect("a file");
        let scan = scan(&folder, &[]).expect("a scan");
        assert_eq!(paths(&scan), ["x\\xFE\\x0A"]);
        assert!(folder.join(scan.files[0].path.to_path()).exists());
    }

    #[test]
    fn a_missing_folder_is_an_error_and_so_is_a_file() {
        let (_dir, folder) = folder(&["a"]);
        assert!(scan(&folder.join("none"), &[]).is_err());
        assert!(scan(&folder.join("a"), &[]).is_err());
    }
}
