//! What the facade and the code that its macros write need of this crate; no part of its interface.

use mainstay_store::StoreError;

use crate::error::{Error, Result};

/// A result, for what its value is.
pub trait Fallible {
    /// Type of the value.
    type Ok;
}

impl<T> Fallible for Result<T> {
    type Ok = T;
}

/// An error of kind `Refused`.
#[must_use]
pub fn refused(message: &str) -> Error {
    Error::refused(message)
}

/// The error of a failed store call, by its kind.
#[must_use]
pub fn store_error(error: StoreError) -> Error {
    Error::store(error)
}
