//! The client's messages by name, with the SQL that they carry or refer to.

use std::sync::Arc;

/// What a message of the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The first message of a session.
    Startup,
    /// The question whether the server speaks TLS or GSSAPI.
    EncryptionRequest,
    /// The request to cancel another session's statement.
    CancelRequest,
    /// Statements as text, answered when all are done.
    Query,
    /// Prepares a statement.
    Parse,
    /// Binds values to a prepared statement.
    Bind,
    /// Asks for the shape of a statement or a portal.
    Describe,
    /// Runs a bound statement.
    Execute,
    /// Closes a statement or a portal.
    Close,
    /// Asks for the replies so far.
    Flush,
    /// Ends a group of messages, commits outside a block, and asks for readiness.
    Sync,
    /// Data, end or failure of a COPY.
    Copy,
    /// A password or another word of a login.
    Password,
    /// The end of a session.
    Terminate,
    /// A message that no client sends today.
    Other,
}

impl Kind {
    pub(crate) fn of_tag(tag: u8) -> Self {
        match tag {
            b'Q' => Self::Query,
            b'P' => Self::Parse,
            b'B' => Self::Bind,
            b'D' => Self::Describe,
            b'E' => Self::Execute,
            b'C' => Self::Close,
            b'H' => Self::Flush,
            b'S' => Self::Sync,
            b'd' | b'c' | b'f' => Self::Copy,
            b'p' => Self::Password,
            b'X' => Self::Terminate,
            _ => Self::Other,
        }
    }

    /// Whether the server answers it with ReadyForQuery.
    pub(crate) fn awaits_ready(self) -> bool {
        matches!(self, Self::Startup | Self::Query | Self::Sync)
    }
}

/// One message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub(crate) connection: u64,
    pub(crate) kind: Kind,
    pub(crate) sql: Option<Arc<str>>,
}

impl Message {
    /// Which connection it came by, counted from 1.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The statement that it carries (Query, Parse) or refers to (Bind, Execute); empty for the other messages.
    pub fn sql(&self) -> &str {
        self.sql.as_deref().unwrap_or_default()
    }

    /// Whether it has the server run something: a Query or an Execute.
    pub fn runs(&self) -> bool {
        matches!(self.kind, Kind::Query | Kind::Execute)
    }

    /// Whether it ends a transaction block with a commit, alone or as one of several statements.
    pub fn is_commit(&self) -> bool {
        self.runs() && self.sql().split(';').any(is_commit)
    }
}

fn is_commit(statement: &str) -> bool {
    let mut words = statement.split_whitespace().map(str::to_ascii_uppercase);
    let first = words.next();
    let commits = matches!(first.as_deref(), Some("COMMIT" | "END"));
    commits && matches!(words.next().as_deref(), None | Some("WORK" | "TRANSACTION" | "AND"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: Kind, sql: &str) -> Message {
        Message { connection: 1, kind, sql: Some(sql.into()) }
    }

    #[test]
    fn a_commit_is_known_alone_and_among_other_statements() {
        for sql in ["COMMIT", " commit ;", "end", "COMMIT WORK", "INSERT INTO t VALUES (1); COMMIT", "COMMIT AND CHAIN"]
        {
            assert!(message(Kind::Query, sql).is_commit() && message(Kind::Execute, sql).is_commit(), "{sql}");
            assert!(!message(Kind::Parse, sql).is_commit(), "a commit that is prepared is not yet one");
        }
        for sql in ["", "ROLLBACK", "SELECT 'COMMIT'", "COMMIT PREPARED 'x'", "CASE x END"] {
            assert!(!message(Kind::Query, sql).is_commit(), "{sql}");
        }
    }
}
