//! Opening the file: what is refused and how, and how each connection is set.

use std::fs;
use std::io;
use std::path::Path;

use mainstay_env::{Env, Monotonic};
use mainstay_store::{ErrorKind, Result, StoreError};
use rusqlite::{Connection, OpenFlags};

use crate::config::{Config, Synchronous};
use crate::error;
use crate::migrate::{self, Refused};
use crate::pace::Pace;
use crate::sql;
use crate::writer::wait;

const OP: &str = "open";

/// Page cache of the writing connection, in KiB; a negative number means KiB to SQLite.
const CACHE: i64 = -32_768;

/// What is left of the log after a checkpoint, in bytes: a burst must not take the space for ever.
const LOG: i64 = 64 << 20;

/// Room for every statement of this crate, so that none is prepared twice.
const STATEMENTS: usize = 160;

/// Refuses paths that name no file, before SQLite makes something of them.
pub(crate) fn check(path: &Path) -> Result<()> {
    let refuse = |detail: &str| Err(StoreError::invalid(OP, "path", detail));
    match path.to_str() {
        Some("") => return refuse("is empty"),
        Some(":memory:") => return refuse("names no file; the memory store has no path"),
        _ => {}
    }
    if path.is_dir() {
        return refuse("is a directory");
    }
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return refuse("names no file"),
    };
    match fs::metadata(parent) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => refuse("its parent is not a directory"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => refuse("its directory does not exist"),
        Err(error) => {
            let denied = error.kind() == io::ErrorKind::PermissionDenied;
            let kind = if denied { ErrorKind::Denied } else { ErrorKind::Unavailable };
            Err(StoreError::new(kind, OP).with_source(error))
        }
    }
}

/// The writing connection, its file made and brought up to date.
pub(crate) fn writer(config: &Config, env: &Env) -> Result<Connection> {
    let deadline = env.deadline(config.patience);
    let conn = patiently(env, deadline, || connect(config))?;
    if conn.is_readonly("main").map_err(|error| error::failed(OP, error))? {
        return Err(StoreError::new(ErrorKind::Denied, OP).with_source("the file is read-only"));
    }
    patiently(env, deadline, || write_ahead(&conn))?;
    let set = || {
        conn.pragma_update(None, "synchronous", config.synchronous.pragma())?;
        // Where the usual flush leaves data in the disk's cache; unknown to all but one operating system.
        conn.pragma_update(None, "fullfsync", config.synchronous == Synchronous::Full)?;
        conn.pragma_update(None, "journal_size_limit", LOG)?;
        conn.pragma_update(None, "cache_size", CACHE)
    };
    set().map_err(|error| error::failed(OP, error))?;
    loop {
        match migrate::run(&conn) {
            Ok(()) => return Ok(conn),
            Err(Refused::Foreign) => {
                return Err(StoreError::invalid(OP, "path", "is a database of another program"));
            }
            Err(Refused::Sqlite(error)) if error::is_busy(&error) && env.monotonic() < deadline => wait(Pace::retry(9)),
            Err(Refused::Sqlite(error)) => return Err(error::failed(OP, error)),
        }
    }
}

/// A reading connection of a file that the writer has opened.
pub(crate) fn reader(config: &Config, env: &Env) -> Result<Connection> {
    let conn = patiently(env, env.deadline(config.patience), || connect(config))?;
    conn.pragma_update(None, "query_only", true).map_err(|error| error::failed(OP, error))?;
    Ok(conn)
}

fn connect(config: &Config) -> rusqlite::Result<Connection> {
    // No URI: a file name means itself. No mutex: a connection stays on its thread.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&config.path, flags)?;
    // This crate waits by itself, so that it can take more calls in meanwhile and keeps to each call's patience.
    conn.busy_timeout(std::time::Duration::ZERO)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.pragma_update(None, "foreign_keys", true)?;
    // The first real read of the file: what is no database shows here.
    conn.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0))?;
    Ok(conn)
}

/// Turns the write-ahead log on. Two openers of a fresh file may be in each other's way here.
fn write_ahead(conn: &Connection) -> rusqlite::Result<()> {
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    Err(rusqlite::Error::SqliteFailure(code, Some(format!("no write-ahead log here, journal mode is {mode}"))))
}

/// Tries again while another process is in the way, until the deadline.
fn patiently<T>(env: &Env, deadline: Monotonic, mut body: impl FnMut() -> rusqlite::Result<T>) -> Result<T> {
    loop {
        match body() {
            Err(error) if error::is_busy(&error) && env.monotonic() < deadline => wait(Pace::retry(9)),
            result => return result.map_err(|error| error::failed(OP, error)),
        }
    }
}

/// The version of the file as this connection sees it, which changes with every commit of another one.
pub(crate) fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row(sql::DATA_VERSION, [], |row| row.get(0))
}
