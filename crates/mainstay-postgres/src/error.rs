//! The one table from codes of the server and faults of the transport to kinds of failure.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use mainstay_store::{ErrorKind, StoreError};
use tokio_postgres::Error;

/// What a code means to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) kind: ErrorKind,
    /// Whether the connection must not be used again.
    pub(crate) drop: bool,
}

/// Keeps the connection.
const fn keep(kind: ErrorKind) -> Meaning {
    Meaning { kind, drop: false }
}

/// Gives the connection up.
const fn lose(kind: ErrorKind) -> Meaning {
    Meaning { kind, drop: true }
}

/// Codes and classes (two characters), each class after its codes: the first that fits is taken.
const TABLE: &[(&str, Meaning)] = &[
    ("08", lose(ErrorKind::Unavailable)),
    ("0A000", keep(ErrorKind::Unsupported)),
    ("22P03", keep(ErrorKind::Bug)),
    ("22", keep(ErrorKind::Invalid)),
    // A row that went, or one that another program wrote, between a look and a write: sent again, it is seen.
    ("23503", keep(ErrorKind::Contended)),
    ("23505", keep(ErrorKind::Contended)),
    // A rule that was added to the shared tables: their own are met by every statement.
    ("23", keep(ErrorKind::Invalid)),
    // A read-only primary is one that has been replaced: another connection finds the new one.
    ("25006", lose(ErrorKind::Unavailable)),
    ("25P03", lose(ErrorKind::Unavailable)),
    ("25P04", lose(ErrorKind::Timeout)),
    ("25", lose(ErrorKind::Bug)),
    ("26000", lose(ErrorKind::Unsupported)),
    ("28", lose(ErrorKind::Denied)),
    ("3D000", lose(ErrorKind::NotFound)),
    ("3F000", keep(ErrorKind::Corrupt)),
    ("40003", lose(ErrorKind::Unavailable)),
    ("40002", keep(ErrorKind::Bug)),
    ("40", keep(ErrorKind::Contended)),
    ("42501", keep(ErrorKind::Denied)),
    ("42P01", keep(ErrorKind::Corrupt)),
    ("42703", keep(ErrorKind::Corrupt)),
    ("42883", keep(ErrorKind::Corrupt)),
    ("42P05", lose(ErrorKind::Unsupported)),
    ("42", keep(ErrorKind::Bug)),
    ("53100", keep(ErrorKind::Full)),
    ("53400", keep(ErrorKind::Full)),
    ("53300", lose(ErrorKind::Unavailable)),
    ("53", keep(ErrorKind::Unavailable)),
    ("54", keep(ErrorKind::Invalid)),
    ("55P03", keep(ErrorKind::Contended)),
    ("55006", keep(ErrorKind::Contended)),
    ("55P02", keep(ErrorKind::Unsupported)),
    ("55000", lose(ErrorKind::Unavailable)),
    // The server's own limit ended the statement: the next try would take as long, so it is not one that is sent
    // again by itself, as `Unavailable` is.
    ("57014", keep(ErrorKind::Timeout)),
    ("57", lose(ErrorKind::Unavailable)),
    ("58P01", keep(ErrorKind::Corrupt)),
    ("58P02", keep(ErrorKind::Corrupt)),
    ("58", lose(ErrorKind::Unavailable)),
    ("72000", keep(ErrorKind::Contended)),
    // An internal error comes back for the same row: sent again for ever it would block the rows behind it.
    ("XX", keep(ErrorKind::Corrupt)),
];

/// The function of the server that finds a prepared statement outlived by a change of its tables.
const STALE_PLAN: &str = "RevalidateCachedQuery";

/// What a code of the server means; one that the table does not name is a statement that we should not have sent.
pub(crate) fn meaning(code: &str) -> Meaning {
    let fits = |&&(key, _): &&(&str, Meaning)| code == key || (key.len() == 2 && code.starts_with(key));
    TABLE.iter().find(fits).map_or(keep(ErrorKind::Bug), |&(_, meaning)| meaning)
}

/// What a failure means, be it the server's or the transport's.
fn meaning_of(error: &Error) -> Meaning {
    if let Some(db) = error.as_db_error() {
        if is_stale_plan(error) {
            return lose(ErrorKind::Contended);
        }
        return meaning(db.code().code());
    }
    if error.is_closed() {
        return lose(ErrorKind::Unavailable);
    }
    // The driver's kinds are private; their texts are fixed.
    let text = error.to_string();
    let is = |start: &str| text.starts_with(start);
    if is("error encoding") {
        keep(ErrorKind::Invalid)
    } else if is("error deserializing") {
        keep(ErrorKind::Corrupt)
    } else if is("error performing TLS") {
        lose(if has_rustls(error) { ErrorKind::Denied } else { ErrorKind::Unavailable })
    } else if is("authentication error") || is("invalid configuration") {
        lose(ErrorKind::Denied)
    } else if is("unexpected message") || is("error parsing response") || is("timeout") || has_io(error) {
        lose(ErrorKind::Unavailable)
    } else {
        keep(ErrorKind::Bug)
    }
}

/// The causes of an error, itself first; of an I/O error also the one that it wraps.
pub(crate) fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error))
}

fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

fn has_io(error: &Error) -> bool {
    causes(error).any(|cause| cause.is::<io::Error>())
}

