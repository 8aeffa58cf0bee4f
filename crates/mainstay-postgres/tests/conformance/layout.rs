//! Where the payloads of a run are, by `MAINSTAY_CONFORMANCE_LAYOUT`: in tables of their own unless said.

use mainstay_postgres::{Config, PayloadLayout};

/// What the databases of a run have, and how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Number 125, written as it is.
    Newest,
    /// Number 125, with new inputs in the workflows' rows.
    Inline,
    /// Number 108.
    Held,
}

impl Layout {
    /// The one that the environment names. Panics: for a name that is none.
    pub(crate) fn chosen() -> Self {
        match std::env::var("MAINSTAY_CONFORMANCE_LAYOUT").as_deref() {
            Err(_) | Ok("" | "125") => Self::Newest,
            Ok("inline") => Self::Inline,
            Ok("108") => Self::Held,
            Ok(other) => panic!("MAINSTAY_CONFORMANCE_LAYOUT is {other}: one of 108, 125, inline"),
        }
    }

    /// How a store is opened on it.
    pub(crate) fn config(self, url: String) -> Config {
        let config = Config::new(url);
        match self {
            Self::Newest => config,
            Self::Inline => config.payload_layout(PayloadLayout::Inline),
            Self::Held => config.hold_at_108(),
        }
    }

    /// The number of its databases.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Newest | Self::Inline => 125,
            Self::Held => 108,
        }
    }

    /// The name that the suite's closing line gives the backend.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Newest => "postgres",
            Self::Inline => "postgres, inputs inline",
            Self::Held => "postgres held at 108",
        }
    }
}
