//! Which message is met with which fault: pure, but for telling the test that it was.

use super::message::Message;
use std::fmt;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How a client learns that its connection has ended; the server's side is closed in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// An end of the stream.
    #[default]
    Close,
    /// A reset.
    Reset,
    /// Not at all: the connection stays half open until [`super::Proxy::heal`].
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Before(End),
    After(End),
    Delay(Duration),
}

/// The n-th message that matches, and what is done when it comes: it is cut before unless something else is said.
pub struct Rule {
    matches: Box<dyn Fn(&Message) -> bool + Send>,
    left: u64,
    act: Act,
}

impl Rule {
    /// The n-th COMMIT from now on, counted from 1 over all connections.
    pub fn commit(n: u64) -> Self {
        Self::message(n, Message::is_commit)
    }

    /// The n-th message from now on of which the predicate is true, counted from 1 over all connections.
    pub fn message(n: u64, matches: impl Fn(&Message) -> bool + Send + 'static) -> Self {
        Self { matches: Box::new(matches), left: n.max(1), act: Act::Before(End::Close) }
    }

    /// Ends the connection instead of forwarding the message.
    #[must_use]
    pub fn cut_before(mut self, end: End) -> Self {
        self.act = Act::Before(end);
        self
    }

    /// Forwards the message and what follows up to the next Sync, lets the server finish, and ends the connection
    /// without a word of the answer.
    #[must_use]
    pub fn cut_after(mut self, end: End) -> Self {
        self.act = Act::After(end);
        self
    }

    /// Holds the message, and what follows on its connection, back for this long.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.act = Act::Delay(delay);
        self
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("left", &self.left).field("act", &self.act).finish_non_exhaustive()
    }
}

/// Whether a rule has done what it says; for a cut after a message, that the server has finished as well.
#[derive(Clone, Debug)]
pub struct Fired(watch::Receiver<bool>);

impl Fired {
    /// Whether it has.
    pub fn has_fired(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it has, for ever if need be; a rule that is taken back never does, and this returns `false`.
    pub async fn wait(&mut self) -> bool {
        self.0.wait_for(|fired| *fired).await.is_ok()
    }

    /// Waits on this thread until it has. Panics: when it takes longer than the limit.
    pub fn wait_blocking(&self, limit: Duration) {
        let begun = Instant::now();
        while !self.has_fired() {
            assert!(begun.elapsed() < limit, "the rule has not fired within {limit:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What is done with one message.
#[derive(Debug)]
pub(crate) enum Verdict {
    Pass,
    Delay(Duration, Notice),
    Before(End, Notice),
    After(End, Notice),
}

/// Tells the test once the fault is done.
#[derive(Debug)]
pub(crate) struct Notice(watch::Sender<bool>);

impl Notice {
    pub(crate) fn tell(&self) {
        self.0.send_replace(true);
    }
}

/// The rules that have not fired, in the order in which they were given.
#[derive(Debug, Default)]
pub(crate) struct Script {
    rules: Vec<(Rule, Notice)>,
}

impl Script {
    pub(crate) fn add(&mut self, rule: Rule) -> Fired {
        let (sender, receiver) = watch::channel(false);
        self.rules.push((rule, Notice(sender)));
        Fired(receiver)
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    /// Counts a message for every rule; the first one that is due decides and is gone.
    pub(crate) fn judge(&mut self, message: &Message) -> Verdict {
        let mut due = None;
        for (index, (rule, _)) in self.rules.iter_mut().enumerate() {
            if (rule.matches)(message) {
                rule.left = rule.left.saturating_sub(1);
                due = due.or((rule.left == 0).then_some(index));
            }
        }
        let Some(index) = due else { return Verdict::Pass };
        let (rule, notice) = self.rules.remove(index);
        match rule.act {
            Act::Before(end) => Verdict::Before(end, notice),
            Act::After(end) => Verdict::After(end, notice),
            Act::Delay(delay) => Verdict::Delay(delay, notice),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Kind;
    use super::*;

    fn message(sql: &str) -> Message {
        Message { connection: 1, kind: Kind::Query, sql: Some(sql.into()) }
    }

    #[test]
    fn a_rule_fires_at_its_nth_message_and_once() {
        let mut script = Script::default();
        script.add(Rule::commit(2).cut_before(End::Reset));
        assert!(matches!(script.judge(&message("COMMIT")), Verdict::Pass));
        assert!(matches!(script.judge(&message("SELECT 1")), Verdict::Pass));
        assert!(matches!(script.judge(&message("COMMIT")), Verdict::Before(End::Reset, _)));
        assert!(matches!(script.judge(&message("COMMIT")), Verdict::Pass));
    }

    #[test]
    fn rules_count_beside_each_other_and_two_that_are_due_fire_in_turn() {
        let mut script = Script::default();
        script.add(Rule::commit(1).cut_after(End::Close));
        script.add(Rule::message(1, |message| message.sql().contains('I')).delay(Duration::from_secs(1)));
        assert!(matches!(script.judge(&message("COMMIT")), Verdict::After(End::Close, _)));
        assert!(matches!(script.judge(&message("BEGIN")), Verdict::Delay(..)));
        assert!(matches!(script.judge(&message("BEGIN")), Verdict::Pass));
    }

    #[test]
    fn a_rule_that_is_taken_back_never_fires() {
        let mut script = Script::default();
        let fired = script.add(Rule::commit(1));
        script.clear();
        assert!(matches!(script.judge(&message("COMMIT")), Verdict::Pass));
        assert!(!fired.has_fired());
    }
}
