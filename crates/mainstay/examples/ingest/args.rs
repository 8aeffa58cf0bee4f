//! The command line.

use std::path::{Path, PathBuf};

use clap::Parser;

/// Counts the words of every file of a folder. Killed at any moment and run again, it goes on where it was.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(
    name = "ingest",
    after_help = "Ends with 0 when all files were ingested, 1 when some failed, 2 when it cannot run.\n\n\
        Run again after a kill, it goes on at once with a SQLite file. PostgreSQL cannot tell that a process is dead before \
        its lease has run out: what was in its hands goes on within about 10 seconds, everything else at once."
)]
pub(crate) struct Args {
    /// Folder whose files are read
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Folder of the results; made if it is missing
    #[arg(long, value_name = "DIR", default_value = "./ingest-out")]
    pub(crate) out: PathBuf,
    /// Where progress is stored: sqlite:/path/to/file or postgres://user@host/database [default: a SQLite file in DIR]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Name of this machine in a store that others use, too: a file is read where it was listed [default: its host name]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Files that are worked on at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) workers: u32,
    /// Appends a line at the start and the end of every step to this file
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) ledger: Option<PathBuf>,
    /// How long a step that writes waits between its two halves, in milliseconds
    #[arg(long, value_name = "MS", hide = true, default_value_t = 0)]
    pub(crate) pause: u64,
    /// How long a process that shows no sign of life counts as alive, in milliseconds
    #[arg(long, value_name = "MS", hide = true, value_parser = clap::value_parser!(u64).range(40..))]
    pub(crate) lease: Option<u64>,
    /// Prints rate, waiting times and memory at the end
    #[arg(long, hide = true)]
    pub(crate) figures: bool,
}

impl Args {
    /// The store's address. Errors: the folder of results cannot stand in one.
    pub(crate) fn url(&self, out: &Path) -> Result<String, String> {
        if let Some(url) = &self.store {
            return Ok(url.clone());
        }
        let file = out.join("ingest.db");
        let text = file.to_str().ok_or_else(|| format!("{} is no text: name a store with --store", file.display()))?;
        Ok(format!("sqlite:{text}"))
    }

    /// What tells this machine's folders from those of others that use the store; nothing where the store is a file or gone
    /// with the process. Errors: the machine has no name.
    pub(crate) fn host(&self, url: &str) -> Result<Option<String>, String> {
        if url.starts_with("sqlite:") || url.starts_with("memory:") {
            return Ok(None);
        }
        let own = || {
            whoami::hostname().map_err(|error| format!("this machine has no name ({error}): give it one with --host"))
        };
        self.host.clone().map_or_else(own, Ok).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(line.split(' '))
    }

    #[test]
    fn a_folder_is_enough() {
        let args = parse("ingest docs").expect("arguments");
        assert_eq!((args.folder, args.out, args.workers), ("docs".into(), "./ingest-out".into(), 8));
        let args = parse("ingest docs --out /x").expect("arguments");
        assert_eq!(args.url(&args.out), Ok("sqlite:/x/ingest.db".to_owned()));
    }

    #[test]
    fn a_store_of_ones_own_is_taken_as_it_is() {
        let args = parse("ingest docs --store memory: --workers 3").expect("arguments");
        assert_eq!((args.url(&args.out), args.workers), (Ok("memory:".to_owned()), 3));
    }

    #[test]
    fn a_shared_store_tells_machines_apart() {
        let args = parse("ingest docs").expect("arguments");
        assert_eq!((args.host("sqlite:/x"), args.host("memory:")), (Ok(None), Ok(None)));
        assert!(args.host("postgres://h/d").is_ok_and(|host| host.is_some_and(|host| !host.is_empty())));
        let args = parse("ingest docs --host one").expect("arguments");
        assert_eq!(args.host("postgres://h/d"), Ok(Some("one".to_owned())));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "ingest",
            "ingest a b",
            "ingest a --workers 0",
            "ingest a --workers x",
            "ingest a --what",
            "ingest a --lease 0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
