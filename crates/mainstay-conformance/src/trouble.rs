//! Trouble that a case asks a backend for: what no request alone brings about.

use std::any::Any;
use std::fmt;

use mainstay_store::ErrorKind;
use mainstay_store::wrap::Method;

/// What a backend under test can be brought into, for as long as a case wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// Every call of this method answers an error of this kind; other methods may fail alike.
    ///
    /// The call of a case has something to write where its method writes. `Unavailable` may come before or after the call
    /// was executed; after any other kind nothing of it may be written.
    Fails(ErrorKind, Method),
    /// The stored row of this registered queue cannot be read.
    MalformedQueue(&'static str),
    /// The stored row of this enqueued workflow cannot be read beyond its id and what a claim selects by.
    MalformedWorkflow(&'static str),
}

/// Trouble that lasts until this is dropped.
pub type Lasting = Box<dyn Any + Send>;

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fails(kind, method) => write!(f, "{kind} at {method}"),
            Self::MalformedQueue(_) => f.write_str("malformed queue"),
            Self::MalformedWorkflow(_) => f.write_str("malformed workflow"),
        }
    }
}
