//! How many rows a claim may take: the only place that decides it.
//!
//! Pure. A backend asks [`Admission::needs`] which counts are wanted, reads those inside its claim, and obeys what
//! [`Admission::decide`] makes of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{Limits, PartitionKey, Queue, Rate};

/// What runs in this process of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    /// Of the whole queue.
    pub running: u32,
    /// Of each partition key; missing is 0.
    pub keys: BTreeMap<PartitionKey, u32>,
}

/// The counts that a decision needs, each with the bound beyond which it need not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// What the batch and the process limit leave; at 0 nothing need be read.
    pub room: u32,
    /// Pending rows of the queue, counted up to this.
    pub running: Option<u32>,
    /// Starts of the queue in this window, counted up to its limit.
    pub starts: Option<Rate>,
    /// Pending rows of each key, counted up to this.
    pub key_running: Option<u32>,
    /// Starts of each key in this window, counted up to its limit.
    pub key_starts: Option<Rate>,
}

/// Starts in a window that ends now and leaves out its first moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// How many, counted up to the limit.
    pub count: u32,
    /// When the oldest of the latest `limit` starts leaves the window; given for a window that is not full as well,
    /// because the claim that fills it must say when it opens.
    pub opens_in: Option<Duration>,
}

/// What was counted for one partition key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCounts {
    /// The key.
    pub key: PartitionKey,
    /// Its pending rows.
    pub running: u32,
    /// Its starts.
    pub starts: Starts,
}

/// What was counted; a count that [`Needs`] did not ask for stays at its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pending rows of the queue: every version and executor, dead ones too.
    pub running: u32,
    /// Starts of the queue.
    pub starts: Starts,
    /// In rotation order: the first key after the cursor first.
    pub keys: Vec<KeyCounts>,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reach {
    /// All processes together.
    Fleet,
    /// This process.
    Process,
    /// Every key that has rows.
    Key,
}

/// Why a claim took no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Stop {
    /// Fewer eligible rows were found than might have been taken.
    Drained,
    /// The batch is full, or rows were parked in it; there may be more.
    More,
    /// A limit is reached.
    Limit(Reach),
    /// A rate window is full and opens after this time.
    RateIn(Duration),
    /// A peer holds the queue; nothing was taken.
    Contended,
    /// The queue is not registered; nothing was taken.
    NoQueue,
    /// The queue's row has changed since the claim was planned; nothing was taken.
    Stale(Box<Queue>),
    /// The executor's lease is ended or gone; nothing was taken.
    Unleased,
}

/// How many rows may be taken. Selection is fixed: the first row of every key in rotation order, then the second of
/// every key, up to `total`; without partitions the first `total` rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowance {
    /// In all.
    pub total: u32,
    /// For each key, in the order of the counts.
    pub keys: Vec<(PartitionKey, u32)>,
    /// What to answer when `total` rows were taken, none of them parked.
    pub full: Stop,
    /// What to answer when fewer were taken because keys stood in the way of eligible rows.
    pub short: Stop,
}

/// Decides what one claim may take.
///
/// ```
/// use mainstay_store::{Admission, Counts, Limits, Local, Reach, Stop};
/// let limits = Limits { concurrency: Some(3), ..Limits::default() };
/// let local = Local::default();
/// let admission = Admission { limits: &limits, local: &local, budget: 10 };
/// assert_eq!(admission.needs().running, Some(3));
/// let allowance = admission.decide(&Counts { running: 2, ..Counts::default() });
/// assert_eq!((allowance.total, allowance.full), (1, Stop::Limit(Reach::Fleet)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Admission<'a> {
    /// The resolved limits of the queue, as read inside the claim.
    pub limits: &'a Limits,
    /// What runs in the claiming process.
    pub local: &'a Local,
    /// Most rows of this claim.
    pub budget: u32,
}

impl Admission<'_> {
    /// Which counts are wanted: none when the process has no room.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let room = self.budget.min(left(self.limits.worker_concurrency, self.local.running));
        if room == 0 {
            return Needs { room, running: None, starts: None, key_running: None, key_starts: None };
        }
        Needs {
            room,
            running: self.limits.concurrency,
            starts: self.limits.rate,
            key_running: self.limits.partition_concurrency,
            key_starts: self.limits.partition_rate,
        }
    }

    /// What may be taken: exactly what every limit leaves, and no less.
    ///
    /// Where several limits bind at once, the stop names the one that its receiver can watch best: the process, then
    /// the window, then the fleet, then the batch.
    #[must_use]
    pub fn decide(&self, counts: &Counts) -> Allowance {
        let process = left(self.limits.worker_concurrency, self.local.running);
        let rate = left(self.limits.rate.map(|rate| rate.starts), counts.starts.count);
        let fleet = left(self.limits.concurrency, counts.running);
        let total = self.budget.min(process).min(rate).min(fleet);
        let full = match total {
            n if n == process => Stop::Limit(Reach::Process),
            n if n == rate => Stop::RateIn(opening(&counts.starts, self.limits.rate)),
            n if n == fleet => Stop::Limit(Reach::Fleet),
            _ => Stop::More,
        };
        let mut opens: Option<Duration> = None;
        let mut keys = Vec::with_capacity(counts.keys.len());
        for count in &counts.keys {
            let local = self.local.keys.get(&count.key).copied().unwrap_or(0);
            let room = left(self.limits.partition_worker_concurrency, local)
                .min(left(self.limits.partition_concurrency, count.running));
            let rate = left(self.limits.partition_rate.map(|rate| rate.starts), count.starts.count);
            if rate < room {
                let opening = opening(&count.starts, self.limits.partition_rate);
                opens = Some(opens.map_or(opening, |earliest| earliest.min(opening)));
            }
            keys.push((count.key.clone(), room.min(rate)));
        }
        Allowance { total, keys, full, short: opens.map_or(Stop::Limit(Reach::Key), Stop::RateIn) }
    }
}

fn left(limit: Option<u32>, used: u32) -> u32 {
    limit.map_or(u32::MAX, |limit| limit.saturating_sub(used))
}

/// When a window opens that this very claim fills: its first start then leaves after the whole period.
fn opening(starts: &Starts, rate: Option<Rate>) -> Duration {
    starts.opens_in.or(rate.map(|rate| rate.period)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
