//! What the facade needs of this crate; no part of its interface.

use mainstay_store::StoreError;

use crate::error::Error;

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

/// Why a file could not be opened as a store: the file, and what the backend says of it.
#[must_use]
pub fn not_opened(path: &str, error: StoreError) -> Error {
    Error::not_opened(path, error)
}
