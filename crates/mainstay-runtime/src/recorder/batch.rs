//! What waits in a lane, and how much of it goes into one batch.

use std::collections::VecDeque;

use mainstay_env::Monotonic;
use mainstay_store::{Effect, Outcome, Payload, StepOutput, StepRow, StoreError, Unit, WorkflowId};

use super::{Answer, Done, tell};

/// Most units of a batch. Rates are flat from 256 on (group commit as measured on Postgres: about 30,000 rows/s), and a batch
/// holds its row locks for its whole length: 512 is one of at most 20 ms.
pub(super) const MAX_UNITS: usize = 512;

/// Most bytes of a batch, as a claim's budget: a batch must fit into a statement and into memory several times.
pub(super) const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes that a unit counts beside its payloads: ids, names and their frames.
const UNIT_BYTES: u64 = 256;

/// One unit on its way, and who hears of it.
pub(super) struct Entry {
    /// Its place in the order of the lane.
    pub(super) number: u64,
    pub(super) id: WorkflowId,
    pub(super) unit: Unit,
    /// When its sender stops waiting.
    pub(super) deadline: Option<Monotonic>,
    /// Sent when the recorder was stopped.
    pub(super) late: bool,
    /// It may be the one that makes batches fail: it goes alone.
    pub(super) doubtful: bool,
    /// Taken by the answer.
    done: Option<Done>,
}

impl Entry {
    pub(super) fn new(id: WorkflowId, unit: Unit, deadline: Option<Monotonic>, done: Done) -> Self {
        Self { number: 0, id, unit, deadline, late: false, doubtful: false, done: Some(done) }
    }

    /// Whether it waits for an answer.
    pub(super) const fn is_open(&self) -> bool {
        self.done.is_some()
    }

    pub(super) fn is_over(&self, now: Monotonic) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Answers it, unless that was done before.
    pub(super) fn answer(&mut self, answer: Result<Answer, StoreError>) {
        if let Some(done) = self.done.take() {
            tell(done, answer);
        }
    }
}

/// Takes the next batch from the front: as much as the limits let in, at least one, a doubtful one
/// alone, and never units that may be repeated together with others.
///
/// Those apart, because a wrapper that repeats the one kind alone reports the last try, which says nothing of the other.
pub(super) fn take(waiting: &mut VecDeque<Entry>) -> Vec<Entry> {
    let (mut bytes, mut count) = (0, 0);
    let kind = waiting.front().is_some_and(|entry| entry.unit.repeatable());
    for entry in waiting.iter().take(MAX_UNITS) {
        bytes += weight(&entry.unit);
        let fits = bytes <= MAX_BYTES && !entry.doubtful && entry.unit.repeatable() == kind;
        if count > 0 && !fits {
            break;
        }
        count += 1;
        if entry.doubtful {
            break;
        }
    }
    waiting.drain(..count).collect()
}

/// Bytes that a unit counts against a batch's budget.
pub(super) fn weight(unit: &Unit) -> u64 {
    let steps: u64 = unit.steps.iter().map(step_bytes).sum();
    let effects: u64 = unit.effects.iter().map(effect_bytes).sum();
    let outcome = unit.outcome.as_ref().and_then(Outcome::payload).map_or(0, Payload::bytes);
    UNIT_BYTES + steps + effects + outcome
}

fn step_bytes(row: &StepRow) -> u64 {
    match &row.output {
        StepOutput::Value(payload) | StepOutput::Failure(payload) => UNIT_BYTES + payload.bytes(),
        StepOutput::Nothing | StepOutput::WakeIn(_) | StepOutput::Answer(_) => UNIT_BYTES,
    }
}

fn effect_bytes(effect: &Effect) -> u64 {
    let payload = match effect {
        Effect::Submit(submit) => {
            let bytes = |payload: &Option<Payload>| payload.as_ref().map_or(0, Payload::bytes);
            bytes(&submit.input) + bytes(&submit.attributes)
        }
        Effect::Mail(mail) => mail.body.bytes(),
        Effect::SetEvent { value, .. } | Effect::StreamWrite { value, .. } => value.bytes(),
        Effect::Attributes { json, .. } => json.as_ref().map_or(0, Payload::bytes),
        Effect::Debounce { input, .. } => input.bytes(),
        Effect::Schedule(schedule) => schedule.change.bytes(),
        Effect::Cancel { ids, .. } | Effect::Resume { ids, .. } | Effect::Delete { ids, .. } => {
            ids.iter().map(|id| id.as_str().len() as u64).sum()
        }
        _ => 0,
    };
    UNIT_BYTES + payload
}
