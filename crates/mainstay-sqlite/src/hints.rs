//! Hints for other processes: written beside what they speak of, read by whoever sees that the file has changed.

use mainstay_store::Wakeup;
use rusqlite::Connection;

use crate::sql::{self, Cached};

/// Most hints of one transaction; beyond it they say [`Wakeup::All`], so that a large batch writes no large row.
const MOST: usize = 512;

/// How many transactions' hints are kept for a process that looks late. It looks every 10 ms while it works.
const KEPT: i64 = 256;

/// How many hints are written between two trimmings.
const TRIM_EVERY: i64 = 64;

/// How far one process has read and written the hints of the file.
#[derive(Debug)]
pub(crate) struct Hints {
    seen: i64,
}

impl Hints {
    /// Hears of what comes from now on.
    pub(crate) fn from_now(conn: &Connection) -> rusqlite::Result<Self> {
        let seen = conn.maybe(sql::HINTS_LAST, [], |row| row.get(0))?.unwrap_or(0);
        Ok(Self { seen })
    }

    /// What other processes have written since the last look.
    pub(crate) fn look(&mut self, conn: &Connection) -> rusqlite::Result<Vec<Wakeup>> {
        let rows: Vec<(i64, String)> =
            conn.list(sql::HINTS_SINCE, [self.seen], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut heard = Vec::new();
        for (seq, text) in rows {
            if seq != self.seen + 1 {
                heard.push(Wakeup::All);
            }
            heard.extend(parsed(&text));
            self.seen = seq;
        }
        Ok(sorted(heard))
    }

    /// Writes the hints of a transaction. Called inside it, after a look, so that no foreign row is passed over.
    pub(crate) fn write(&mut self, conn: &Connection, hints: &[Wakeup]) -> rusqlite::Result<i64> {
        let text =
            serde_json::to_string(hints).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let seq: i64 = conn.exactly(sql::HINTS_ADD, [text], |row| row.get(0))?;
        if seq % TRIM_EVERY == 0 {
            conn.run(sql::HINTS_TRIM, [seq - KEPT])?;
        }
        Ok(seq)
    }

    /// Passes over what this process wrote itself, once it has committed.
    pub(crate) fn wrote(&mut self, seq: i64) {
        self.seen = self.seen.max(seq);
    }
}

/// The hints of one transaction. What a newer process has written and this one cannot read may be of anything.
fn parsed(text: &str) -> Vec<Wakeup> {
    serde_json::from_str(text).unwrap_or_else(|_| vec![Wakeup::All])
}

/// Each hint once, and no more than a subscriber can use.
pub(crate) fn sorted(mut hints: Vec<Wakeup>) -> Vec<Wakeup> {
    hints.sort_unstable();
    hints.dedup();
    if hints.len() > MOST || hints.contains(&Wakeup::All) {
        return vec![Wakeup::All];
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Connection {
        let conn = Connection::open_in_memory().expect("a database");
        for migration in mainstay_migrations::SQLITE {
            conn.execute_batch(migration.sql).expect("the schema");
        }
        conn
    }

    fn queue(name: &str) -> Wakeup {
        Wakeup::Queue(name.into())
    }

    #[test]
    fn a_look_brings_what_others_wrote_since_the_last_one() {
        let conn = file();
        let (mut writer, mut reader) = (Hints { seen: 0 }, Hints::from_now(&conn).expect("a reader"));
        for name in ["b", "a", "b"] {
            writer.write(&conn, &[queue(name)]).expect("written");
        }
        assert_eq!(reader.look(&conn).expect("a look"), [queue("a"), queue("b")]);
        assert_eq!(reader.look(&conn).expect("a look"), []);
        writer.write(&conn, &[queue("c")]).expect("written");
        assert_eq!(Hints::from_now(&conn).expect("a late one").look(&conn).expect("a look"), []);
        assert_eq!(reader.look(&conn).expect("a look"), [queue("c")]);
    }

    #[test]
    fn one_that_looks_too_late_is_told_all_and_no_row_is_kept_for_it() {
        let conn = file();
        let (mut writer, mut reader) = (Hints { seen: 0 }, Hints { seen: 0 });
        for _ in 0..KEPT + 2 * TRIM_EVERY {
            writer.write(&conn, &[queue("a")]).expect("written");
        }
        assert_eq!(reader.look(&conn).expect("a look"), [Wakeup::All]);
        let rows: i64 = conn.query_row("SELECT count(*) FROM mainstay_hints", [], |row| row.get(0)).expect("a count");
        assert!(rows <= KEPT + TRIM_EVERY, "{rows}");
        writer.write(&conn, &[queue("b")]).expect("written");
        assert_eq!(reader.look(&conn).expect("a look"), [queue("b")]);
    }

    #[test]
    fn hints_of_a_newer_process_are_told_as_all_once() {
        let conn = file();
        let (mut writer, mut reader) = (Hints { seen: 0 }, Hints { seen: 0 });
        conn.exactly(sql::HINTS_ADD, [r#"[{"Moon":"full"}]"#], |row| row.get::<_, i64>(0)).expect("written");
        assert_eq!(reader.look(&conn).expect("a look"), [Wakeup::All]);
        assert_eq!(reader.look(&conn).expect("a look"), []);
        writer.write(&conn, &[queue("a")]).expect("written");
        assert_eq!(reader.look(&conn).expect("a look"), [queue("a")]);
    }

    #[test]
    fn hints_are_told_once_and_too_many_of_them_are_all() {
        assert_eq!(sorted(vec![queue("b"), queue("a"), queue("b")]), [queue("a"), queue("b")]);
        assert_eq!(sorted(vec![queue("a"), Wakeup::All]), [Wakeup::All]);
        let many: Vec<Wakeup> = (0..=MOST).map(|n| queue(&n.to_string())).collect();
        assert_eq!(sorted(many[..MOST].to_vec()).len(), MOST);
        assert_eq!(sorted(many), [Wakeup::All]);
    }
}
