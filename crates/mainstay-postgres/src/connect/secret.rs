//! [`Secret`]: a text that is never shown and is wiped when it is dropped.

use std::fmt;

use zeroize::Zeroizing;

/// A password, or a text that may contain one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Zeroizing<String>);

impl Secret {
    pub(crate) fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself, for the one place that must send or read it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::new("CANARY-7f3a".into());
        assert_eq!((format!("{secret}"), format!("{secret:#?}")), ("***".into(), "***".into()));
        assert_eq!(secret.reveal(), "CANARY-7f3a");
    }
}
