//! What surrounds the process: variables, home, the name of its user. A test brings its own.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use mainstay_store::FieldError;

type Variables = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// Where defaults come from.
pub(crate) struct Environment {
    variable: Box<Variables>,
    home: Option<PathBuf>,
    user: Option<String>,
}

impl Environment {
    /// Of this process.
    pub(crate) fn process() -> Self {
        let variable = |name: &str| std::env::var_os(name);
        Self { variable: Box::new(variable), home: std::env::home_dir(), user: whoami::username().ok() }
    }

    /// Of these variables alone, with `HOME` and `USER` among them for the rest.
    #[cfg(test)]
    pub(crate) fn of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let variables: std::collections::BTreeMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let (home, user) = (variables.get("HOME").map(PathBuf::from), variables.get("USER").cloned());
        Self { variable: Box::new(move |name| variables.get(name).map(OsString::from)), home, user }
    }

    /// A variable that is set, be it to nothing: what that means depends on the key.
    ///
    /// Errors: one that is no text is refused, for what it asks would be forgotten.
    pub(crate) fn variable(&self, name: &str) -> Result<Option<String>, FieldError> {
        let text = |value: OsString| value.into_string().map_err(|_| FieldError::new(name, "is not UTF-8"));
        (self.variable)(name).map(text).transpose()
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn a_variable_that_is_no_text_is_refused_and_not_taken_for_none() {
        let variable = |name: &str| (name == "PGSSLMODE").then(|| OsString::from_vec(b"require\xff".to_vec()));
        let environment = Environment { variable: Box::new(variable), home: None, user: None };
        assert_eq!(environment.variable("PGSSLMODE").expect_err("no text").field, "PGSSLMODE");
        assert_eq!(environment.variable("PGPORT").expect("not set"), None);
    }
}
