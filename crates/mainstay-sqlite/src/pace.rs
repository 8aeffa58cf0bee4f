//! How often the writer looks and when it steps aside: plain decisions, without a clock of their own.

use std::time::Duration;

use mainstay_env::Monotonic;

/// How often another process's writes are looked for while calls come in.
const LOOK: Duration = Duration::from_millis(10);

/// The same when no call has come for [`QUIET`].
const LOOK_IDLE: Duration = Duration::from_millis(250);

/// How long after a call more work is expected. An engine ticks every second.
const QUIET: Duration = Duration::from_secs(3);

/// The file's lock is asked for again after these, the last one over and over. SQLite wakes nobody who waits for it.
const RETRY: [Duration; 4] =
    [Duration::from_micros(100), Duration::from_micros(200), Duration::from_micros(500), Duration::from_millis(1)];

/// How long the writer steps aside after a commit when another process writes too: longer than that one's next try.
const ASIDE: Duration = Duration::from_micros(1_500);

/// For how many of its own transactions the writer goes on stepping aside after it has seen another's.
const COURTESY: u32 = 8;

/// A writer that has not been idle for this long steps aside for a moment, in case another process waits unseen.
const LONG: Duration = Duration::from_millis(100);

/// When to look, and when to step aside.
#[derive(Debug)]
pub(crate) struct Pace {
    version: i64,
    worked: Option<Monotonic>,
    aside: Option<Monotonic>,
    courtesy: u32,
}

impl Pace {
    /// Begins at the given version of the file.
    pub(crate) fn new(version: i64) -> Self {
        Self { version, worked: None, aside: None, courtesy: 0 }
    }

    /// A call came.
    pub(crate) fn worked(&mut self, now: Monotonic) {
        self.worked = Some(now);
    }

    /// No call is waiting: the file is free for others meanwhile.
    pub(crate) fn idle(&mut self, now: Monotonic) {
        self.aside = Some(now);
    }

    /// How long to wait for a call before looking at the file.
    pub(crate) fn interval(&self, now: Monotonic) -> Duration {
        let busy = self.worked.is_some_and(|worked| now.since(worked) < QUIET);
        if busy { LOOK } else { LOOK_IDLE }
    }

    /// Whether the file was changed by another process since the last time, given its version now.
    pub(crate) fn is_news(&mut self, version: i64) -> bool {
        let news = version != self.version;
        self.version = version;
        if news {
            self.courtesy = COURTESY;
        }
        news
    }

    /// Another process was in the way.
    pub(crate) fn crowded(&mut self) {
        self.courtesy = COURTESY;
    }

    /// How long to wait before the file is asked for again.
    pub(crate) fn retry(tries: usize) -> Duration {
        RETRY[tries.min(RETRY.len() - 1)]
    }

    /// After a commit: how long to leave the file to others, if at all.
    pub(crate) fn yields(&mut self, now: Monotonic) -> Option<Duration> {
        let long = self.aside.is_some_and(|aside| now.since(aside) >= LONG);
        if self.courtesy == 0 && !long {
            return None;
        }
        self.courtesy = self.courtesy.saturating_sub(1);
        self.aside = Some(now);
        Some(ASIDE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic(Duration::from_millis(millis))
    }

    #[test]
    fn it_looks_often_while_calls_come_and_seldom_afterwards() {
        let mut pace = Pace::new(1);
        assert_eq!(pace.interval(at(0)), LOOK_IDLE);
        pace.worked(at(10));
        assert_eq!(pace.interval(at(3_009)), LOOK);
        assert_eq!(pace.interval(at(3_010)), LOOK_IDLE);
    }

    #[test]
    fn it_steps_aside_after_each_commit_while_another_process_writes() {
        let mut pace = Pace::new(1);
        pace.idle(at(0));
        assert_eq!(pace.yields(at(1)), None);
        assert!(pace.is_news(2));
        for _ in 0..COURTESY {
            assert_eq!(pace.yields(at(2)), Some(ASIDE));
        }
        assert_eq!(pace.yields(at(3)), None);
    }

    #[test]
    fn it_steps_aside_now_and_then_for_one_that_waits_unseen() {
        let mut pace = Pace::new(1);
        pace.idle(at(0));
        assert_eq!(pace.yields(at(99)), None);
        assert_eq!(pace.yields(at(100)), Some(ASIDE));
        assert_eq!(pace.yields(at(199)), None);
        pace.idle(at(150));
        assert_eq!(pace.yields(at(249)), None, "it was idle, which served as well");
    }

    #[test]
    fn the_same_version_is_no_news() {
        let mut pace = Pace::new(1);
        assert!(!pace.is_news(1));
        assert!(pace.is_news(2));
        assert!(!pace.is_news(2));
    }

    #[test]
    fn tries_become_rarer_up_to_a_millisecond() {
        assert_eq!(Pace::retry(0), Duration::from_micros(100));
        assert_eq!(Pace::retry(1_000), Duration::from_millis(1));
    }
}
