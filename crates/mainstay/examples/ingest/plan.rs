//! Which workflows a run is made of: the ids of its files, and its own.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::path::PathText;
use crate::scan::{Found, Left, Scan};

/// Bytes of a hash that make an id.
const ID: usize = 16;

/// Where a run reads and writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The folder that is read.
    pub(crate) folder: PathText,
    /// The folder of the results.
    pub(crate) out: PathText,
    /// The machine, where the store is not on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
}

impl Place {
    fn texts(&self) -> impl Iterator<Item = &str> {
        [self.folder.as_str(), self.out.as_str()].into_iter().chain(self.host.as_deref())
    }

    /// What rows of this place are bound to where others use the store, so that only processes there take them.
    pub(crate) fn version(&self) -> Option<String> {
        self.host.is_some().then(|| format!("ingest-{}", hash(std::iter::once("place").chain(self.texts()))))
    }
}

/// A file of a run, and the workflow that ingests it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Relative to the folder.
    pub(crate) path: PathText,
    /// Id of its workflow.
    pub(crate) id: String,
}

/// All that a run has to do and to report, in order of the paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct List {
    /// Where.
    pub(crate) place: Place,
    /// Files to be ingested.
    pub(crate) files: Vec<Job>,
    /// What is no file.
    pub(crate) skipped: Vec<Left>,
    /// What the scan could not read.
    pub(crate) unread: Vec<Left>,
}

impl List {
    /// The list of a scan, with the ids of its files as they are now.
    pub(crate) fn new(place: Place, scan: &Scan, ids: impl Iterator<Item = String>) -> Self {
        let job = |(found, id): (&Found, String)| Job { path: found.path.clone(), id };
        let files = scan.files.iter().zip(ids).map(job).collect();
        Self { place, files, skipped: scan.skipped.clone(), unread: scan.unread.clone() }
    }

    /// The run's id: a hash of the sorted ids of its files, and of what is reported beside them.
    pub(crate) fn run_id(&self) -> String {
        let mut ids: Vec<&str> = self.files.iter().map(|job| job.id.as_str()).collect();
        ids.sort_unstable();
        let beside = self.skipped.iter().chain(&self.unread);
        let beside = beside.flat_map(|left| ["left", left.path.as_str(), left.reason.as_str()]);
        hash(std::iter::once("run").chain(self.place.texts()).chain(ids).chain(beside))
    }
}

/// A file's id: a hash of its path, of where its result goes, of its size and of the time of its last change.
pub(crate) fn file_id(place: &Place, found: &Found) -> String {
    let (size, mtime) = (found.size.to_string(), found.mtime.to_string());
    hash(std::iter::once("file").chain(place.texts()).chain([found.path.as_str(), &size, &mtime]))
}

/// A short hash of some texts, which are not run together.
fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hex(&hasher.finalize()[..ID])
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How a workflow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is none of this id.
    Never,
    /// It waits or runs.
    Open,
    /// It ended well.
    Done,
    /// It ended otherwise.
    Failed,
    /// It ended well, but its result is there no more.
    Lost,
}

impl State {
    /// Whether another is to be started in its place.
    pub(crate) fn is_to_be_tried_again(self) -> bool {
        matches!(self, Self::Failed | Self::Lost)
    }
}

/// The latest of the workflows `<base>`, `<base>-r1`, `<base>-r2` …
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Latest {
    base: String,
    number: u32,
    /// How it stands.
    pub(crate) state: State,
}

impl Latest {
    /// None exists as far as is known.
    pub(crate) fn never(base: String) -> Self {
        Self { base, number: 0, state: State::Never }
    }

    /// Its id; the first one's when there is none.
    pub(crate) fn id(&self) -> String {
        self.numbered(self.number)
    }

    /// The id with this number.
    pub(crate) fn numbered(&self, number: u32) -> String {
        if number == 0 { self.base.clone() } else { format!("{}-r{number}", self.base) }
    }

    /// The id of the one that is to be started next.
    pub(crate) fn next(&self) -> String {
        if self.state == State::Never { self.id() } else { self.numbered(self.number + 1) }
    }

    /// Notes that the one with this number is there.
    pub(crate) fn found(&mut self, number: u32, state: State) {
        (self.number, self.state) = (number, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn text(path: &str) -> PathText {
        PathText::of(Path::new(path))
    }

    fn place() -> Place {
        Place { folder: text("/in"), out: text("/out"), host: None }
    }

    fn found(path: &str, size: u64, mtime: i128) -> Found {
        Found { path: text(path), size, mtime }
    }

    #[test]
    fn an_id_depends_on_place_path_size_and_time_alone() {
        let other = Place { folder: text("/in2"), ..place() };
        let elsewhere = Place { out: text("/out2"), ..place() };
        let shared = |host: &str| Place { host: Some(host.to_owned()), ..place() };
        let ids: BTreeSet<String> = [
            file_id(&place(), &found("a", 1, 2)),
            file_id(&place(), &found("b", 1, 2)),
            file_id(&place(), &found("a", 2, 2)),
            file_id(&place(), &found("a", 1, -2)),
            file_id(&place(), &found("a", 12, 2)),
            file_id(&other, &found("a", 1, 2)),
            file_id(&elsewhere, &found("a", 1, 2)),
            file_id(&shared("one"), &found("a", 1, 2)),
            file_id(&shared("two"), &found("a", 1, 2)),
        ]
        .into();
        assert_eq!(ids.len(), 9);
        assert!(
            ids.iter().all(|id| id.len() == 2 * ID && id.chars().all(|digit| digit.is_ascii_hexdigit())),
            "{ids:?}"
        );
        assert!(ids.contains(&file_id(&place(), &found("a", 1, 2))));
    }

    #[test]
    fn rows_of_a_shared_store_are_bound_to_machine_and_folders() {
        let on = |host: &str, place: Place| Place { host: Some(host.to_owned()), ..place }.version();
        let elsewhere = Place { out: text("/out2"), ..place() };
        let versions = [on("one", place()), on("two", place()), on("one", elsewhere)];
        assert_eq!(BTreeSet::from(versions.clone()).len(), 3);
        assert_eq!((place().version(), on("one", place())), (None, versions[0].clone()));
    }

    #[test]
    fn a_runs_id_is_of_the_set_of_its_files_and_of_what_it_reports() {
        let list = |ids: &[&str], skipped: &[&str]| {
            let files = ids.iter().map(|id| found(id, 1, 1)).collect();
            let left = |path: &&str| Left { path: text(path), reason: "is a socket".to_owned() };
            let scan = Scan { files, skipped: skipped.iter().map(left).collect(), unread: Vec::new() };
            List::new(place(), &scan, ids.iter().map(|id| (*id).to_owned())).run_id()
        };
        assert_eq!(list(&["a", "b"], &[]), list(&["b", "a"], &[]));
        let ids = [list(&[], &[]), list(&["a"], &[]), list(&["a", "b"], &[]), list(&["ab"], &[]), list(&["a"], &["s"])];
        assert_eq!(BTreeSet::from(ids).len(), 5);
    }

    #[test]
    fn the_next_number_follows_the_latest() {
        let mut latest = Latest::never("x".to_owned());
        assert_eq!((latest.id(), latest.next()), ("x".to_owned(), "x".to_owned()));
        latest.found(0, State::Failed);
        assert_eq!((latest.id(), latest.next()), ("x".to_owned(), "x-r1".to_owned()));
        latest.found(9, State::Done);
        assert_eq!((latest.id(), latest.next()), ("x-r9".to_owned(), "x-r10".to_owned()));
    }
}
