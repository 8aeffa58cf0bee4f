//! Where the payloads of a run are, by `MAINSTAY_CONFORMANCE_LAYOUT`: in tables of their own unless said.

use mainstay_postgres::{Config, PayloadLayout, schema_testing};

/// What the databases of a run have, and how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Number 125, written as it is.
    Newest,
    /// Number 125, with new inputs in the workflows' rows.
    Inline,
    /// Number 108.
    Held,
    /// Number 114, to which a peer has migrated: payloads in tables of their own, but no column for an owner's token.
    Between,
}

impl Layout {
    /// The one that the environment names. Panics: for a name that is none.
    pub(crate) fn chosen() -> Self {
        match std::env::var("MAINSTAY_CONFORMANCE_LAYOUT").as_deref() {
            Err(_) | Ok("" | "125") => Self::Newest,
            Ok("inline") => Self::Inline,
            Ok("108") => Self::Held,
            Ok("114") => Self::Between,
            Ok(other) => panic!("MAINSTAY_CONFORMANCE_LAYOUT is {other}: one of 108, 114, 125, inline"),
        }
    }

    /// How a store is opened on it.
    pub(crate) fn config(self, url: String) -> Config {
        let config = Config::new(url);
        match self {
            Self::Newest => config,
            Self::Inline => config.payload_layout(PayloadLayout::Inline),
            // What is beyond 108 is left where it is.
            Self::Held | Self::Between => config.hold_at_108(),
        }
    }

    /// The number of its databases.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Newest | Self::Inline => 125,
            Self::Held => 108,
            Self::Between => 114,
        }
    }

    /// What another program has made of a database before ours opens it.
    pub(crate) fn before(self) -> Option<String> {
        (self == Self::Between).then(|| {
            let statements = schema_testing::statements_to(self.number(), "dbos");
            // The schema is there, and the migrator may make none.
            statements.split_once(';').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
        })
    }

    /// The name that the suite's closing line gives the backend.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Newest => "postgres",
            Self::Inline => "postgres, inputs inline",
            Self::Held => "postgres held at 108",
            Self::Between => "postgres at 114",
        }
    }
}
