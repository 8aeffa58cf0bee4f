//! When the own rows are looked through, and which of them run nowhere. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{AuditCursor, Fence, HeldRow, Token};

use crate::tally::Tally;

/// An audit may take one part in this many of a connection's time.
const SHARE: u32 = 100;
/// Most that one page is charged: what takes longer waits for a lock or a network, and costs the store nothing.
const CHARGE: Duration = Duration::from_millis(300);
/// Longest rest after failures in a row.
const FAILED: Duration = Duration::from_secs(30);
/// How soon the next audit comes when there is reason to suspect something, if its share allows.
const SUSPECT: Duration = Duration::from_secs(1);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditInput {
    /// A page came, after so much time; there are more when it names where it ended.
    Page(Duration, Option<AuditCursor>),
    /// A page failed.
    Failed,
    /// Rows may be held that run nowhere.
    Suspect,
    /// Another executor is to be audited: the walk begins anew.
    Renewed,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditStep {
    /// Read the page after this.
    Read(Option<AuditCursor>),
    /// Ask again then.
    Wait(Monotonic),
}

/// The rhythm of the self-audit.
#[derive(Clone, Debug)]
pub struct AuditPlan {
    least: Duration,
    next_at: Monotonic,
    allowed_at: Monotonic,
    spent: Duration,
    after: Option<AuditCursor>,
    walking: bool,
    failures: u32,
    finished: u64,
}

impl AuditPlan {
    /// The first audit comes one `least` interval after `now`.
    #[must_use]
    pub fn new(now: Monotonic, least: Duration) -> Self {
        Self {
            least,
            next_at: now + least,
            allowed_at: now,
            spent: Duration::ZERO,
            after: None,
            walking: false,
            failures: 0,
            finished: 0,
        }
    }

    /// Audits that went through all pages.
    #[must_use]
    pub const fn finished(&self) -> u64 {
        self.finished
    }

    /// Takes an input.
    pub fn tell(&mut self, now: Monotonic, input: AuditInput) {
        match input {
            AuditInput::Page(took, next) => {
                self.failures = 0;
                self.spent = self.spent.saturating_add(took.min(CHARGE));
                self.after = next;
                if self.after.is_none() {
                    self.finished += 1;
                    self.rest(now);
                }
            }
            AuditInput::Failed => self.fail(now),
            AuditInput::Suspect => self.next_at = self.next_at.min(now + SUSPECT).max(self.allowed_at),
            AuditInput::Renewed => (self.after, self.walking) = (None, false),
        }
    }

    /// What to do now; asked again before the page that it wants has been told of, it wants the same.
    pub fn next(&mut self, now: Monotonic) -> AuditStep {
        if !self.walking && now < self.next_at {
            return AuditStep::Wait(self.next_at);
        }
        self.walking = true;
        AuditStep::Read(self.after.clone())
    }

    /// What was spent is a hundredth at most of the time until the next audit.
    fn rest(&mut self, now: Monotonic) {
        let share = self.spent.saturating_mul(SHARE);
        (self.after, self.walking, self.spent) = (None, false, Duration::ZERO);
        self.allowed_at = now + share;
        self.next_at = now + share.max(self.least);
    }

    /// Walks anew, later with each failure.
    fn fail(&mut self, now: Monotonic) {
        let doubled = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        self.rest(now);
        self.next_at = self.next_at.max(now + self.least.saturating_mul(doubled).min(FAILED));
    }
}

/// The held rows that neither run here nor belong to a claim whose answer is still awaited.
#[must_use]
pub fn lost_rows(held: &[HeldRow], tally: &Tally, outstanding: &BTreeSet<Token>) -> Vec<Fence> {
    held.iter()
        .filter(|row| !tally.accounts_for(row))
        .filter(|row| row.token.as_ref().is_none_or(|token| !outstanding.contains(token)))
        .map(|row| row.fence.clone())
        .collect()
}
