//! What a handle remembers of the queues that it claims from: their rows, and where in front nothing is for it.
//!
//! Both are guesses that a claim checks: a queue's revision is compared inside the statement, and a hole counts only for who it
//! was found for, while unversioned rows are to it what they were.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{AppName, Limits, QueueName, Registered, Token, VersionName};

/// A claim that takes longer may have met a stretch of rows that nobody takes any more. Source: record 0003, where a claim
/// of 64 takes 8 ms and one that reads 100,000 such rows 37 ms.
const LONG: Duration = Duration::from_millis(20);

/// A look is made so many times more seldom than it takes long: 1 % of a connection, where [`REST`] does not end it before.
const SELDOM: u32 = 100;

/// The longest pause after a look, whatever it took: a row that comes back into a hole is hidden for no longer.
const REST: Duration = Duration::from_secs(5);

/// How long a hole holds after the server was asked: a look that waits for a connection, or that fails, keeps none alive. A
/// claim without it pays for the stretch and is right.
const HOLDS: Duration = Duration::from_secs(10);

/// What a claim is planned with.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    /// Of the queue's row; none for the internal queue.
    pub(crate) revision: Option<i64>,
    pub(crate) limits: Limits,
}

/// Who claims or probes: what a hole is found for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) app: AppName,
    pub(crate) version: VersionName,
    pub(crate) names: Vec<Registered>,
}

impl Asker {
    /// Names, classes and configured instances side by side; an empty text for none.
    pub(crate) fn columns(&self) -> [Vec<&str>; 3] {
        let names = self.names.iter().map(|known| known.name.as_str()).collect();
        let classes = self.names.iter().map(|known| known.class.as_ref().map_or("", AsRef::as_ref)).collect();
        let configs = self.names.iter().map(|known| known.config.as_ref().map_or("", AsRef::as_ref)).collect();
        [names, classes, configs]
    }
}

/// The front of one priority, where nothing is for the asker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) priority: i32,
    /// Rows created before this are in it.
    pub(crate) to: i64,
    /// Whether the asker could take unversioned rows when it was found.
    pub(crate) latest: bool,
}

/// A look: when the server was asked, when it had answered, and what it has found.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) asked: Monotonic,
    pub(crate) answered: Monotonic,
    pub(crate) found: Option<(Asker, Hole)>,
}

/// When to look for a hole, and what the last look has found.
#[derive(Debug, Default)]
struct Looks {
    under_way: bool,
    /// Whether a row has come back since the one under way began: what it finds may be no hole any more.
    outdated: bool,
    last: Option<Look>,
}

impl Looks {
    fn is_due(&self, now: Monotonic, took: Duration) -> bool {
        let Some(Look { asked, answered, found }) = &self.last else { return !self.under_way && took > LONG };
        let rest = answered.since(*asked).saturating_mul(SELDOM).min(REST);
        !self.under_way && now.since(*answered) >= rest && (took > LONG || found.is_some())
    }
}

#[derive(Debug, Default)]
struct Front {
    planned: Option<Arc<Planned>>,
    looks: Looks,
}

/// Claims of one token go one after another.
pub(crate) type Turn = tokio::sync::Mutex<()>;

/// The queues of a handle.
#[derive(Debug, Default)]
pub(crate) struct Fronts {
    queues: Mutex<BTreeMap<QueueName, Front>>,
    trimmed: Mutex<Option<Monotonic>>,
    turns: Mutex<BTreeMap<Token, Weak<Turn>>>,
}

