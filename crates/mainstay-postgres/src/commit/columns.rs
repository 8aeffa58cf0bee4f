//! The writes of units as columns: the parameters of a statement of each kind.

use std::borrow::Cow;
use std::collections::BTreeSet;

use mainstay_store::{Effect, EffectReply, Outcome, Payload, StepOutput, StepRow, Unit, WorkflowId};

use super::texts;
use crate::row::{bound, millis};
use crate::session::Ask;

/// An ordinal: the place of a unit in its batch.
pub(super) type Ord = i32;

/// Fences, with the units that have none.
#[derive(Default)]
pub(super) struct Fences<'u> {
    /// Every row that is touched.
    ids: BTreeSet<&'u str>,
    locked: Vec<&'u str>,
    ords: Vec<Ord>,
    fenced: Vec<&'u str>,
    fences: Vec<&'u str>,
    clients: Vec<Ord>,
}

impl<'u> Fences<'u> {
    /// A unit, with the workflows that it moves.
    pub(super) fn push(&mut self, ord: Ord, unit: &'u Unit) {
        match &unit.fence {
            Some(fence) => {
                self.ids.insert(fence.workflow().as_str());
                self.ords.push(ord);
                self.fenced.push(fence.workflow().as_str());
                self.fences.push(fence.raw());
            }
            None => self.clients.push(ord),
        }
        self.touch(unit.effects.iter().flat_map(Effect::moves).map(WorkflowId::as_str));
    }

    /// Rows that are touched too.
    pub(super) fn touch(&mut self, ids: impl IntoIterator<Item = &'u str>) {
        self.ids.extend(ids);
    }

    /// Makes the list of the rows, once all are known.
    pub(super) fn seal(&mut self) {
        self.locked = self.ids.iter().copied().collect();
    }

    /// What the rows are that are there, once they are locked.
    pub(super) fn states(&self) -> Ask<'_> {
        Ask::new(&texts::STATES, &[&self.locked])
    }

    pub(super) fn lock<'a>(&'a self, now: &'a Option<i64>) -> Ask<'a> {
        let params: [crate::session::Param<'a>; 6] =
            [now, &self.locked, &self.ords, &self.fenced, &self.fences, &self.clients];
        Ask::new(&texts::LOCK, &params)
    }

    /// Nothing where there is nothing to ask.
    pub(super) fn probe<'a>(&'a self, steps: &'a Steps<'u>) -> Option<Ask<'a>> {
        let params: [crate::session::Param<'a>; 5] =
            [&self.ords, &self.fenced, &steps.ords, &steps.ids, &steps.positions];
        (!self.ords.is_empty()).then(|| Ask::new(&texts::PROBE, &params))
    }
}

/// Checkpoints.
#[derive(Default)]
pub(super) struct Steps<'u> {
    ords: Vec<Ord>,
    ids: Vec<&'u str>,
    positions: Vec<i32>,
    names: Vec<&'u str>,
    outputs: Vec<Option<Cow<'u, str>>>,
    errors: Vec<Option<&'u str>>,
    wakes: Vec<Option<i64>>,
    children: Vec<Option<&'u str>>,
    codecs: Vec<Option<&'u str>>,
    tooks: Vec<i64>,
    answers: Vec<Option<String>>,
}

/// What a step that records an effect says.
pub(super) enum Answer<'u> {
    /// This.
    Text(Cow<'u, str>),
    /// What the statement of the cancels has set aside.
    Moved,
}

impl<'u> Steps<'u> {
    /// The steps of a unit; `answer` tells what one says that records the effect of this index.
    pub(super) fn push(&mut self, ord: Ord, unit: &'u Unit, answer: impl Fn(usize) -> Answer<'u>) {
        let Some(fence) = &unit.fence else { return };
        for step in &unit.steps {
            self.step(ord, fence.workflow().as_str(), step, &answer);
        }
    }

    fn step(&mut self, ord: Ord, id: &'u str, step: &'u StepRow, answer: &impl Fn(usize) -> Answer<'u>) {
        let (mut output, mut error, mut wake, mut key) = (None, None, None, None);
        match &step.output {
            StepOutput::Nothing => {}
            StepOutput::Value(value) => output = Some(Cow::Borrowed(value.as_str())),
            StepOutput::Failure(failure) => error = Some(failure.as_str()),
            StepOutput::WakeIn(wait) => wake = Some(millis(*wait)),
            StepOutput::Answer(effect) => match answer(*effect) {
                Answer::Text(text) => output = Some(text),
                Answer::Moved => key = Some(format!("{ord}/{effect}")),
            },
        }
        self.ords.push(ord);
        self.ids.push(id);
        self.positions.push(step.position.0);
        self.names.push(step.name.as_str());
        self.outputs.push(output);
        self.errors.push(error);
        self.wakes.push(wake);
        self.children.push(bound(step.child.as_ref()));
        self.codecs.push(bound(step.codec.as_ref()));
        self.tooks.push(millis(step.took));
        self.answers.push(key);
    }

