//! What went wrong, as a text and, where the server answered, its SQLSTATE.

use std::fmt;

/// A server, database or connection that could not be had, or a statement that the server refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
    sqlstate: Option<String>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), sqlstate: None }
    }

    pub(crate) fn of_server(sqlstate: String, message: String) -> Self {
        Self { message, sqlstate: Some(sqlstate) }
    }

    /// The five characters of the server's error; `None` when the connection or a program failed.
    pub fn sqlstate(&self) -> Option<&str> {
        self.sqlstate.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sqlstate {
            Some(code) => write!(f, "{} (sqlstate {code})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

/// All that an error shows, its chain of causes included: a test looks in it for what must not be shown.
pub fn shown(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let causes: String = causes.map(|cause| format!(" {cause} {cause:?}")).collect();
    format!("{error} {error:?} {error:#?}{causes}")
}

/// Adds to an error of the system what was being done.
pub(crate) trait During<T> {
    fn during(self, what: &str) -> Result<T, Error>;
}

impl<T> During<T> for std::io::Result<T> {
    fn during(self, what: &str) -> Result<T, Error> {
        self.map_err(|error| Error::new(format!("{what}: {error}")))
    }
}