impl Fronts {
    fn all(&self) -> MutexGuard<'_, BTreeMap<QueueName, Front>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turns of a token. Those of claims that are over are forgotten.
    pub(crate) fn turn(&self, token: &Token) -> Arc<Turn> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(token).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::<Turn>::default();
        turns.insert(token.clone(), Arc::downgrade(&turn));
        turn
    }

    /// Whether old notes of claims are to be removed now: they were not within `pause`.
    pub(crate) fn begin_trim(&self, now: Monotonic, pause: Duration) -> bool {
        let mut trimmed = self.trimmed.lock().unwrap_or_else(PoisonError::into_inner);
        let due = trimmed.is_none_or(|at| now.since(at) >= pause);
        if due {
            *trimmed = Some(now);
        }
        due
    }

    /// What was last read of a queue.
    pub(crate) fn planned(&self, queue: &QueueName) -> Option<Arc<Planned>> {
        self.all().get(queue)?.planned.clone()
    }

    /// Keeps what was read of a queue.
    pub(crate) fn keep(&self, queue: &QueueName, planned: Arc<Planned>) {
        self.all().entry(queue.clone()).or_default().planned = Some(planned);
    }

    /// Forgets a queue: it is not what it was.
    pub(crate) fn forget(&self, queue: &QueueName) {
        self.all().remove(queue);
    }

    /// The hole in front of a queue.
    pub(crate) fn hole(&self, queue: &QueueName, asker: &Asker, now: Monotonic) -> Option<Hole> {
        let all = self.all();
        let last = all.get(queue)?.looks.last.as_ref()?;
        let (found_for, hole) = last.found.as_ref()?;
        (found_for == asker && now.since(last.asked) < HOLDS).then_some(*hole)
    }

    /// Whether to look for a hole after a claim that took so long; then the caller must say what it has found.
    pub(crate) fn begin_look(&self, queue: &QueueName, now: Monotonic, took: Duration) -> bool {
        let mut all = self.all();
        let looks = match all.get_mut(queue) {
            Some(front) => &mut front.looks,
            None if took > LONG => &mut all.entry(queue.clone()).or_default().looks,
            None => return false,
        };
        let due = looks.is_due(now, took);
        if due {
            (looks.under_way, looks.outdated) = (true, false);
        }
        due
    }

    /// What a look has found, and what it cost.
    pub(crate) fn end_look(&self, queue: &QueueName, mut look: Look) {
        let mut all = self.all();
        let looks = &mut all.entry(queue.clone()).or_default().looks;
        look.found = look.found.filter(|_| !looks.outdated);
        *looks = Looks { last: Some(look), ..Looks::default() };
    }

    /// Forgets the holes of queues that this process has given rows back to. Each row that is new goes behind its hole, so
    /// that queues that only grow keep theirs.
    pub(crate) fn returned<'q>(&self, queues: impl IntoIterator<Item = &'q QueueName>) {
        let mut all = self.all();
        for queue in queues {
            let Some(Front { looks, .. }) = all.get_mut(queue) else { continue };
            looks.outdated = looks.under_way;
            if let Some(last) = &mut looks.last {
                last.found = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLE: Hole = Hole { priority: 0, to: 9, latest: true };

    fn at(millis: u64) -> Monotonic {
        Monotonic(ms(millis))
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn asker(version: &str) -> Asker {
        Asker { app: "shop".into(), version: version.into(), names: vec![Registered::new("work")] }
    }

    /// A look that took so long, and was answered then.
    fn look(answered: Monotonic, cost: Duration, found: Option<(Asker, Hole)>) -> Look {
        Look { asked: Monotonic(answered.since(at(0)).saturating_sub(cost)), answered, found }
    }

    #[test]
    fn a_quick_claim_asks_for_no_look() {
        let (fronts, queue) = (Fronts::default(), "q".into());
        assert!(!fronts.begin_look(&queue, at(0), LONG));
        assert!(fronts.begin_look(&queue, at(0), ms(21)));
        assert!(!fronts.begin_look(&queue, at(0), ms(21)), "one is under way");
    }

    #[test]
    fn looks_cost_one_percent_of_a_connection() {
        let (fronts, queue) = (Fronts::default(), "q".into());
        assert!(fronts.begin_look(&queue, at(0), ms(21)));
        fronts.end_look(&queue, look(at(22), ms(22), None));
        assert!(!fronts.begin_look(&queue, at(2_221), ms(21)));
        assert!(fronts.begin_look(&queue, at(2_222), ms(21)));
    }

    #[test]
    fn a_known_hole_is_looked_at_again_after_quick_claims() {
        let (fronts, queue) = (Fronts::default(), "q".into());
        fronts.end_look(&queue, look(at(10), ms(1), Some((asker("v1"), HOLE))));
        assert!(!fronts.begin_look(&queue, at(109), ms(1)));
        assert!(fronts.begin_look(&queue, at(110), ms(1)));
    }

    #[test]
    fn a_known_hole_is_looked_at_again_within_seconds_whatever_the_last_look_cost() {
        let (fronts, queue) = (Fronts::default(), "q".into());
        fronts.end_look(&queue, look(at(5_000), ms(5_000), Some((asker("v1"), HOLE))));
        assert!(!fronts.begin_look(&queue, at(9_999), ms(1)));
        assert!(fronts.begin_look(&queue, at(10_000), ms(1)));
    }

    #[test]
    fn a_hole_that_no_look_has_confirmed_for_long_hides_nothing() {
        let (fronts, queue) = (Fronts::default(), "q".into());
        fronts.end_look(&queue, look(at(3), ms(3), Some((asker("v1"), HOLE))));
        assert!(fronts.begin_look(&queue, at(5_003), ms(1)), "this one gets no connection");
        assert_eq!(fronts.hole(&queue, &asker("v1"), at(9_999)), Some(HOLE));
        assert_eq!(fronts.hole(&queue, &asker("v1"), at(10_000)), None);
    }

    #[test]
    fn a_hole_ends_with_a_row_that_comes_back_even_while_it_is_looked_at() {
        let (fronts, queue) = (Fronts::default(), "q".into());
        let found = || look(at(1), ms(1), Some((asker("v1"), HOLE)));
        fronts.end_look(&queue, found());
        fronts.returned([&queue]);
        assert_eq!(fronts.hole(&queue, &asker("v1"), at(1)), None);
        assert!(fronts.begin_look(&queue, at(200), ms(21)));
        fronts.returned([&queue]);
        fronts.end_look(&queue, found());
        assert_eq!(fronts.hole(&queue, &asker("v1"), at(1)), None);
        assert!(fronts.begin_look(&queue, at(200), ms(21)));
        fronts.end_look(&queue, found());
        assert_eq!(fronts.hole(&queue, &asker("v1"), at(1)), Some(HOLE));
    }

    #[test]
    fn a_hole_is_for_whom_it_was_found() {
        let (fronts, queue) = (Fronts::default(), "q".into());
        fronts.end_look(&queue, look(at(1), ms(1), Some((asker("v1"), HOLE))));
        assert_eq!(fronts.hole(&queue, &asker("v1"), at(1)), Some(HOLE));
        assert_eq!(fronts.hole(&queue, &asker("v2"), at(1)), None);
        fronts.forget(&queue);
        assert_eq!(fronts.hole(&queue, &asker("v1"), at(1)), None);
    }
}
