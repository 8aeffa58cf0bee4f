//! Units: writes that commit together or not at all.

mod check;
mod effect;
mod reply;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use effect::{Effect, Fork, Joining, Mail, OnExisting, OnHeld, Place, Schedule, Submit};
pub use reply::{Created, EffectReply, Refusal, UnitReply};

use crate::error::FieldError;
use crate::fence::Fence;
use crate::model::{Bounds, Outcome, StepRow};

/// Writes that commit together or not at all: the effects in order, then the step rows, then the outcome.
///
/// A unit with a fence is a running execution's; one without is a client's and has neither steps nor an outcome. It is
/// plain data: [`Unit::check`] and [`Unit::repeatable`] need no store.
///
/// ```
/// use mainstay_store::{Fence, Outcome, StepOutput, StepRow, Unit};
/// let fence = Fence::issue("w".into(), "token");
/// let unit = Unit::by(&fence)
///     .step(StepRow::new(0, "charge", StepOutput::Value("1".into())))
///     .outcome(Outcome::Success("1".into()));
/// assert!(unit.repeatable());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Unit {
    /// The right to write; `None` for a client.
    pub fence: Option<Fence>,
    /// Checkpoints to be written.
    pub steps: Vec<StepRow>,
    /// Other writes, in order.
    pub effects: Vec<Effect>,
    /// How the execution ends.
    pub outcome: Option<Outcome>,
}

impl Unit {
    /// An empty unit of a client.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty unit of the execution that holds `fence`.
    #[must_use]
    pub fn by(fence: &Fence) -> Self {
        Self { fence: Some(fence.clone()), ..Self::default() }
    }

    /// Adds a checkpoint.
    #[must_use]
    pub fn step(mut self, row: StepRow) -> Self {
        self.steps.push(row);
        self
    }

    /// Adds another write.
    #[must_use]
    pub fn effect(mut self, effect: impl Into<Effect>) -> Self {
        self.effects.push(effect.into());
        self
    }

    /// Sets how the execution ends.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = Some(outcome);
        self
    }

    /// Checks every field against what no backend may take, so that nothing is sent of a unit that cannot be written.
    ///
    /// # Errors
    /// Names the first bad field.
    pub fn check(&self, bounds: &Bounds) -> Result<(), FieldError> {
        check::unit(self, bounds)
    }

    /// Whether it may be sent again after a lost answer: a step row, an outcome, the fence's end or an identity in the
    /// request guards every write, so that a repeat changes nothing that the first try has written.
    #[must_use]
    pub fn repeatable(&self) -> bool {
        let guarded = !self.steps.is_empty() || self.outcome.is_some();
        guarded || self.effects.iter().all(Effect::repeatable)
    }
}