fn has_rustls(error: &Error) -> bool {
    causes(error).any(|cause| cause.is::<rustls::Error>())
}

/// The kind of a failure.
pub(crate) fn kind(error: &Error) -> ErrorKind {
    meaning_of(error).kind
}

/// Whether the connection must be dropped, not handed to the next call.
pub(crate) fn is_connection(error: &Error) -> bool {
    meaning_of(error).drop
}

/// Whether a table, column or function was not there: the database may have moved to another number of the ladder.
pub(crate) fn is_undefined(error: &Error) -> bool {
    is_stale_plan(error) || is_one_of(error, &["42P01", "42703", "42883", "3F000"])
}

/// Whether a prepared statement outlived a change of its tables.
pub(crate) fn is_stale_plan(error: &Error) -> bool {
    error.as_db_error().is_some_and(|db| db.routine() == Some(STALE_PLAN))
}

fn is_one_of(error: &Error, codes: &[&str]) -> bool {
    error.code().is_some_and(|code| codes.contains(&code.code()))
}

/// The failure of the method `op`.
///
/// Its text has the server's code and message, never DETAIL, CONTEXT or a statement, which hold users' data.
pub(crate) fn failed(op: &'static str, error: Error) -> StoreError {
    let kind = kind(&error);
    StoreError::new(kind, op).with_source(Failure::of(&error))
}

/// What is shown of a driver's error.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    code: Option<String>,
    text: String,
}

impl Failure {
    pub(crate) fn of(error: &Error) -> Self {
        let Some(db) = error.as_db_error() else {
            let texts: Vec<String> = causes(error).map(ToString::to_string).collect();
            return Self { code: None, text: joined(&texts) };
        };
        let code = db.code().code();
        let text = match hint(code) {
            Some(hint) => format!("{}; {hint}", db.message()),
            None => db.message().to_owned(),
        };
        Self { code: Some(code.into()), text }
    }

    /// The same with its text changed, for what must not be shown where a connection is made.
    pub(crate) fn map(self, change: impl FnOnce(String) -> String) -> Self {
        Self { code: self.code, text: change(self.text) }
    }

    /// The server's code.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{code}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl StdError for Failure {}

/// Texts of a chain in one line; one that its predecessor already contains is left out.
fn joined(texts: &[String]) -> String {
    let mut line = String::new();
    for text in texts {
        if !line.contains(text.as_str()) {
            line = if line.is_empty() { text.clone() } else { format!("{line}: {text}") };
        }
    }
    line
}

/// What to do about a code, where the server's own message does not say.
fn hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "26000" | "42P05" => "a pooler that shares connections between transactions needs Config::pooler(true)",
        "57014" => "the statement was cancelled, by the server's statement_timeout or an operator",
        "42501" => "the role lacks this grant: see the roles in docs/postgres",
        "25006" => "the server is read-only: a standby, or a primary that was replaced",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_table_has_its_kind_and_says_what_becomes_of_the_connection() {
        use ErrorKind::{Bug, Contended, Corrupt, Denied, Full, Invalid, NotFound, Timeout, Unavailable, Unsupported};
        let cases = [
            (Unavailable, true, "08000 08001 08003 08004 08006 08007 08P01 25006 25P03 40003 53300 55000 57000 57P01"),
            (Unavailable, true, "57P02 57P03 57P04 57P05 58000 58030"),
            (Unavailable, false, "53000 53200"),
            (Contended, false, "23503 23505 40000 40001 40P01 55P03 55006 72000"),
            (Timeout, false, "57014"),
            (Timeout, true, "25P04"),
            (Denied, true, "28000 28P01"),
            (Denied, false, "42501"),
            (Full, false, "53100 53400"),
            (Corrupt, false, "3F000 42P01 42703 42883 58P01 58P02 XX000 XX001 XX002"),
            (Unsupported, false, "0A000 55P02"),
            (Unsupported, true, "26000 42P05"),
            (Invalid, false, "22001 22003 22021 22P02 22P05 22032 23502 23514 23P01 54000 54001 54023"),
            (NotFound, true, "3D000"),
            (Bug, false, "21000 22P03 40002 42601 42804 P0001 0LP01 F0000 zzzzz"),
            (Bug, true, "25001 25P01 25P02"),
        ];
        let mut seen: Vec<&str> = Vec::new();
        for (kind, drop, codes) in cases {
            for code in codes.split(' ') {
                assert_eq!(meaning(code), Meaning { kind, drop }, "{code}");
                seen.push(code);
            }
        }
        for (key, _) in TABLE {
            assert!(seen.iter().any(|code| code.starts_with(key)), "{key} has no case");
        }
    }

    #[test]
    fn no_row_of_the_table_is_hidden_by_one_above_it() {
        for (place, (key, meaning)) in TABLE.iter().enumerate() {
            let hidden =
                TABLE[..place].iter().any(|(above, _)| key == above || (above.len() == 2 && key.starts_with(above)));
            assert!(!hidden && (key.len() == 2 || key.len() == 5), "{key} {meaning:?}");
        }
    }

    #[test]
    fn a_chain_is_one_line_without_repeats() {
        let texts =
            ["error connecting to server", "refused (os error 111)", "refused (os error 111)"].map(String::from);
        assert_eq!(joined(&texts), "error connecting to server: refused (os error 111)");
    }
}