    pub(super) fn write<'a>(&'a self, now: &'a Option<i64>) -> Option<Ask<'a>> {
        let params: [crate::session::Param<'a>; 12] = [
            now,
            &self.ords,
            &self.ids,
            &self.positions,
            &self.names,
            &self.outputs,
            &self.errors,
            &self.wakes,
            &self.children,
            &self.codecs,
            &self.tooks,
            &self.answers,
        ];
        (!self.ords.is_empty()).then(|| Ask::new(&texts::STEPS, &params))
    }
}

/// What a step says that records an effect, where that is known before it is sent.
pub(super) fn answer_of(unit: &Unit, effect: usize) -> Answer<'static> {
    match unit.effects.get(effect) {
        Some(Effect::Cancel { .. }) => Answer::Moved,
        _ => Answer::Text(Cow::Owned(EffectReply::Written.answer().as_str().to_owned())),
    }
}

/// Outcomes.
#[derive(Default)]
pub(super) struct Outcomes<'u> {
    ords: Vec<Ord>,
    ids: Vec<&'u str>,
    statuses: Vec<&'static str>,
    outputs: Vec<Option<&'u str>>,
    errors: Vec<Option<&'u str>>,
}

impl<'u> Outcomes<'u> {
    pub(super) fn push(&mut self, ord: Ord, unit: &'u Unit) {
        let (Some(fence), Some(outcome)) = (&unit.fence, &unit.outcome) else { return };
        let payload = outcome.payload().map(Payload::as_str);
        let is_value = matches!(outcome, Outcome::Success(_));
        self.ords.push(ord);
        self.ids.push(fence.workflow().as_str());
        self.statuses.push(outcome.status().as_str());
        self.outputs.push(payload.filter(|_| is_value));
        self.errors.push(payload.filter(|_| !is_value));
    }

    pub(super) fn write<'a>(&'a self, now: &'a Option<i64>) -> Option<Ask<'a>> {
        let params: [crate::session::Param<'a>; 6] =
            [now, &self.ords, &self.ids, &self.statuses, &self.outputs, &self.errors];
        (!self.ords.is_empty()).then(|| Ask::new(&texts::OUTCOMES, &params))
    }
}

/// Cancels, a row for each workflow.
#[derive(Default)]
pub(super) struct Cancels<'u> {
    ords: Vec<Ord>,
    effects: Vec<i32>,
    ids: Vec<&'u str>,
}

impl<'u> Cancels<'u> {
    pub(super) fn push(&mut self, ord: Ord, effect: i32, ids: impl IntoIterator<Item = &'u str>) {
        for id in ids {
            self.ords.push(ord);
            self.effects.push(effect);
            self.ids.push(id);
        }
    }

    pub(super) fn write<'a>(&'a self, now: &'a Option<i64>) -> Option<Ask<'a>> {
        let params: [crate::session::Param<'a>; 4] = [now, &self.ords, &self.effects, &self.ids];
        (!self.ords.is_empty()).then(|| Ask::new(&texts::CANCELS, &params))
    }
}

/// Give-backs.
#[derive(Default)]
pub(super) struct GiveBacks<'u> {
    ords: Vec<Ord>,
    ids: Vec<&'u str>,
    delays: Vec<Option<i64>>,
    begun: Vec<bool>,
}

/// Where a row without a queue goes.
static INTERNAL: &str = mainstay_store::model::wire::INTERNAL_QUEUE;

impl<'u> GiveBacks<'u> {
    pub(super) fn push(&mut self, ord: Ord, unit: &'u Unit) {
        let Some(fence) = &unit.fence else { return };
        for effect in &unit.effects {
            if let Effect::GiveBack { delay, begun } = effect {
                self.ords.push(ord);
                self.ids.push(fence.workflow().as_str());
                self.delays.push(delay.map(millis));
                self.begun.push(*begun);
            }
        }
    }

    pub(super) fn write<'a>(&'a self, now: &'a Option<i64>) -> Option<Ask<'a>> {
        let params: [crate::session::Param<'a>; 6] = [now, &self.ords, &self.ids, &self.delays, &self.begun, &INTERNAL];
        (!self.ords.is_empty()).then(|| Ask::new(&texts::GIVE_BACKS, &params))
    }
}
