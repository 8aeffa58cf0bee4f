//! A protocol for tests: which step of which workflow started and ended in which process.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Appends a line at the start of a step and one at its end, or does nothing when there is no file for it.
///
/// Each line is one write to a file opened for appending, so that lines of several processes are never mixed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Option<Arc<File>>);

impl Ledger {
    /// Opens the file, or makes it.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path).map(Arc::new);
        path.map(open).transpose().map(Self)
    }

    /// Writes that a step begins.
    pub(crate) fn starts(&self, id: &str, step: &str) -> io::Result<()> {
        self.write("S", id, step)
    }

    /// Writes that a step is through; its checkpoint comes after this.
    pub(crate) fn ends(&self, id: &str, step: &str) -> io::Result<()> {
        self.write("E", id, step)
    }

    fn write(&self, what: &str, id: &str, step: &str) -> io::Result<()> {
        let line = format!("{what} {} {id} {step}\n", std::process::id());
        self.0.as_deref().map_or(Ok(()), |mut file| file.write_all(line.as_bytes()))
    }
}
