//! What a claim counts for `Admission`, each count up to its bound.

use mainstay_store::{AppName, Counts, Needs, QueueName, Rate, Starts, Timestamp};
use rusqlite::{Connection, params};

use crate::sql::{self, Cached};

/// Reads the counts of an unpartitioned queue.
pub(crate) fn read(
    conn: &Connection,
    needs: &Needs,
    queue: &QueueName,
    app: &AppName,
    now: Timestamp,
) -> rusqlite::Result<Counts> {
    let mut counts = Counts::default();
    if let Some(bound) = needs.running {
        counts.running = running(conn, queue, app, bound)?;
    }
    if let Some(rate) = needs.starts {
        counts.starts = starts(conn, queue, rate, now)?;
    }
    Ok(counts)
}

/// Pending rows of the application and of none.
fn running(conn: &Connection, queue: &QueueName, app: &AppName, bound: u32) -> rusqlite::Result<u32> {
    let mut count = 0;
    for owner in [Some(app.as_str()), None] {
        let left = bound - count;
        let more: u32 = conn.exactly(sql::RUNNING, params![queue.as_str(), owner, left], |row| row.get(0))?;
        count += more;
    }
    Ok(count)
}

/// The latest starts of the window that ends now.
fn starts(conn: &Connection, queue: &QueueName, rate: Rate, now: Timestamp) -> rusqlite::Result<Starts> {
    let begin = now - rate.period;
    let (count, oldest): (u32, Option<i64>) =
        conn.exactly(sql::STARTS, params![queue.as_str(), begin.0, rate.starts], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let opens_in = oldest.map(|at| (Timestamp::from_millis(at) + rate.period).since(now));
    Ok(Starts { count, opens_in })
}
