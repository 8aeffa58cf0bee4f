//! Which rows of a queue a process may claim, and which of them come first.
//!
//! Rows that agree in version, application, name, class and config are of one kind, and eligible together. The index
//! holds the rows of a queue by kind, so that kinds are found by seeking and the rows of others are never read.

use std::sync::Arc;

use mainstay_store::{AppName, QueueName, Registered, Timestamp, VersionName};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params};

use crate::sql::{self, Cached};
use crate::versions;

/// What a process can run, as a claim or a probe names it.
#[derive(Debug)]
pub(crate) struct Eligibility<'a> {
    app: &'a AppName,
    version: &'a VersionName,
    names: &'a [Registered],
    unversioned: bool,
}

/// The place of a row in its queue: priority, age, id. A priority out of range is met where the whole row is read.
pub(crate) type Rank = (i64, i64, Arc<str>);

/// A row that may be claimed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) rank: Rank,
    /// Most attempts of its function.
    pub(crate) max_attempts: u32,
}

/// A kind as it is stored, and bound again: a text, but not always UTF-8.
struct Stored(Vec<u8>);

impl ToSql for Stored {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(&self.0)))
    }
}

/// Version, application, name, class and config, in the order of the stored array.
type Kind = (Option<String>, Option<String>, String, Option<String>, Option<String>);

impl<'a> Eligibility<'a> {
    /// Reads whether unversioned rows are eligible.
    pub(crate) fn new(
        conn: &Connection,
        app: &'a AppName,
        version: &'a VersionName,
        names: &'a [Registered],
    ) -> rusqlite::Result<Self> {
        let latest = versions::latest(conn, app)?;
        let unversioned = latest.is_none_or(|(_, latest)| latest == *version);
        Ok(Self { app, version, names, unversioned })
    }

    /// Whether the queue has an eligible row.
    pub(crate) fn any(&self, conn: &Connection, queue: &QueueName) -> rusqlite::Result<bool> {
        let mut found = false;
        self.kinds(conn, queue, |_, _| {
            found = true;
            Ok(Go::Stop)
        })?;
        Ok(found)
    }

    /// The first eligible rows of the queue, at most `total`, in order.
    pub(crate) fn first(&self, conn: &Connection, queue: &QueueName, total: u32) -> rusqlite::Result<Vec<Candidate>> {
        let most = usize::try_from(total).unwrap_or(usize::MAX);
        let mut best: Vec<Candidate> = Vec::new();
        self.kinds(conn, queue, |kind, max_attempts| {
            let worst = best.get(most.wrapping_sub(1)).map(|worst| worst.rank.clone());
            let mut statement = conn.statement(sql::KIND_ROWS)?;
            let mut rows = statement.query(params![queue.as_str(), kind, total])?;
            while let Some(found) = rows.next()? {
                let rank: Rank = (found.get(0)?, found.get(1)?, found.get(2)?);
                if worst.as_ref().is_some_and(|worst| rank > *worst) {
                    break;
                }
                best.push(Candidate { rank, max_attempts });
            }
            best.sort_unstable();
            best.truncate(most);
            Ok(Go::On)
        })?;
        Ok(best)
    }

    /// Walks over the eligible kinds that the queue has rows of.
    fn kinds(
        &self,
        conn: &Connection,
        queue: &QueueName,
        mut visit: impl FnMut(&Stored, u32) -> rusqlite::Result<Go>,
    ) -> rusqlite::Result<()> {
        let mut last = Stored(Vec::new());
        while let Some(kind) = next_kind(conn, queue, &last)? {
            if let Some(registered) = self.registered(queue, &kind)
                && matches!(visit(&kind, registered.max_attempts)?, Go::Stop)
            {
                return Ok(());
            }
            last = kind;
        }
        Ok(())
    }

    /// The registration that runs rows of a kind, if they are eligible. No process runs rows of an unreadable kind.
    fn registered(&self, queue: &QueueName, kind: &Stored) -> Option<&Registered> {
        let (version, app, name, class, config): Kind = serde_json::from_slice(&kind.0)
            .inspect_err(|error| tracing::warn!(%queue, %error, "rows of a kind cannot be read"))
            .ok()?;
        let own = app.is_none_or(|app| *self.app == app.as_str());
        let fits = version.map_or(self.unversioned, |version| *self.version == version.as_str());
        if !own || !fits {
            return None;
        }
        self.names.iter().find(|known| {
            known.name == name.as_str()
                && known.class.as_ref().map(AsRef::as_ref) == class.as_deref()
                && known.config.as_ref().map(AsRef::as_ref) == config.as_deref()
        })
    }
}

/// Whether a walk goes on.
enum Go {
    On,
    Stop,
}

fn next_kind(conn: &Connection, queue: &QueueName, last: &Stored) -> rusqlite::Result<Option<Stored>> {
    conn.maybe(sql::KIND_AFTER, params![queue.as_str(), last], |found| {
        Ok(Stored(found.get_ref(0)?.as_bytes()?.to_vec()))
    })
}

/// When the earliest delayed row of an application, or an unowned one, is due.
pub(crate) fn next_delay(conn: &Connection, app: &AppName) -> rusqlite::Result<Option<Timestamp>> {
    earliest(conn, sql::NEXT_DELAY, app)
}

/// The least stamp that a statement finds for an application and for none.
pub(crate) fn earliest(conn: &Connection, sql: &'static str, app: &AppName) -> rusqlite::Result<Option<Timestamp>> {
    let mut found: Option<Timestamp> = None;
    for owner in [Some(app.as_str()), None] {
        let at = conn.maybe(sql, params![owner], |row| row.get(0).map(Timestamp::from_millis))?;
        found = found.into_iter().chain(at).min();
    }
    Ok(found)
}
