//! What is run: the scenarios, each with the SDKs that it can be run with.

use std::fmt;
use std::path::Path;

use crate::scenarios;

/// An SDK in one of its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sdk {
    Python3,
    Python2,
    TypeScript5,
    TypeScript4,
    Rust0,
}

impl Sdk {
    const ALL: [Self; 5] = [Self::Python3, Self::TypeScript5, Self::Python2, Self::TypeScript4, Self::Rust0];

    /// Its folder below that of all SDKs.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Python3 => "python-3.4.0",
            Self::Python2 => "python-2.31.1",
            Self::TypeScript5 => "typescript-5.3.0",
            Self::TypeScript4 => "typescript-4.27.6",
            Self::Rust0 => "rust-0.5.0",
        }
    }

    /// Whether it knows the payload tables of the later ladder. One that does not needs a database that is held at 108.
    pub(crate) const fn reads_split(self) -> bool {
        matches!(self, Self::Python3 | Self::TypeScript5)
    }

    /// Whether it reads and writes `portable_json` with several arguments.
    pub(crate) const fn is_portable(self) -> bool {
        !matches!(self, Self::Rust0)
    }

    /// Whether named arguments reach its workflows.
    pub(crate) const fn takes_named(self) -> bool {
        matches!(self, Self::Python3 | Self::Python2)
    }

    /// Whether its integers are exact beyond 2^53.
    pub(crate) const fn is_exact(self) -> bool {
        !matches!(self, Self::TypeScript5 | Self::TypeScript4)
    }
}

impl fmt::Display for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.folder())
    }
}

/// Whose program makes the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    Ours,
    Theirs,
}

/// How our store keeps the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// At the end of the ladder, payloads in tables of their own.
    Newest,
    /// There too, and payloads of new rows where programs of the older ladder look.
    Inline,
    /// At 108.
    Held,
}

impl Tables {
    const ALL: [Self; 3] = [Self::Newest, Self::Inline, Self::Held];

    /// A word for a command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Inline => "inline",
            Self::Held => "held",
        }
    }

    /// The one of a word.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tables| tables.word() == word)
    }
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Their client enqueues for our executor.
    TheirClient,
    /// We enqueue for their executor.
    OurClient,
    /// Executors of both side by side.
    SideBySide,
    /// The SQL function enqueues for our executor, and their client reads.
    SqlFunction,
}

/// One run on a database of its own.
pub(crate) struct Scenario {
    pub(crate) kind: Kind,
    pub(crate) sdk: Sdk,
    pub(crate) first: First,
    pub(crate) tables: Tables,
}

/// All of them, the smoke part first.
pub(crate) fn all() -> Vec<Scenario> {
    let mut all = Vec::new();
    for sdk in Sdk::ALL {
        for first in [First::Ours, First::Theirs] {
            for kind in [Kind::TheirClient, Kind::OurClient, Kind::SideBySide, Kind::SqlFunction] {
                // The function writes an envelope, which that crate takes for the parameter.
                if kind == Kind::SqlFunction && !sdk.is_portable() {
                    continue;
                }
                let tables = if sdk.reads_split() { Tables::Newest } else { Tables::Held };
                all.push(Scenario { kind, sdk, first, tables });
                // Rows of ours with their payloads inline are met by those that read the tables beside them, too.
                if matches!(kind, Kind::TheirClient | Kind::OurClient) {
                    all.push(Scenario { kind, sdk, first, tables: Tables::Inline });
                }
            }
        }
    }
    all
}

impl Scenario {
    /// The part that fits into every build: the newest SDKs, each order of creation once a kind.
    pub(crate) fn is_smoke(&self) -> bool {
        let first = match self.kind {
            Kind::TheirClient | Kind::SideBySide => First::Ours,
            Kind::OurClient | Kind::SqlFunction => First::Theirs,
        };
        self.sdk.reads_split() && self.first == first && self.tables != Tables::Inline
    }

    /// Runs it. Errors: what was found instead of what was expected.
    pub(crate) async fn run(&self, sdks: &Path, url: &str) -> Result<(), String> {
        let place = scenarios::Place { sdk: self.sdk, first: self.first, tables: self.tables, sdks, url };
        match self.kind {
            Kind::TheirClient => scenarios::their_client(&place).await,
            Kind::OurClient => scenarios::our_client(&place).await,
            Kind::SideBySide => scenarios::side_by_side(&place).await,
            Kind::SqlFunction => scenarios::sql_function(&place).await,
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::TheirClient => "their-client-our-executor",
            Kind::OurClient => "our-client-their-executor",
            Kind::SideBySide => "side-by-side",
            Kind::SqlFunction => "sql-function-our-executor",
        };
        let first = match self.first {
            First::Ours => "our tables",
            First::Theirs => "their tables",
        };
        let tables = match self.tables {
            Tables::Newest => "",
            Tables::Inline => ", payloads inline",
            Tables::Held => ", held at 108",
        };
        write!(f, "{}/{kind}/{first}{tables}", self.sdk)
    }
}
