//! Brings a file's schema up to what this code knows, once, whoever comes first.

use mainstay_migrations::{Migration, SQLITE};
use rusqlite::Connection;

/// Marks a file as this project's, in the header that `file` reads: the letters of `main`.
pub(crate) const APPLICATION: i32 = 0x6d61_696e;

/// Why a file was not brought up.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It has tables, and they are not ours.
    Foreign,
    /// SQLite failed.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Runs what is missing, in one transaction that keeps every other opener out. A file with a higher number is a newer
/// program's, which keeps its tables usable for older ones, and is left alone.
pub(crate) fn run(conn: &Connection) -> Result<(), Refused> {
    if number(conn)? >= newest() && is_ours(conn)? {
        return Ok(());
    }
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let done = up(conn);
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = conn.execute_batch(end);
    done?;
    Ok(ended?)
}

/// The highest number that this code knows.
pub(crate) fn newest() -> u32 {
    SQLITE.last().map_or(0, |last| last.number)
}

fn up(conn: &Connection) -> Result<(), Refused> {
    if !is_ours(conn)? {
        let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables > 0 {
            return Err(Refused::Foreign);
        }
        conn.pragma_update(None, "application_id", APPLICATION)?;
    }
    let present = number(conn)?;
    for migration in SQLITE.iter().filter(|migration| migration.number > present) {
        apply(conn, migration)?;
    }
    Ok(())
}

fn apply(conn: &Connection, migration: &Migration) -> rusqlite::Result<()> {
    conn.execute_batch(migration.sql)?;
    conn.pragma_update(None, "user_version", migration.number)
}

fn number(conn: &Connection) -> rusqlite::Result<u32> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn is_ours(conn: &Connection) -> rusqlite::Result<bool> {
    let application: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    Ok(application == APPLICATION)
}
