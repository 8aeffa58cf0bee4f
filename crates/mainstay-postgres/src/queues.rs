//! Rows of the queue registry: how they are read, whoever wrote them, and how they are written.

use std::time::Duration;

use mainstay_store::{FieldError, Limits, Queue, QueueName, Rate, Revision, Timestamp, wire};
use serde::Deserialize;
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::row;
use crate::session::{Ask, Param};
use crate::text::Text;

/// A float holds whole nanoseconds of a number of seconds only up to some days, and whole milliseconds beyond.
const FINE_SECONDS: f64 = 1_000_000.0;

/// A row of `queues` with its `revision`, which is the transaction that wrote the row (`xmin`): a queue made anew within a
/// millisecond differs from the one that it replaces, and the change of a peer that keeps no stamp is seen.
#[derive(Debug, Deserialize)]
struct Stored {
    name: String,
    revision: i64,
    application_name: Option<String>,
    concurrency: Option<u32>,
    worker_concurrency: Option<u32>,
    rate_limit_max: Option<u32>,
    rate_limit_period_sec: Option<f64>,
    partition_concurrency: Option<u32>,
    partition_worker_concurrency: Option<u32>,
    partition_rate_limit_max: Option<u32>,
    partition_rate_limit_period_sec: Option<f64>,
    partition_queue: bool,
    polling_interval_sec: f64,
    created_at: i64,
}

/// A queue, by the column `queue`: the whole row and its revision as the text of a JSON object.
pub(crate) fn queue(found: &Row) -> Result<Queue, Fault> {
    let text: &str = row::get(found, "queue")?;
    let stored = serde_json::from_str(text).map_err(|error| Fault::unreadable("queues", error))?;
    decode(stored)
}

/// A queue, by a JSON object of the whole row and its revision.
pub(crate) fn queue_json(found: &serde_json::Value) -> Result<Queue, Fault> {
    let stored = Stored::deserialize(found).map_err(|error| Fault::unreadable("queues", error))?;
    decode(stored)
}

/// The queues that can be read and the names of the others. A stored row of the internal queue is none.
pub(crate) fn all(found: Vec<(QueueName, Result<Queue, Fault>)>) -> (Vec<Queue>, Vec<QueueName>) {
    let (mut queues, mut malformed) = (Vec::new(), Vec::new());
    for (name, queue) in found {
        if name == *wire::INTERNAL_QUEUE {
            continue;
        }
        match queue {
            Ok(queue) => queues.push(queue),
            Err(fault) => {
                tracing::warn!(queue = %name, ?fault, "a queue's row cannot be read");
                malformed.push(name);
            }
        }
    }
    (queues, malformed)
}

fn decode(stored: Stored) -> Result<Queue, Fault> {
    let mut queue = Queue::new(stored.name, Revision(stored.revision));
    queue.app = stored.application_name.map(Into::into);
    queue.stored = Limits {
        concurrency: stored.concurrency,
        worker_concurrency: stored.worker_concurrency,
        rate: rate(stored.rate_limit_max, stored.rate_limit_period_sec)?,
        partition_concurrency: stored.partition_concurrency,
        partition_worker_concurrency: stored.partition_worker_concurrency,
        partition_rate: rate(stored.partition_rate_limit_max, stored.partition_rate_limit_period_sec)?,
    };
    queue.partition_flag = stored.partition_queue;
    queue.polling = interval(stored.polling_interval_sec)?;
    queue.created_at = Timestamp::from_millis(stored.created_at);
    Ok(queue)
}

fn rate(starts: Option<u32>, period: Option<f64>) -> Result<Option<Rate>, Fault> {
    match (starts, period) {
        (Some(starts), Some(period)) => Ok(Some(Rate { starts, period: interval(period)? })),
        (None, None) => Ok(None),
        _ => Err(Fault::unreadable("rate_limit_period_sec", "a rate needs both its starts and its period")),
    }
}

