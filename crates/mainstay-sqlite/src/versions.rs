//! Versions of applications: which one is the latest.

use mainstay_store::{AppName, Timestamp, Version, VersionName, VersionReply};
use rusqlite::{Connection, params};

use crate::row;
use crate::sql::{self, Cached};
use crate::tx::Tx;
use mainstay_store::Wakeup;

/// The latest version of an application and of none.
pub(crate) fn latest(conn: &Connection, app: &AppName) -> rusqlite::Result<Option<(Timestamp, VersionName)>> {
    let mut latest = None;
    for owner in [Some(app.as_str()), None] {
        let found = conn.maybe(sql::VERSION_LATEST, params![owner], |found| {
            Ok((Timestamp::from_millis(found.get(0)?), row::text::<VersionName>(found, 1)?))
        })?;
        latest = latest.into_iter().chain(found).max();
    }
    Ok(latest)
}

/// The versions of an application and of none, latest first.
pub(crate) fn all(conn: &Connection, app: &AppName) -> rusqlite::Result<Vec<Version>> {
    conn.list(sql::VERSIONS, [app.as_str()], |found| {
        let mut version = Version::new(row::text::<VersionName>(found, 0)?, Timestamp::from_millis(found.get(1)?));
        version.app = row::text_if(found, 2)?;
        Ok(version)
    })
}

/// Registers a version as the latest, if it is new.
pub(crate) fn register(tx: &mut Tx<'_>, app: &AppName, version: &VersionName) -> rusqlite::Result<VersionReply> {
    match owner(tx.conn, version)? {
        Some(Some(owner)) if owner != *app => Ok(VersionReply::Owned(owner)),
        Some(_) => Ok(VersionReply::Known),
        None => {
            let at = newest(tx)?;
            tx.conn.run(sql::VERSION_INSERT, params![version.as_str(), at.0, tx.now.0, app.as_str()])?;
            changed(tx, at);
            Ok(VersionReply::Created)
        }
    }
}

/// Makes a registered version the latest.
pub(crate) fn promote(tx: &mut Tx<'_>, app: &AppName, version: &VersionName) -> rusqlite::Result<VersionReply> {
    match owner(tx.conn, version)? {
        None => Ok(VersionReply::Missing),
        Some(Some(owner)) if owner != *app => Ok(VersionReply::Owned(owner)),
        Some(_) => {
            let is_latest = latest(tx.conn, app)?.is_some_and(|(_, latest)| latest == *version);
            if !is_latest {
                let at = newest(tx)?;
                tx.conn.run(sql::VERSION_PROMOTE, params![version.as_str(), at.0])?;
                changed(tx, at);
            }
            Ok(VersionReply::Known)
        }
    }
}

fn owner(conn: &Connection, version: &VersionName) -> rusqlite::Result<Option<Option<AppName>>> {
    conn.maybe(sql::VERSION, [version.as_str()], |found| row::text_if(found, 0))
}

/// A stamp later than that of every version, so that two promotions in a millisecond have an order too.
fn newest(tx: &Tx<'_>) -> rusqlite::Result<Timestamp> {
    let others: Option<i64> = tx.conn.exactly(sql::VERSION_NEWEST, [], |found| found.get(0))?;
    Ok(others.map_or(tx.now, |others| Timestamp::from_millis(others.saturating_add(1)).max(tx.now)))
}

fn changed(tx: &mut Tx<'_>, at: Timestamp) {
    tx.stamped(at);
    tx.hint(Wakeup::Registry);
}
