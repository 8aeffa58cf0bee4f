//! The one table from SQLite's codes to kinds of failure.

use mainstay_store::{ErrorKind, StoreError};
use rusqlite::ErrorCode;

/// Primary result codes and what they mean to a caller. What is missing is a fault of this crate.
///
/// Source: <https://sqlite.org/rescode.html>.
const KINDS: &[(ErrorCode, ErrorKind)] = &[
    // Another process holds the file, or the file system did not answer: the call may be sent again.
    (ErrorCode::DatabaseBusy, ErrorKind::Unavailable),
    (ErrorCode::DatabaseLocked, ErrorKind::Unavailable),
    (ErrorCode::FileLockingProtocolFailed, ErrorKind::Unavailable),
    (ErrorCode::SystemIoFailure, ErrorKind::Unavailable),
    (ErrorCode::CannotOpen, ErrorKind::Unavailable),
    (ErrorCode::OutOfMemory, ErrorKind::Unavailable),
    (ErrorCode::OperationInterrupted, ErrorKind::Unavailable),
    (ErrorCode::OperationAborted, ErrorKind::Unavailable),
    (ErrorCode::ReadOnly, ErrorKind::Denied),
    (ErrorCode::PermissionDenied, ErrorKind::Denied),
    (ErrorCode::AuthorizationForStatementDenied, ErrorKind::Denied),
    (ErrorCode::DiskFull, ErrorKind::Full),
    (ErrorCode::NoLargeFileSupport, ErrorKind::Full),
    (ErrorCode::NotADatabase, ErrorKind::Corrupt),
    (ErrorCode::DatabaseCorrupt, ErrorKind::Corrupt),
    (ErrorCode::TooBig, ErrorKind::Invalid),
    (ErrorCode::ConstraintViolation, ErrorKind::Bug),
    (ErrorCode::TypeMismatch, ErrorKind::Bug),
    (ErrorCode::InternalMalfunction, ErrorKind::Bug),
    (ErrorCode::ApiMisuse, ErrorKind::Bug),
    (ErrorCode::ParameterOutOfRange, ErrorKind::Bug),
    (ErrorCode::NotFound, ErrorKind::Bug),
    // The statements are prepared again on a changed schema; where that fails, the schema is not this crate's.
    (ErrorCode::SchemaChanged, ErrorKind::Corrupt),
    (ErrorCode::Unknown, ErrorKind::Bug),
];

/// What a failure means to a caller.
pub(crate) fn kind(error: &rusqlite::Error) -> ErrorKind {
    match error {
        rusqlite::Error::SqliteFailure(code, _) => {
            KINDS.iter().find(|(known, _)| *known == code.code).map_or(ErrorKind::Bug, |(_, kind)| *kind)
        }
        _ if is_unreadable(error) => ErrorKind::Corrupt,
        rusqlite::Error::InvalidPath(_) | rusqlite::Error::NulError(_) => ErrorKind::Invalid,
        _ => ErrorKind::Bug,
    }
}

/// Whether another connection is in the way, and trying again soon is right.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

/// Whether a stored value is not what this crate writes, in a file that is sound.
pub(crate) fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

/// Whether the failure is of what was read or written, not of the file: other calls may go on.
pub(crate) fn is_of_the_row(error: &rusqlite::Error) -> bool {
    is_unreadable(error) || matches!(kind(error), ErrorKind::Bug | ErrorKind::Invalid)
}

/// The failure of a method.
pub(crate) fn failed(op: &'static str, error: rusqlite::Error) -> StoreError {
    StoreError::new(kind(&error), op).with_source(error)
}

/// The index of a column in a failure that names the column itself.
const NAMED: usize = usize::MAX;

/// A stored value that cannot be read; `column` names where.
pub(crate) fn unreadable(column: &str, what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    let source = format!("{column}: {}", what.into());
    rusqlite::Error::FromSqlConversionFailure(NAMED, rusqlite::types::Type::Text, source.into())
}

