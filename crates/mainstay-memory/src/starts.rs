//! Starts of a queue with a rate: what a window counts.

use std::collections::VecDeque;
use std::time::Duration;

use mainstay_store::{PartitionKey, Rate, Timestamp};

/// How long a start is kept at least, so that a window that is made longer finds what it has to count.
const KEPT: Duration = Duration::from_secs(3600);

/// Starts of one queue, oldest first: an operation's clock never goes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Starts(VecDeque<(Timestamp, Option<PartitionKey>)>);

impl Starts {
    /// Notes a start, and forgets those that no window of this rate or of an hour can count any more.
    pub(crate) fn record(&mut self, now: Timestamp, key: Option<PartitionKey>, rate: Rate) {
        let gone = now - rate.period.max(KEPT);
        while self.0.front().is_some_and(|(at, _)| *at <= gone) {
            self.0.pop_front();
        }
        self.0.push_back((now, key));
    }

    /// Those in `(now - period, now]`, counted up to the limit, and when the oldest one counted leaves.
    pub(crate) fn within(&self, now: Timestamp, rate: Rate) -> mainstay_store::Starts {
        let outside = self.0.partition_point(|(at, _)| *at <= now - rate.period);
        let count = (self.0.len() - outside).min(rate.starts as usize);
        let oldest = if count == 0 { None } else { self.0.get(self.0.len() - count) };
        mainstay_store::Starts {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            opens_in: oldest.map(|(at, _)| (*at + rate.period).since(now)),
        }
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.0.iter().zip(self.0.iter().skip(1)).all(|(a, b)| a.0 <= b.0)
    }
}
