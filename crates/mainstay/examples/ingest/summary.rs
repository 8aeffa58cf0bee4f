//! What a run found: the summary and the result of one file, as they are written.

use serde::{Deserialize, Serialize};

use crate::path::PathText;
use crate::scan::Left;
use crate::words::{Common, Counts};

/// The result of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FileResult<'a> {
    /// Relative to the folder.
    pub(crate) path: &'a PathText,
    /// SHA-256 of its contents, in hexadecimal digits.
    pub(crate) sha256: &'a str,
    /// In bytes.
    pub(crate) bytes: u64,
    /// Its lines.
    pub(crate) lines: u64,
    /// Its words.
    pub(crate) words: u64,
    /// Its twenty commonest words.
    pub(crate) commonest: &'a [Common],
}

/// What a file's workflow returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ingested {
    /// SHA-256 of its contents, in hexadecimal digits.
    pub(crate) sha256: String,
    /// In bytes.
    pub(crate) bytes: u64,
    /// Its lines.
    pub(crate) lines: u64,
    /// Its words.
    pub(crate) words: u64,
}

impl Ingested {
    /// What is told of a file beside its words.
    pub(crate) fn new(sha256: String, counts: &Counts) -> Self {
        Self { sha256, bytes: counts.bytes, lines: counts.lines, words: counts.words }
    }
}

/// One file of the summary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Line {
    path: PathText,
    bytes: u64,
    lines: u64,
    words: u64,
    sha256: String,
}

/// Sums over all ingested files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub(crate) files: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) words: u64,
}

/// The summary of a run. It depends on the folder's contents alone: lists are in order of the paths, and no time and no
/// id is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Sums.
    pub(crate) totals: Totals,
    /// What failed, with its reason.
    pub(crate) failed: Vec<Left>,
    /// What is no file.
    pub(crate) skipped: Vec<Left>,
    /// What was ingested.
    pub(crate) files: Vec<Line>,
}

impl Summary {
    /// The summary of these results; `beside` are failures of the scan.
    pub(crate) fn new(results: Vec<(PathText, Result<Ingested, String>)>, skipped: &[Left], beside: &[Left]) -> Self {
        let mut summary = Self { failed: beside.to_vec(), skipped: skipped.to_vec(), ..Self::default() };
        for (path, result) in results {
            match result {
                Ok(Ingested { sha256, bytes, lines, words }) => {
                    summary.totals.bytes += bytes;
                    summary.totals.lines += lines;
                    summary.totals.words += words;
                    summary.files.push(Line { path, bytes, lines, words, sha256 });
                }
                Err(reason) => summary.failed.push(Left { path, reason }),
            }
        }
        summary.files.sort();
        summary.failed.sort();
        summary.skipped.sort();
        summary.totals.files = summary.files.len() as u64;
        summary.totals.failed = summary.failed.len() as u64;
        summary.totals.skipped = summary.skipped.len() as u64;
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::json;
    use std::path::Path;

    fn text(path: &str) -> PathText {
        PathText::of(Path::new(path))
    }

    fn result(path: &str, words: u64) -> (PathText, Result<Ingested, String>) {
        (text(path), Ok(Ingested { sha256: format!("hash of {path}"), bytes: 10, lines: 2, words }))
    }

    fn left(path: &str) -> Left {
        Left { path: text(path), reason: "cannot be read".to_owned() }
    }

    #[test]
    fn a_summary_is_the_same_in_whatever_order_results_come() {
        let failed = |path| (text(path), Err("not UTF-8 at byte 3".to_owned()));
        let one = vec![result("b", 3), failed("c"), result("a", 4)];
        let other = vec![result("a", 4), result("b", 3), failed("c")];
        let summary = Summary::new(one, &[left("l"), left("k")], &[left("d")]);
        let again = Summary::new(other, &[left("k"), left("l")], &[left("d")]);
        assert_eq!(json(&summary).expect("text"), json(&again).expect("text"));
        let paths: Vec<_> = summary.files.iter().map(|line| line.path.as_str()).collect();
        assert_eq!(paths, ["a", "b"]);
        let failed: Vec<_> = summary.failed.iter().map(|left| left.path.as_str()).collect();
        assert_eq!(failed, ["c", "d"]);
        let totals = Totals { files: 2, failed: 2, skipped: 2, bytes: 20, lines: 4, words: 7 };
        assert_eq!(summary.totals, totals);
    }
}
