//! What surrounds the process: variables, home, the name of its user. A test brings its own.

use std::fmt;
use std::path::{Path, PathBuf};

type Variables = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Where defaults come from.
pub(crate) struct Environment {
    variable: Box<Variables>,
    home: Option<PathBuf>,
    user: Option<String>,
}

impl Environment {
    /// Of this process.
    pub(crate) fn process() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        Self { variable: Box::new(variable), home: std::env::home_dir(), user: whoami::username().ok() }
    }

    /// Of these variables alone, with `HOME` and `USER` among them for the rest.
    #[cfg(test)]
    pub(crate) fn of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let variables: std::collections::BTreeMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let (home, user) = (variables.get("HOME").map(PathBuf::from), variables.get("USER").cloned());
        Self { variable: Box::new(move |name| variables.get(name).cloned()), home, user }
    }

    /// A variable that is set; an empty one is not, as with libpq.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// The home of the user.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The name of the user at the operating system.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}
