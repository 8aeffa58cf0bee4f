//! The ledger of `ingest`, read line by line: which step of which workflow began and ended in which process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A step of a workflow.
pub(crate) type Step = (String, String);

/// Name of the step that writes a summary.
pub(crate) const SUMMARY: &str = "summary";

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Whether the step began; else it ended.
    pub(crate) begins: bool,
    /// The process.
    pub(crate) process: u32,
    /// Workflow and step.
    pub(crate) step: Step,
}

fn parse(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(' ').collect();
    let [what @ ("S" | "E"), process, id, step] = words[..] else { return None };
    let step = (id.to_owned(), step.to_owned());
    Some(Line { begins: what == "S", process: process.parse().ok()?, step })
}

/// The ledger as it grows.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    read: u64,
    /// All whole lines that were read.
    pub(crate) lines: Vec<Line>,
}

impl Journal {
    /// Nothing was read yet; the file may come later.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), read: 0, lines: Vec::new() }
    }

    /// Reads what was appended since the last time. A last line without its end is left for the next time.
    pub(crate) fn refresh(&mut self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        file.seek(SeekFrom::Start(self.read)).expect("a place in the ledger");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("the ledger");
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        let lines = text[..whole].lines();
        self.lines.extend(lines.map(|line| parse(line).unwrap_or_else(|| panic!("no line of a ledger: {line:?}"))));
    }

    /// Steps that began in a process and have not ended there.
    pub(crate) fn open_in(&self, process: u32) -> BTreeSet<&Step> {
        let mut open = BTreeSet::new();
        for line in self.lines.iter().filter(|line| line.process == process) {
            if line.begins {
                open.insert(&line.step);
            } else {
                open.remove(&line.step);
            }
        }
        open
    }

    /// Steps that began after the first `from` lines, in their order.
    pub(crate) fn begun(&self, from: usize) -> impl Iterator<Item = &Line> {
        self.lines[from..].iter().filter(|line| line.begins)
    }

    /// All workflows that are named.
    pub(crate) fn workflows(&self) -> BTreeSet<String> {
        self.lines.iter().map(|line| line.step.0.clone()).collect()
    }

    /// No process runs a step twice: it knows what it has done.
    pub(crate) fn assert_once_in_each_process(&self) {
        let mut seen = BTreeSet::new();
        for line in self.begun(0) {
            assert!(seen.insert((line.process, &line.step)), "{line:?} ran twice in one process");
        }
    }
}

#[test]
fn a_ledger_is_read_as_it_grows_and_a_torn_line_waits_for_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger");
    let mut journal = Journal::new(&path);
    journal.refresh();
    assert!(journal.lines.is_empty());
    std::fs::write(&path, "S 7 a hash\nS 8 b hash\nE 7 a ha").expect("a ledger");
    journal.refresh();
    assert_eq!((journal.lines.len(), journal.open_in(7).len()), (2, 1));
    std::fs::write(&path, "S 7 a hash\nS 8 b hash\nE 7 a hash\nS 7 a count\n").expect("a ledger");
    journal.refresh();
    assert_eq!((journal.lines.len(), journal.begun(2).count()), (4, 1));
    let open: Vec<_> = journal.open_in(7).into_iter().map(|step| step.1.as_str()).collect();
    assert_eq!(open, ["count"]);
}
