//! How a workflow ended, and what a row is now.

use serde::{Deserialize, Serialize};

use super::{Move, Payload, Status};

/// How a workflow ended; its status derives from it. Payloads are encoded with the codec of the row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// With a value; a stored NULL reads as `null`.
    Success(Payload),
    /// With an error.
    Error(Payload),
    /// By a cancellation or a passed deadline.
    Cancelled,
    /// Set aside; the payload is the reason.
    Parked(Payload),
}

impl Outcome {
    /// What a claim writes for a row that has had its attempts: a portable error that says how many.
    #[must_use]
    pub fn out_of_attempts(attempts: u32) -> Self {
        let message = format!("begun {attempts} times without an end");
        let error = serde_json::json!({ "name": "MaxAttemptsExceeded", "message": message });
        Self::Parked(error.to_string().into())
    }

    /// The status that a row with this outcome has.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Success(_) => Status::Success,
            Self::Error(_) => Status::Error,
            Self::Cancelled => Status::Cancelled,
            Self::Parked(_) => Status::Parked,
        }
    }

    /// The move that writes it.
    #[must_use]
    pub const fn by(&self) -> Move {
        match self {
            Self::Success(_) => Move::Succeed,
            Self::Error(_) => Move::Fail,
            Self::Cancelled => Move::Cancel,
            Self::Parked(_) => Move::Park,
        }
    }

    /// The payload, where it has one.
    #[must_use]
    pub const fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Success(payload) | Self::Error(payload) | Self::Parked(payload) => Some(payload),
            Self::Cancelled => None,
        }
    }
}

/// What a row is now, with all that adopting its result needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// There is no such row.
    Gone,
    /// Delayed, enqueued or pending.
    Open(Status),
    /// It has ended.
    Ended(Outcome),
}
