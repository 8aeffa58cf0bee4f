//! The states of a workflow row and the moves between them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// State of a workflow row. The ended ones are written through [`super::Outcome`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    /// Waits on a queue until its delay has passed.
    Delayed,
    /// Waits on a queue.
    Enqueued,
    /// Owned by an executor.
    Pending,
    /// Ended with a value.
    Success,
    /// Ended with an error.
    Error,
    /// Ended by a cancellation or a passed deadline.
    Cancelled,
    /// Set aside after too many attempts, or because it cannot be replayed; a resume takes it up again.
    Parked,
}

/// What moves a row from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Move {
    /// A claim takes it for an executor.
    Claim,
    /// Its delay has passed.
    Release,
    /// Its execution ends with a value.
    Succeed,
    /// Its execution ends with an error.
    Fail,
    /// It is cancelled, or its deadline has passed.
    Cancel,
    /// A claim finds it over its attempts, or its execution cannot go on.
    Park,
    /// Its executor gives it back or is taken over.
    Return,
    /// Its executor gives it back for later.
    Postpone,
    /// An operator starts it again from its checkpoints.
    Resume,
    /// An operator starts an ended one again from an earlier position.
    Rewind,
}

impl Move {
    /// All moves, in the order of the table.
    pub const ALL: [Self; 10] = [
        Self::Claim,
        Self::Release,
        Self::Succeed,
        Self::Fail,
        Self::Cancel,
        Self::Park,
        Self::Return,
        Self::Postpone,
        Self::Resume,
        Self::Rewind,
    ];
}

impl Status {
    /// All states.
    pub const ALL: [Self; 7] =
        [Self::Delayed, Self::Enqueued, Self::Pending, Self::Success, Self::Error, Self::Cancelled, Self::Parked];

    /// The transition table: the state after a move, or `None` where the move is not allowed.
    ///
    /// Source: the transitions of the shared schema, with the holes closed that let an ended row be written again.
    #[must_use]
    pub const fn after(self, by: Move) -> Option<Self> {
        use Status::{Cancelled, Delayed, Enqueued, Error, Parked, Pending, Success};
        match (by, self) {
            (Move::Claim, Enqueued) => Some(Pending),
            (Move::Release, Delayed) => Some(Enqueued),
            (Move::Succeed, Pending) => Some(Success),
            (Move::Fail, Pending) => Some(Error),
            (Move::Cancel, Delayed | Enqueued | Pending | Parked) => Some(Cancelled),
            (Move::Park, Enqueued | Pending) => Some(Parked),
            (Move::Return, Pending) => Some(Enqueued),
            (Move::Postpone, Pending) => Some(Delayed),
            (Move::Resume, Delayed | Enqueued | Pending | Cancelled | Parked) => Some(Enqueued),
            (Move::Rewind, Success | Error | Cancelled | Parked) => Some(Enqueued),
            _ => None,
        }
    }

    /// Whether waiters are answered: everything but delayed, enqueued and pending.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        !matches!(self, Self::Delayed | Self::Enqueued | Self::Pending)
    }

    /// The spelling of the shared schema.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delayed => "DELAYED",
            Self::Enqueued => "ENQUEUED",
            Self::Pending => "PENDING",
            Self::Success => "SUCCESS",
            Self::Error => "ERROR",
            Self::Cancelled => "CANCELLED",
            Self::Parked => "MAX_RECOVERY_ATTEMPTS_EXCEEDED",
        }
    }

    /// Reads the spelling of the shared schema.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_and_error_are_left_by_rewind_alone() {
        for status in [Status::Success, Status::Error] {
            for by in Move::ALL {
                assert_eq!(status.after(by).is_some(), by == Move::Rewind, "{status} by {by:?}");
            }
        }
    }

    #[test]
    fn only_a_claim_makes_a_row_pending() {
        for status in Status::ALL {
            for by in Move::ALL {
                let pending = status.after(by) == Some(Status::Pending);
                assert_eq!(pending, by == Move::Claim && status == Status::Enqueued, "{status} by {by:?}");
            }
        }
    }

    #[test]
    fn every_state_but_the_first_ones_can_be_reached() {
        for wanted in Status::ALL {
            let reached = Status::ALL.iter().any(|from| Move::ALL.iter().any(|by| from.after(*by) == Some(wanted)));
            assert!(reached, "{wanted}");
        }
    }

    #[test]
    fn spellings_are_read_back() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        assert_eq!(Status::parse("pending"), None);
    }
}
