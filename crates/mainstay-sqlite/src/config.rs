//! What a user may choose when opening a file.

use std::path::PathBuf;
use std::time::Duration;

/// How a file is opened.
///
/// ```
/// use mainstay_sqlite::{Config, Synchronous};
/// let config = Config::new("shop.db").synchronous(Synchronous::Normal).readers(4);
/// assert_eq!(config.readers, 4);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The file; made if it is missing, in a directory that exists.
    pub path: PathBuf,
    /// When a commit is on the disk.
    pub synchronous: Synchronous,
    /// How long a call waits for a file that another process holds, before it fails as `Unavailable`. 25 s, so that it is
    /// answered before the usual deadline of 30 s of a call.
    pub patience: Duration,
    /// How long a claim waits for it, before it answers `Contended`. 250 ms.
    pub claim_patience: Duration,
    /// Connections that read, each on a thread; at least 1. 2.
    pub readers: usize,
    /// Whether hints are dropped instead of published, to prove that all works without.
    pub silent: bool,
}

impl Config {
    /// The defaults for a file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            synchronous: Synchronous::Full,
            patience: Duration::from_secs(25),
            claim_patience: Duration::from_millis(250),
            readers: 2,
            silent: false,
        }
    }

    /// Sets the field of this name.
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// Sets the field of this name.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the field of this name.
    #[must_use]
    pub fn claim_patience(mut self, patience: Duration) -> Self {
        self.claim_patience = patience;
        self
    }

    /// Sets the field of this name.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers;
        self
    }

    /// Sets the field of this name.
    #[must_use]
    pub fn silent(mut self, silent: bool) -> Self {
        self.silent = silent;
        self
    }
}

impl From<&str> for Config {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

impl From<PathBuf> for Config {
    fn from(path: PathBuf) -> Self {
        Self::new(path)
    }
}

/// When a commit is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Before it is answered: it survives a loss of power. Group commit keeps this cheap under load.
    #[default]
    Full,
    /// Some time after: it survives the end of the process, and the last ones may be lost with the power.
    Normal,
}

impl Synchronous {
    pub(crate) const fn pragma(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}
