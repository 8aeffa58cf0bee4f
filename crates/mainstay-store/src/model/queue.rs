//! Queues and their limits.

use std::time::Duration;

use mainstay_env::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AppName, Bounds, QueueName, wire};
use crate::error::FieldError;

/// At most `starts` starts in any window of `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Starts in a window.
    pub starts: u32,
    /// Length of the window.
    pub period: Duration,
}

/// The six limits of a queue: fleet, process and rate, for the whole queue and for each partition key.
///
/// `None` is unlimited. All that are set apply; the tightest wins. A stored 0, which only a peer can have written, pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Running at once, over all processes.
    pub concurrency: Option<u32>,
    /// Running at once in one process.
    pub worker_concurrency: Option<u32>,
    /// Starts in a window, over all processes.
    pub rate: Option<Rate>,
    /// Running at once for one key, over all processes.
    pub partition_concurrency: Option<u32>,
    /// Running at once for one key in one process.
    pub partition_worker_concurrency: Option<u32>,
    /// Starts in a window for one key, over all processes.
    pub partition_rate: Option<Rate>,
}

impl Limits {
    /// Whether any limit of a partition is set.
    #[must_use]
    pub const fn partitioned(&self) -> bool {
        self.partition_concurrency.is_some()
            || self.partition_worker_concurrency.is_some()
            || self.partition_rate.is_some()
    }

    /// Whether any limit is counted in the store rather than in the process.
    #[must_use]
    pub const fn counted(&self) -> bool {
        self.concurrency.is_some()
            || self.rate.is_some()
            || self.partition_concurrency.is_some()
            || self.partition_rate.is_some()
    }

