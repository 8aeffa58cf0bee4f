//! Checkpoints: step rows as written and as read.

use std::time::Duration;

use mainstay_env::Timestamp;
use serde::{Deserialize, Serialize};

use super::{CodecName, Payload, Position, StepName, WorkflowId};

/// What a step row stores. Two forms are completed inside the unit, because only the store knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepOutput {
    /// Neither value nor error: a started child, a sent message.
    Nothing,
    /// An encoded value.
    Value(Payload),
    /// An encoded error.
    Failure(Payload),
    /// The store's `now` plus this, stored as epoch milliseconds in decimal: a sleep.
    WakeIn(Duration),
    /// [`crate::EffectReply::answer`] of the unit's effect with this index: a cancel or delete made in a body.
    Answer(usize),
}

record! {
    /// One checkpoint to be written. The store stamps `completed_at = now` and `started_at = now - took`.
    StepRow {
        required {
            /// Place of the call; a position holds one row for ever.
            position: Position,
            /// Name of the step or durable call.
            name: StepName,
            /// What is stored.
            output: StepOutput,
        }
        optional {
            /// The workflow that the call started or awaited.
            child: WorkflowId,
            /// Codec of the output.
            codec: CodecName,
        }
        default {
            /// How long the step ran.
            took: Duration = Duration::ZERO,
        }
    }
}

/// What a checkpoint says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepResult {
    /// Neither value nor error.
    Nothing,
    /// An encoded value.
    Value(Payload),
    /// An encoded error.
    Failure(Payload),
}

impl StepResult {
    /// The payload, where there is one.
    #[must_use]
    pub const fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Nothing => None,
            Self::Value(payload) | Self::Failure(payload) => Some(payload),
        }
    }

    /// Bytes that it counts against a byte budget.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.payload().map_or(0, Payload::bytes)
    }
}

record! {
    /// A checkpoint as it stands in the store.
    RecordedStep {
        required {
            /// Place of the call.
            position: Position,
            /// Name of the step or durable call.
            name: StepName,
            /// What was stored.
            result: StepResult,
        }
        optional {
            /// The workflow that the call started or awaited.
            child: WorkflowId,
            /// Codec of the output.
            codec: CodecName,
            /// When the step began, by the store's clock.
            started_at: Timestamp,
            /// When it was recorded, or the wake-up time of a sleep.
            completed_at: Timestamp,
        }
        default {}
    }
}

/// Recorded steps in order of position, whole or as far as a byte budget went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Steps {
    /// All of them.
    Complete(Vec<RecordedStep>),
    /// The first ones; the rest begins at `next`.
    Partial {
        /// As many as fitted.
        first: Vec<RecordedStep>,
        /// Position of the first one left out.
        next: Position,
    },
}

impl Steps {
    /// The steps that are here.
    #[must_use]
    pub fn here(&self) -> &[RecordedStep] {
        match self {
            Self::Complete(steps) | Self::Partial { first: steps, .. } => steps,
        }
    }

    /// Takes steps from a list in order until a budget of bytes is used up, at least `least` of them.
    #[must_use]
    pub fn within(all: Vec<RecordedStep>, budget: &mut u64, least: usize) -> Self {
        let mut taken = 0;
        for step in &all {
            let bytes = step.result.bytes();
            if bytes > *budget && taken >= least {
                break;
            }
            *budget = budget.saturating_sub(bytes);
            taken += 1;
        }
        match all.get(taken).map(|step| step.position) {
            Some(next) => {
                let mut first = all;
                first.truncate(taken);
                Self::Partial { first, next }
            }
            None => Self::Complete(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(sizes: &[usize]) -> Vec<RecordedStep> {
        let step = |(at, size): (usize, &usize)| {
            let position = i32::try_from(at).expect("few steps");
            RecordedStep::new(position, "s", StepResult::Value("x".repeat(*size).into()))
        };
        sizes.iter().enumerate().map(step).collect()
    }

    #[test]
    fn steps_are_taken_in_order_until_one_does_not_fit() {
        let mut budget = 10;
        let Steps::Partial { first, next } = Steps::within(steps(&[4, 6, 1]), &mut budget, 0) else { panic!("all") };
        assert_eq!((first.len(), next, budget), (2, Position(2), 0));
        let mut budget = 3;
        let taken = Steps::within(steps(&[4, 1]), &mut budget, 0);
        assert_eq!((taken.here().len(), budget), (0, 3), "a later one never overtakes");
    }

    #[test]
    fn a_page_makes_progress_whatever_the_size() {
        let mut budget = 1;
        let page = Steps::within(steps(&[100, 1]), &mut budget, 1);
        assert_eq!((page.here().len(), budget), (1, 0));
        assert_eq!(Steps::within(steps(&[100]), &mut 1, 1), Steps::Complete(steps(&[100])));
        assert_eq!(Steps::within(Vec::new(), &mut 0, 1), Steps::Complete(Vec::new()));
    }
}
