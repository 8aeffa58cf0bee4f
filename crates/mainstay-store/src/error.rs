//! What a store answers when a question was not answered.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Result of a store method.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Kind of a failure; callers match on it and never on a vendor's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store cannot be reached, or its answer was lost: the call may or may not have been executed.
    Unavailable,
    /// A lock conflict outside a claim; nothing was written.
    Contended,
    /// The deadline of the call passed; it may still be executed.
    Timeout,
    /// The store refused the caller's rights.
    Denied,
    /// No space is left; nothing was written.
    Full,
    /// Stored data cannot be read.
    Corrupt,
    /// The backend lacks the capability.
    Unsupported,
    /// A request field is not acceptable; nothing was written. [`StoreError::field`] names it.
    Invalid,
    /// What the request names does not exist.
    NotFound,
    /// A rule of the contract was broken on this side.
    Bug,
}

impl ErrorKind {
    /// Whether the call may have been executed although it failed.
    #[must_use]
    pub const fn outcome_unknown(self) -> bool {
        matches!(self, Self::Unavailable | Self::Timeout)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "unavailable",
            Self::Contended => "contended",
            Self::Timeout => "timed out",
            Self::Denied => "denied",
            Self::Full => "full",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::Invalid => "invalid",
            Self::NotFound => "not found",
            Self::Bug => "bug",
        })
    }
}

/// A field that no backend may accept, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// Path of the field in its request, such as `submit.id`.
    pub field: String,
    /// What is wrong with it, without the value itself.
    pub detail: String,
}

impl FieldError {
    /// Names a field and what is wrong with it.
    #[must_use]
    pub fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), detail: detail.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.detail)
    }
}

impl StdError for FieldError {}

/// A failed store call: its kind, the method, and what lies beneath.
///
/// ```
/// use mainstay_store::{ErrorKind, StoreError};
/// let error = StoreError::invalid("commit", "submit.id", "is empty");
/// assert_eq!(error.kind(), ErrorKind::Invalid);
/// assert_eq!(error.to_string(), "commit: invalid: submit.id: is empty");
/// ```
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: ErrorKind,
    op: &'static str,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl StoreError {
    /// A failure of the method `op` without a cause.
    #[must_use]
    pub const fn new(kind: ErrorKind, op: &'static str) -> Self {
        Self { kind, op, source: None }
    }

    /// Adds what caused the failure; it must not carry a password.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// A field of a request of the method `op` that is not acceptable.
    #[must_use]
    pub fn invalid(op: &'static str, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::field_error(op, FieldError::new(field, detail))
    }

    /// The same from a [`FieldError`].
    #[must_use]
    pub fn field_error(op: &'static str, error: FieldError) -> Self {
        Self::new(ErrorKind::Invalid, op).with_source(error)
    }

    /// A missing capability; `what` names it.
    #[must_use]
    pub fn unsupported(op: &'static str, what: &'static str) -> Self {
        Self::new(ErrorKind::Unsupported, op).with_source(what)
    }

    /// The kind, for matching.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The store method that failed, such as `queue_claim`.
    #[must_use]
    pub const fn op(&self) -> &'static str {
        self.op
    }

    /// The field that an `Invalid` error names.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        let source = self.source.as_deref()?;
        source.downcast_ref::<FieldError>().map(|error| error.field.as_str())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.op, self.kind)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