/// Puts the name of the column into a failure that knows only its place.
pub(crate) fn named(row: &rusqlite::Row<'_>, error: rusqlite::Error) -> rusqlite::Error {
    let index = match &error {
        rusqlite::Error::FromSqlConversionFailure(index, ..)
        | rusqlite::Error::IntegralValueOutOfRange(index, _)
        | rusqlite::Error::InvalidColumnType(index, ..)
        | rusqlite::Error::Utf8Error(index, _) => *index,
        _ => return error,
    };
    let statement: &rusqlite::Statement<'_> = row.as_ref();
    match statement.column_name(index) {
        Ok(column) => unreadable(column, error),
        Err(_) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn kind_of(code: std::ffi::c_int) -> ErrorKind {
        kind(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn each_code_has_its_kind() {
        let cases = [
            (ffi::SQLITE_BUSY, ErrorKind::Unavailable),
            (ffi::SQLITE_BUSY_RECOVERY, ErrorKind::Unavailable),
            (ffi::SQLITE_BUSY_SNAPSHOT, ErrorKind::Unavailable),
            (ffi::SQLITE_LOCKED, ErrorKind::Unavailable),
            (ffi::SQLITE_PROTOCOL, ErrorKind::Unavailable),
            (ffi::SQLITE_IOERR, ErrorKind::Unavailable),
            (ffi::SQLITE_IOERR_FSYNC, ErrorKind::Unavailable),
            (ffi::SQLITE_IOERR_SHORT_READ, ErrorKind::Unavailable),
            (ffi::SQLITE_CANTOPEN, ErrorKind::Unavailable),
            (ffi::SQLITE_NOMEM, ErrorKind::Unavailable),
            (ffi::SQLITE_INTERRUPT, ErrorKind::Unavailable),
            (ffi::SQLITE_ABORT, ErrorKind::Unavailable),
            (ffi::SQLITE_READONLY, ErrorKind::Denied),
            (ffi::SQLITE_READONLY_DIRECTORY, ErrorKind::Denied),
            (ffi::SQLITE_PERM, ErrorKind::Denied),
            (ffi::SQLITE_AUTH, ErrorKind::Denied),
            (ffi::SQLITE_FULL, ErrorKind::Full),
            (ffi::SQLITE_NOLFS, ErrorKind::Full),
            (ffi::SQLITE_NOTADB, ErrorKind::Corrupt),
            (ffi::SQLITE_CORRUPT, ErrorKind::Corrupt),
            (ffi::SQLITE_SCHEMA, ErrorKind::Corrupt),
            (ffi::SQLITE_TOOBIG, ErrorKind::Invalid),
            (ffi::SQLITE_CONSTRAINT, ErrorKind::Bug),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, ErrorKind::Bug),
            (ffi::SQLITE_MISMATCH, ErrorKind::Bug),
            (ffi::SQLITE_INTERNAL, ErrorKind::Bug),
            (ffi::SQLITE_MISUSE, ErrorKind::Bug),
            (ffi::SQLITE_RANGE, ErrorKind::Bug),
            (ffi::SQLITE_NOTFOUND, ErrorKind::Bug),
            (ffi::SQLITE_ERROR, ErrorKind::Bug),
        ];
        for (code, expected) in cases {
            assert_eq!(kind_of(code), expected, "code {code}");
        }
        let tested: Vec<_> = cases.iter().map(|(code, _)| ffi::Error::new(*code).code).collect();
        for (code, _) in KINDS {
            assert!(tested.contains(code), "{code:?} has no case");
        }
    }

    #[test]
    fn an_unreadable_value_is_corrupt() {
        assert_eq!(kind(&unreadable("status", "is new")), ErrorKind::Corrupt);
        assert_eq!(kind(&rusqlite::Error::IntegralValueOutOfRange(0, -1)), ErrorKind::Corrupt);
        assert_eq!(kind(&rusqlite::Error::QueryReturnedNoRows), ErrorKind::Bug);
    }

    #[test]
    fn an_unreadable_value_is_of_its_row_and_a_broken_file_is_of_all() {
        assert!(is_of_the_row(&unreadable("status", "is new")));
        assert!(is_of_the_row(&rusqlite::Error::IntegralValueOutOfRange(0, -1)));
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_FULL, ffi::SQLITE_IOERR] {
            assert!(!is_of_the_row(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)), "code {code}");
        }
    }

    #[test]
    fn only_a_lock_is_worth_another_try_at_once() {
        for (code, busy) in [
            (ffi::SQLITE_BUSY, true),
            (ffi::SQLITE_LOCKED, true),
            (ffi::SQLITE_PROTOCOL, true),
            (ffi::SQLITE_IOERR, false),
            (ffi::SQLITE_FULL, false),
        ] {
            assert_eq!(is_busy(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)), busy, "code {code}");
        }
    }
}