/// A stored number of seconds.
fn interval(seconds: f64) -> Result<Duration, Fault> {
    let exact = Duration::try_from_secs_f64(seconds).map_err(|error| Fault::unreadable("seconds", error))?;
    if seconds < FINE_SECONDS {
        return Ok(exact);
    }
    Ok(Duration::from_millis(u64::try_from((exact + Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX)))
}

/// A queue as the parameters of the two statements that write all its columns.
#[derive(Debug)]
pub(crate) struct Columns {
    name: String,
    app: Option<String>,
    concurrency: Option<i32>,
    worker_concurrency: Option<i32>,
    rate_max: Option<i32>,
    rate_sec: Option<f64>,
    partition_concurrency: Option<i32>,
    partition_worker_concurrency: Option<i32>,
    partition_rate_max: Option<i32>,
    partition_rate_sec: Option<f64>,
    partition_flag: bool,
    polling: f64,
}

impl Columns {
    /// Refuses, by field, a limit that its column cannot hold.
    pub(crate) fn of(queue: &Queue) -> Result<Self, FieldError> {
        let Limits { rate, partition_rate, .. } = queue.stored;
        let seconds = |rate: Option<Rate>| rate.map(|rate| rate.period.as_secs_f64());
        Ok(Self {
            name: queue.name.as_str().to_owned(),
            app: queue.app.as_ref().map(|app| app.as_str().to_owned()),
            concurrency: column("concurrency", queue.stored.concurrency)?,
            worker_concurrency: column("worker_concurrency", queue.stored.worker_concurrency)?,
            rate_max: column("rate.starts", rate.map(|rate| rate.starts))?,
            rate_sec: seconds(rate),
            partition_concurrency: column("partition_concurrency", queue.stored.partition_concurrency)?,
            partition_worker_concurrency: column(
                "partition_worker_concurrency",
                queue.stored.partition_worker_concurrency,
            )?,
            partition_rate_max: column("partition_rate.starts", partition_rate.map(|rate| rate.starts))?,
            partition_rate_sec: seconds(partition_rate),
            partition_flag: queue.partition_flag,
            polling: queue.polling.as_secs_f64(),
        })
    }

    /// One of the two statements with these parameters.
    pub(crate) fn ask<'a>(&'a self, text: &'static Text, now: &'a Option<i64>) -> Ask<'a> {
        let params: [Param<'a>; 13] = [
            now,
            &self.name,
            &self.app,
            &self.concurrency,
            &self.worker_concurrency,
            &self.rate_max,
            &self.rate_sec,
            &self.partition_concurrency,
            &self.partition_worker_concurrency,
            &self.partition_rate_max,
            &self.partition_rate_sec,
            &self.partition_flag,
            &self.polling,
        ];
        Ask::new(text, &params)
    }
}

fn column(field: &'static str, limit: Option<u32>) -> Result<Option<i32>, FieldError> {
    let fits = |limit| i32::try_from(limit).map_err(|_| FieldError::new(field, format!("is over {}", i32::MAX)));
    limit.map(fits).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stored(changes: Value) -> Value {
        let mut stored = json!({
            "queue_id": "1", "name": "q", "revision": 7, "application_name": "shop", "concurrency": 5,
            "worker_concurrency": null, "rate_limit_max": 3, "rate_limit_period_sec": 1.5, "priority_enabled": true,
            "partition_queue": false, "polling_interval_sec": 0.25, "created_at": 9, "updated_at": 10,
        });
        for (key, value) in changes.as_object().expect("an object") {
            stored[key] = value.clone();
        }
        stored
    }

    #[test]
    fn a_stored_row_is_read_by_its_own_columns() {
        let queue = queue_json(&stored(json!({}))).expect("a queue");
        let rate = Some(Rate { starts: 3, period: Duration::from_millis(1_500) });
        let expected = Queue::new("q", Revision(7))
            .app("shop")
            .stored(Limits { concurrency: Some(5), rate, ..Limits::default() })
            .polling(Duration::from_millis(250))
            .created_at(Timestamp::from_millis(9));
        assert_eq!(queue, expected);
    }

    #[test]
    fn a_row_that_means_nothing_is_unreadable() {
        for (column, value) in [
            ("concurrency", json!(-1)),
            ("rate_limit_max", json!(null)),
            ("rate_limit_period_sec", json!("NaN")),
            ("polling_interval_sec", json!(-1.0)),
            ("polling_interval_sec", json!("Infinity")),
            ("partition_rate_limit_max", json!(1)),
            ("name", json!(null)),
        ] {
            let read = queue_json(&stored(json!({ column: value.clone() })));
            assert!(matches!(read, Err(Fault::Unreadable(_))), "{column} {value}");
        }
    }

    #[test]
    fn a_row_of_the_internal_queue_is_none_and_an_unreadable_one_is_named() {
        let read = |name: &str, value| (QueueName::from(name), queue_json(&stored(value)));
        let found = vec![
            read(wire::INTERNAL_QUEUE, json!({ "name": wire::INTERNAL_QUEUE })),
            read("bad", json!({ "concurrency": -1 })),
            read("q", json!({})),
        ];
        let (queues, malformed) = all(found);
        assert_eq!((queues.len(), queues[0].name.as_str(), malformed), (1, "q", vec![QueueName::from("bad")]));
    }

    #[test]
    fn an_interval_is_read_back_as_it_was_written() {
        for written in [
            Duration::from_millis(1),
            Duration::from_micros(1_500),
            Duration::from_secs(86_400 * 30),
            Duration::from_millis(86_400_000 * 365 + 7),
        ] {
            assert_eq!(interval(written.as_secs_f64()).expect("interval"), written);
        }
    }

    #[test]
    fn a_limit_that_no_column_holds_is_refused_by_its_field() {
        let limits = Limits { worker_concurrency: Some(i32::MAX.unsigned_abs() + 1), ..Limits::default() };
        let error = Columns::of(&Queue::new("q", Revision(1)).stored(limits)).expect_err("too large");
        assert_eq!(error.field, "worker_concurrency");
        let limits = Limits { worker_concurrency: Some(i32::MAX.unsigned_abs()), ..Limits::default() };
        assert!(Columns::of(&Queue::new("q", Revision(1)).stored(limits)).is_ok());
    }
}
