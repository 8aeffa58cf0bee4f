//! Errors that the engine makes. Their messages name ids, types and fields, never a payload or an address.

use std::sync::Arc;

use mainstay_store::{ErrorKind as StoreKind, FieldError, StoreError, WorkflowId};
use serde_json::{Value, json};

use super::{Error, ErrorKind};

/// The code of every error that the engine made: names like `Timeout` are common among applications too.
pub(super) const CODE: &str = "mainstay";

impl Error {
    /// An argument or an input that cannot be encoded or decoded.
    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self::made(ErrorKind::BadInput, message)
    }

    /// A result that cannot be encoded, or a recorded one that cannot be decoded.
    pub(crate) fn bad_output(message: impl Into<String>) -> Self {
        Self::made(ErrorKind::BadOutput, message)
    }

    /// A body that panicked.
    pub(crate) fn panic(message: impl Into<String>) -> Self {
        Self::made(ErrorKind::Panic, message)
    }

    /// Something that did not end within the limit it was given.
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::made(ErrorKind::Timeout, message)
    }

    /// A call in the wrong place, a wrong argument, a name that is not registered.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::made(ErrorKind::Refused, message)
    }

    /// An awaited workflow that was cancelled.
    pub(crate) fn cancelled(id: &WorkflowId) -> Self {
        Self::made(ErrorKind::Cancelled, format!("workflow {id} was cancelled")).about(id)
    }

    /// An awaited workflow that was set aside.
    pub(crate) fn parked(id: &WorkflowId, reason: &str) -> Self {
        Self::made(ErrorKind::Parked, format!("workflow {id} is parked: {reason}")).about(id)
    }

    /// A workflow that does not exist.
    pub(crate) fn not_found(id: &WorkflowId) -> Self {
        Self::made(ErrorKind::NotFound, format!("there is no workflow {id}")).about(id)
    }

    /// An id of another function, or a held deduplication key.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::made(ErrorKind::Conflict, message)
    }

    /// A call of an engine that has been shut down.
    pub(crate) fn stopped() -> Self {
        Self::made(ErrorKind::Stopped, "the engine has been shut down, or the runtime that launched it has ended")
    }

    /// Code that does not ask for what is recorded.
    pub(crate) fn mismatch(message: impl Into<String>) -> Self {
        Self::made(ErrorKind::Mismatch, message)
    }

    /// A broken rule of ours.
    pub(crate) fn bug(message: impl Into<String>) -> Self {
        Self::made(ErrorKind::Bug, message)
    }

    /// A failed call of a store, by its kind.
    pub(crate) fn store(error: StoreError) -> Self {
        let kind = match error.kind() {
            // A right is given by somebody, not by waiting: as at the opening.
            StoreKind::Invalid | StoreKind::Unsupported | StoreKind::Denied => ErrorKind::Refused,
            StoreKind::NotFound => ErrorKind::NotFound,
            StoreKind::Corrupt | StoreKind::Bug => ErrorKind::Bug,
            // Space, which an operator mends, ends like an outage.
            _ => ErrorKind::Unavailable,
        };
        Self::of_store(kind, error)
    }

    /// A file that is no store, or cannot be reached; the backend's own text holds no secret, since a path has none.
    pub(crate) fn not_opened(path: &str, error: StoreError) -> Self {
        let kind = match error.kind() {
            StoreKind::Unavailable | StoreKind::Timeout | StoreKind::Full => ErrorKind::Unavailable,
            _ => ErrorKind::Refused,
        };
        let mut this = Self::of_store(kind, error.clone());
        this.inner().message = format!("{path}: {error}");
        this
    }

    /// Names the method and the kind, and a field or what is denied; other texts of drivers stay in the source.
    fn of_store(kind: ErrorKind, error: StoreError) -> Self {
        let field = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<FieldError>());
        let message = match field {
            Some(field) => format!("{}: {field}", error.op()),
            // What a backend lacks is a fixed word of the contract, and a missing right must say of what.
            None if matches!(error.kind(), StoreKind::Unsupported | StoreKind::Denied) => format!("store: {error}"),
            None => format!("store: {}: {}", error.op(), error.kind()),
        };
        let mut this = Self::made(kind, message);
        this.inner().source = Some(Arc::new(error));
        this
    }

    fn made(kind: ErrorKind, message: impl Into<String>) -> Self {
        let mut this = Self::of(kind, kind.name().to_owned(), message.into());
        this.inner().code = Some(Value::from(CODE));
        this
    }

    fn about(mut self, id: &WorkflowId) -> Self {
        self.inner().data = Some(json!({ "workflow_id": id.as_str() }));
        self
    }
}
