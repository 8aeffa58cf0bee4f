//! What a private server is started with.

use crate::binaries::Binaries;

/// Settings of a private server. By default it is fast and forgets everything when the machine stops.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) binaries: Option<Binaries>,
    pub(crate) durable: bool,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) hba: Option<String>,
}

impl Options {
    /// A fast server of the binaries found.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes these programs instead of looking for some.
    #[must_use]
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = Some(binaries);
        self
    }

    /// Leaves fsync, synchronous_commit and full_page_writes on and puts the data on a disk.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Adds a line of configuration, such as `shared_preload_libraries`; the last one of a name counts.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a file, such as `server.key`, into the data directory, readable for the server alone. Settings name it
    /// by its bare name.
    #[must_use]
    pub fn file(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.to_owned(), content.into()));
        self
    }

    /// Replaces `pg_hba.conf` for connections by TCP. The superuser keeps trust on the unix socket, by which this
    /// crate's own connections come.
    #[must_use]
    pub fn hba(mut self, lines: &str) -> Self {
        self.hba = Some(lines.to_owned());
        self
    }

    /// Everything that goes to the command line, the caller's settings last.
    pub(crate) fn all_settings(&self) -> Vec<(&str, &str)> {
        let mut all = vec![("listen_addresses", "127.0.0.1"), ("max_connections", "300"), ("lc_messages", "C")];
        if !self.durable {
            all.extend([("fsync", "off"), ("synchronous_commit", "off"), ("full_page_writes", "off")]);
        }
        all.extend(self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        all
    }
}