    /// The first limit that may not be registered; equal limits are allowed.
    ///
    /// # Errors
    /// Names the field: zero, an empty window, or a narrower scope that allows more than a wider one.
    pub fn check(&self) -> Result<(), FieldError> {
        let least = |field: &str, limit: Option<u32>| match limit {
            Some(0) => Err(FieldError::new(field, "must be at least 1")),
            Some(limit) if i32::try_from(limit).is_err() => {
                Err(FieldError::new(field, format!("is {limit}, at most {} is allowed", i32::MAX)))
            }
            _ => Ok(()),
        };
        let under = |field: &str, limit: Option<u32>, cap: Option<u32>, of: &str| match (limit, cap) {
            (Some(limit), Some(cap)) if limit > cap => {
                Err(FieldError::new(field, format!("is {limit}, more than {of} of {cap}")))
            }
            _ => Ok(()),
        };
        let rate = |field: &str, rate: Option<Rate>| match rate {
            Some(rate) => least(&format!("{field}.starts"), Some(rate.starts))
                .and_then(|()| bounded(&format!("{field}.period"), rate.period)),
            None => Ok(()),
        };
        least("concurrency", self.concurrency)?;
        least("worker_concurrency", self.worker_concurrency)?;
        under("worker_concurrency", self.worker_concurrency, self.concurrency, "the concurrency")?;
        rate("rate", self.rate)?;
        least("partition_concurrency", self.partition_concurrency)?;
        least("partition_worker_concurrency", self.partition_worker_concurrency)?;
        rate("partition_rate", self.partition_rate)?;
        let (key, key_worker) = (self.partition_concurrency, self.partition_worker_concurrency);
        under("partition_worker_concurrency", key_worker, self.worker_concurrency, "the worker_concurrency")?;
        under("partition_worker_concurrency", key_worker, key, "the partition_concurrency")?;
        under("partition_concurrency", key, self.concurrency, "the concurrency")?;
        under("partition_worker_concurrency", key_worker, self.concurrency, "the concurrency")?;
        match (self.partition_rate, self.rate) {
            (Some(key), Some(queue)) if faster(key, queue) => {
                Err(FieldError::new("partition_rate", "allows more starts than the rate of the queue"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether `a` allows more starts per time than `b`, compared without division.
fn faster(a: Rate, b: Rate) -> bool {
    u128::from(a.starts) * b.period.as_millis() > u128::from(b.starts) * a.period.as_millis()
}

/// Changes whenever a queue's row does; a claim names the one it was planned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub i64);

record! {
    /// A queue as it stands in the registry.
    Queue {
        required {
            /// Its name, unique over all applications.
            name: QueueName,
            /// Changes with every change of the row.
            revision: Revision,
        }
        optional {
            /// Owner; none means that any application may claim it.
            app: AppName,
        }
        default {
            /// The limits as stored; enforce [`Queue::limits`] instead.
            stored: Limits = Limits::default(),
            /// The flag of peers that partition a queue by it alone.
            partition_flag: bool = false,
            /// Interval of the poll that backs up wakeups.
            polling: Duration = Duration::from_millis(wire::POLL_MILLIS),
            /// When it was registered.
            created_at: Timestamp = Timestamp::from_millis(0),
        }
    }
}

impl Queue {
    /// Whether an older peer wrote the row: partitioned by its flag, without any limit of a partition.
    #[must_use]
    pub const fn is_legacy(&self) -> bool {
        self.partition_flag && !self.stored.partitioned()
    }

    /// The limits to enforce: those of a legacy row count for each key, and none for the whole queue (compat C-001).
    #[must_use]
    pub fn limits(&self) -> Limits {
        if !self.is_legacy() {
            return self.stored;
        }
        Limits {
            partition_concurrency: self.stored.concurrency,
            partition_worker_concurrency: self.stored.worker_concurrency,
            partition_rate: self.stored.rate,
            ..Limits::default()
        }
    }
}

/// What a change does with one field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change<T> {
    /// Leaves it.
    #[default]
    Keep,
    /// Sets it.
    Set(T),
    /// Removes it.
    Clear,
}

impl<T: Copy> Change<T> {
    fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Set(value) => *field = Some(value),
            Self::Clear => *field = None,
        }
    }

    const fn sets(&self) -> bool {
        matches!(self, Self::Set(_))
    }
}

/// Changes to a queue; a field left at `Keep` stays as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueChange {
    /// See [`Limits::concurrency`].
    pub concurrency: Change<u32>,
    /// See [`Limits::worker_concurrency`].
    pub worker_concurrency: Change<u32>,
    /// See [`Limits::rate`].
    pub rate: Change<Rate>,
    /// See [`Limits::partition_concurrency`].
    pub partition_concurrency: Change<u32>,
    /// See [`Limits::partition_worker_concurrency`].
    pub partition_worker_concurrency: Change<u32>,
    /// See [`Limits::partition_rate`].
    pub partition_rate: Change<Rate>,
    /// See [`Queue::polling`].
    pub polling: Option<Duration>,
}

impl QueueChange {
    /// Whether it changes nothing: such a change is neither checked nor written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it sets a limit of a partition, which needs the capability.
    #[must_use]
    pub fn sets_partition(&self) -> bool {
        self.partition_concurrency.sets() || self.partition_worker_concurrency.sets() || self.partition_rate.sets()
    }

    /// The queue with this change, checked as a whole; the revision is the caller's to move.
    ///
    /// # Errors
    /// Names the field: as [`Limits::check`], a zero interval, or a partition limit on a legacy row.
    pub fn merge(&self, queue: &Queue) -> Result<Queue, FieldError> {
        let partition = [
            ("partition_concurrency", self.partition_concurrency.sets()),
            ("partition_worker_concurrency", self.partition_worker_concurrency.sets()),
            ("partition_rate", self.partition_rate.sets()),
        ];
        if let Some((field, _)) = partition.iter().find(|(_, sets)| *sets && queue.is_legacy()) {
            return Err(FieldError::new(*field, "the queue is partitioned by an older peer's flag"));
        }
        let mut merged = queue.clone();
        let limits = &mut merged.stored;
        self.concurrency.apply(&mut limits.concurrency);
        self.worker_concurrency.apply(&mut limits.worker_concurrency);
        self.rate.apply(&mut limits.rate);
        self.partition_concurrency.apply(&mut limits.partition_concurrency);
        self.partition_worker_concurrency.apply(&mut limits.partition_worker_concurrency);
        self.partition_rate.apply(&mut limits.partition_rate);
        merged.polling = self.polling.unwrap_or(merged.polling);
        if !queue.is_legacy() {
            merged.partition_flag = merged.stored.partitioned();
        }
        merged.check()?;
        Ok(merged)
    }
}

impl Queue {
    /// The first field that may not be registered.
    ///
    /// # Errors
    /// Names the field: the name (the internal queue's is reserved), a limit, or the polling interval.
    pub fn check(&self) -> Result<(), FieldError> {
        Bounds::default().name("name", self.name.as_str())?;
        if self.name == *wire::INTERNAL_QUEUE {
            return Err(FieldError::new("name", "is reserved"));
        }
        self.stored.check()?;
        bounded("polling", self.polling)
    }
}

/// Longest rate window and polling interval: a year. What no clock of a database can add to a time must not be stored, and
/// nobody waits longer.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

fn bounded(field: &str, time: Duration) -> Result<(), FieldError> {
    if time.as_millis() == 0 {
        return Err(FieldError::new(field, "must be at least a millisecond"));
    }
    if time > LONGEST {
        return Err(FieldError::new(field, "must be at most a year"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(starts: u32, secs: u64) -> Option<Rate> {
        Some(Rate { starts, period: Duration::from_secs(secs) })
    }

    fn queue(stored: Limits) -> Queue {
        Queue::new("q", Revision(1)).stored(stored)
    }

    #[test]
    fn incoherent_limits_are_refused_with_the_field_named() {
        let none = Limits::default();
        let cases = [
            ("concurrency", Limits { concurrency: Some(0), ..none }),
            ("worker_concurrency", Limits { worker_concurrency: Some(0), ..none }),
            ("worker_concurrency", Limits { concurrency: Some(1), worker_concurrency: Some(2), ..none }),
            ("rate.starts", Limits { rate: rate(0, 1), ..none }),
            ("rate.period", Limits { rate: rate(1, 0), ..none }),
            ("concurrency", Limits { concurrency: Some(1 << 31), ..none }),
            ("worker_concurrency", Limits { worker_concurrency: Some(u32::MAX), ..none }),
            ("rate.starts", Limits { rate: rate(1 << 31, 1), ..none }),
            ("rate.period", Limits { rate: Some(Rate { starts: 1, period: Duration::MAX }), ..none }),
            ("partition_concurrency", Limits { partition_concurrency: Some(0), ..none }),
            ("partition_concurrency", Limits { concurrency: Some(1), partition_concurrency: Some(2), ..none }),
            ("partition_worker_concurrency", Limits { partition_worker_concurrency: Some(0), ..none }),
            (
                "partition_worker_concurrency",
                Limits { worker_concurrency: Some(1), partition_worker_concurrency: Some(2), ..none },
            ),
            (
                "partition_worker_concurrency",
                Limits { partition_concurrency: Some(1), partition_worker_concurrency: Some(2), ..none },
            ),
            (
                "partition_worker_concurrency",
                Limits { concurrency: Some(1), partition_worker_concurrency: Some(2), ..none },
            ),
            ("partition_rate.starts", Limits { partition_rate: rate(0, 1), ..none }),
            ("partition_rate.period", Limits { partition_rate: rate(1, 0), ..none }),
            ("partition_rate", Limits { rate: rate(1, 60), partition_rate: rate(1, 59), ..none }),
        ];
        for (field, limits) in cases {
            assert_eq!(limits.check().expect_err(field).field, field, "{limits:?}");
        }
    }

    #[test]
    fn equal_limits_and_none_are_accepted() {
        let equal = Limits {
            concurrency: Some(2),
            worker_concurrency: Some(2),
            rate: rate(2, 60),
            partition_concurrency: Some(2),
            partition_worker_concurrency: Some(2),
            partition_rate: rate(1, 30),
        };
        assert_eq!((equal.check(), Limits::default().check()), (Ok(()), Ok(())));
    }

    #[test]
    fn a_legacy_row_is_enforced_for_each_key_and_nothing_is_added() {
        let stored = Limits { concurrency: Some(3), rate: rate(5, 1), ..Limits::default() };
        let resolved = queue(stored).partition_flag(true).limits();
        let expected = Limits { partition_concurrency: Some(3), partition_rate: rate(5, 1), ..Limits::default() };
        assert_eq!(resolved, expected);
        assert_eq!(queue(stored).limits(), stored);
        assert_eq!(queue(Limits::default()).partition_flag(true).limits(), Limits::default());
        let both = Limits { partition_concurrency: Some(1), ..stored };
        assert_eq!(queue(both).partition_flag(true).limits(), both);
    }

    #[test]
    fn a_change_is_checked_against_what_is_stored() {
        let stored = queue(Limits { concurrency: Some(2), ..Limits::default() });
        let over = QueueChange { worker_concurrency: Change::Set(3), ..QueueChange::default() };
        assert_eq!(over.merge(&stored).expect_err("over").field, "worker_concurrency");
        let both = QueueChange { concurrency: Change::Clear, ..over };
        let merged = both.merge(&stored).expect("merged");
        assert_eq!((merged.stored.concurrency, merged.stored.worker_concurrency), (None, Some(3)));
        let legacy = stored.partition_flag(true);
        let key = QueueChange { partition_concurrency: Change::Set(1), ..QueueChange::default() };
        assert_eq!(key.merge(&legacy).expect_err("legacy").field, "partition_concurrency");
    }

    #[test]
    fn the_internal_queue_cannot_be_registered() {
        let internal = Queue::new(wire::INTERNAL_QUEUE, Revision(1));
        assert_eq!(internal.check().expect_err("reserved").field, "name");
        let still = queue(Limits::default()).polling(Duration::ZERO);
        assert_eq!(still.check().expect_err("interval").field, "polling");
    }
}
