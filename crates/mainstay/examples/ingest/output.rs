//! The folder of results: where everything stands in it, and how a file gets there whole or not at all.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use mainstay_store::Timestamp;
use serde::Serialize;
use tokio::fs;
use tokio::io::AsyncWriteExt;

use crate::path::PathText;

/// Longest name of a file on the usual file systems, in bytes.
const NAME: usize = 255;

/// Bytes kept of a name that is too long with its ending.
const KEPT: usize = 180;

/// Age at which a process no longer needs what it has prepared beside a place; it does so within moments.
const OLD: Duration = Duration::from_secs(3_600);

/// The folder of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Out(PathBuf);

impl Out {
    /// A folder that exists, by its real path.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// The result of an ingested file, `files/<relative path>.json`.
    ///
    /// Two files never share one: a folder whose name ends like a result gets a `~` more, and a name that is too long with
    /// its ending is cut and ends with the file's id.
    pub(crate) fn file(&self, path: &PathText, id: &str) -> PathBuf {
        let relative = path.to_path();
        let mut result = self.0.join("files");
        result.extend(relative.parent().into_iter().flat_map(Path::iter).map(folder_name));
        result.join(file_name(relative.file_name().unwrap_or_default(), id))
    }

    /// The summary.
    pub(crate) fn summary(&self) -> PathBuf {
        self.0.join("summary.json")
    }

    /// Which run the summary is to be of.
    pub(crate) fn current(&self) -> PathBuf {
        self.0.join("run.json")
    }

    /// The list of a run's files.
    pub(crate) fn list(&self, run: &str) -> PathBuf {
        self.0.join("runs").join(format!("{run}.json"))
    }

    /// Where a workflow prepares a file. One that a killed process left behind is written again by the next.
    pub(crate) fn temporary(&self, id: &str) -> PathBuf {
        self.0.join("tmp").join(id)
    }

    /// Where a process prepares a file that other processes may prepare as well.
    pub(crate) fn own_temporary(&self, place: &Path) -> PathBuf {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        self.temporary(&format!("{name}.{}", std::process::id()))
    }

    /// Removes what killed processes have prepared for themselves, as far as that can be done.
    pub(crate) fn sweep(&self, now: Timestamp) {
        for entry in std::fs::read_dir(self.0.join("tmp")).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|meta| meta.modified()).ok();
            let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let is_old = modified.is_some_and(|time| time + OLD < now.since(Timestamp::EPOCH));
            if is_old && entry.file_name().to_string_lossy().contains(".json.") {
                // What cannot be removed takes space alone.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn folder_name(name: &OsStr) -> OsString {
    let mut result = name.to_owned();
    let bytes = name.as_encoded_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'~').map_or(0, |last| last + 1);
    if bytes[..end].ends_with(b".json") {
        result.push("~");
    }
    result
}

fn file_name(name: &OsStr, id: &str) -> OsString {
    let mut result = name.to_owned();
    if name.len() + ".json".len() > NAME {
        let text = name.to_string_lossy();
        result = format!("{}~{id}", &text[..text.floor_char_boundary(KEPT)]).into();
    }
    result.push(".json");
    result
}

/// A value as the text of a file: indented JSON, and the end of the last line.
pub(crate) fn json<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

/// Prepares a file beside its place, with all its bytes on the disk.
pub(crate) async fn stage(temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    make(temporary.parent().unwrap_or(Path::new("."))).await?;
    let mut file = fs::File::create(temporary).await?;
    file.write_all(bytes).await?;
    file.sync_all().await
}

/// Moves a prepared file to its place; from then on a loss of power does not undo it.
pub(crate) async fn publish(temporary: &Path, place: &Path) -> io::Result<()> {
    let folder = place.parent().unwrap_or(Path::new("."));
    make(folder).await?;
    fs::rename(temporary, place).await?;
    sync(folder).await
}

/// Makes a folder and those it stands in.
async fn make(folder: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut at = Some(folder);
    while let Some(folder) = at.filter(|folder| !folder.is_dir()) {
        missing.push(folder);
        at = folder.parent();
    }
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder).await {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => sync(folder.parent().unwrap_or(folder)).await?,
        }
    }
    Ok(())
}

/// Brings the names in a folder to the disk, where folders can be opened.
async fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        fs::File::open(folder).await?.sync_all().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tempfile::TempDir;

    const ID: &str = "0123456789abcdef";

    fn place(path: &str) -> String {
        let out = Out::new("/out".into());
        out.file(&PathText::of(Path::new(path)), ID).to_str().expect("text").to_owned()
    }

    #[test]
    fn a_result_stands_under_the_path_of_its_file() {
        assert_eq!(place("a/b.txt"), "/out/files/a/b.txt.json");
        assert_eq!(place("a.json"), "/out/files/a.json.json");
        assert_eq!(place("x~/y~"), "/out/files/x~/y~.json");
    }

    #[test]
    fn no_result_is_in_the_way_of_another() {
        // `a` beside `a.json/b` would want `a.json` as a file and as a folder.
        let paths = ["a", "a.json/b", "a.json~/b", "a.json~~/b", "a.json", "a.json~", "a/b"];
        let places: BTreeSet<String> = paths.iter().map(|path| place(path)).collect();
        assert_eq!(places.len(), paths.len());
        for place in &places {
            let mut above = Path::new(place).ancestors().skip(1);
            assert!(above.all(|folder| !places.contains(folder.to_str().expect("text"))), "{place} in {places:?}");
        }
    }

    #[test]
    fn a_name_at_the_limit_still_fits_with_its_ending() {
        for name in ["x".repeat(250), "x".repeat(251), "ä".repeat(127)] {
            let place = place(&format!("d/{name}"));
            let result = place.rsplit('/').next().expect("a name");
            assert!(result.len() <= NAME && result.ends_with(".json"), "{result}");
            assert_eq!(result.contains(ID), name.len() > 250, "{result}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_stay_as_they_are() {
        use std::os::unix::ffi::OsStrExt;
        let path = PathText::of(Path::new(OsStr::from_bytes(b"d\xFF/f\xFE")));
        let place = Out::new("/out".into()).file(&path, ID);
        assert_eq!(place.as_os_str().as_bytes(), b"/out/files/d\xFF/f\xFE.json");
    }

    #[tokio::test]
    async fn a_file_is_replaced_as_a_whole_and_nothing_is_left_beside() {
        let dir = TempDir::new().expect("a folder");
        let out = Out::new(dir.path().to_owned());
        let place = out.file(&PathText::of(Path::new("a/b/c")), ID);
        for text in ["a long first text", "short"] {
            // What a process left that was killed.
            stage(&out.temporary(ID), b"half of something that is longer than all").await.expect("staged");
            stage(&out.temporary(ID), text.as_bytes()).await.expect("staged");
            publish(&out.temporary(ID), &place).await.expect("published");
            assert_eq!(std::fs::read_to_string(&place).expect("the file"), text);
        }
        assert_eq!(std::fs::read_dir(dir.path().join("tmp")).expect("a folder").count(), 0);
    }
}
