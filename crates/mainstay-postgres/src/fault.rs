//! Why a call has failed, before it is known to be of which method.

use std::fmt;

use mainstay_store::{ErrorKind, FieldError, StoreError};

use crate::error::{self, Failure};

/// A failure inside a call.
pub(crate) enum Fault {
    /// The server's, or the transport's.
    Postgres(tokio_postgres::Error),
    /// What was read is not what may stand there; the text names where.
    Unreadable(String),
    /// Decided here.
    Store(ErrorKind, String),
    /// A field of the request.
    Field(FieldError),
    /// A connection could not be had.
    Given(StoreError),
}

impl Fault {
    /// A stored value that cannot be read.
    pub(crate) fn unreadable(column: &str, what: impl std::fmt::Display) -> Self {
        Self::Unreadable(format!("{column}: {what}"))
    }

    /// The failure as one of the method `op`.
    pub(crate) fn of(self, op: &'static str) -> StoreError {
        match self {
            Self::Postgres(source) => error::failed(op, source),
            Self::Unreadable(what) => StoreError::new(ErrorKind::Corrupt, op).with_source(what),
            Self::Store(kind, what) => StoreError::new(kind, op).with_source(what),
            Self::Field(field) => StoreError::field_error(op, field),
            Self::Given(given) if given.op() == op => given,
            Self::Given(given) => StoreError::new(given.kind(), op).with_source(given),
        }
    }

    /// The server's error, where it is one.
    pub(crate) const fn postgres(&self) -> Option<&tokio_postgres::Error> {
        match self {
            Self::Postgres(error) => Some(error),
            _ => None,
        }
    }
}

/// Shows of the server's error what an error may show: the driver's own text has the row that broke a rule.
impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(error) => f.debug_tuple("Postgres").field(&Failure::of(error)).finish(),
            Self::Unreadable(what) => f.debug_tuple("Unreadable").field(what).finish(),
            Self::Store(kind, what) => f.debug_tuple("Store").field(kind).field(what).finish(),
            Self::Field(field) => f.debug_tuple("Field").field(field).finish(),
            Self::Given(given) => f.debug_tuple("Given").field(given).finish(),
        }
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<FieldError> for Fault {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}
