//! What no backend may take, judged before anything is sent.

use std::collections::BTreeSet;

use super::{Effect, Fork, Place, Submit, Unit};
use crate::error::FieldError;
use crate::model::{Bounds, Outcome, StepOutput, StepRow};

type Checked = Result<(), FieldError>;

fn refuse(field: &str, detail: &str) -> Checked {
    Err(FieldError::new(field, detail))
}

pub(super) fn unit(unit: &Unit, bounds: &Bounds) -> Checked {
    let fenced = unit.fence.is_some();
    let ends_or_records = !unit.steps.is_empty() || unit.outcome.is_some();
    if ends_or_records && !fenced {
        return refuse("fence", "steps and an outcome need one");
    }
    let mut positions = BTreeSet::new();
    for row in &unit.steps {
        step(row, unit, bounds)?;
        if !positions.insert(row.position) {
            return refuse("steps.position", "is given twice");
        }
    }
    for item in &unit.effects {
        if item.needs_fence() && !fenced {
            return refuse("fence", "the effect is a running execution's alone");
        }
        if let Some(fence) = &unit.fence
            && item.moves().contains(fence.workflow())
        {
            return refuse("effects.ids", "name the unit's own workflow");
        }
        effect(item, bounds)?;
    }
    if unit.effects.iter().any(|effect| matches!(effect, Effect::GiveBack { .. }))
        && (ends_or_records || unit.effects.len() > 1)
    {
        return refuse("effects.give_back", "stands alone in its unit");
    }
    match &unit.outcome {
        Some(Outcome::Success(payload)) => bounds.payload("outcome.success", payload),
        Some(Outcome::Error(payload)) => bounds.payload("outcome.error", payload),
        Some(Outcome::Parked(payload)) => bounds.payload("outcome.parked", payload),
        Some(Outcome::Cancelled) | None => Ok(()),
    }
}

fn step(row: &StepRow, unit: &Unit, bounds: &Bounds) -> Checked {
    if row.position.0 < 0 {
        return refuse("steps.position", "is negative");
    }
    bounds.name("steps.name", row.name.as_str())?;
    bounds.name_if("steps.child", row.child.as_ref())?;
    bounds.name_if("steps.codec", row.codec.as_ref())?;
    match &row.output {
        StepOutput::Value(payload) | StepOutput::Failure(payload) => bounds.payload("steps.output", payload),
        StepOutput::Answer(index) if *index >= unit.effects.len() => refuse("steps.output", "names no effect"),
        StepOutput::Answer(_) | StepOutput::Nothing | StepOutput::WakeIn(_) => Ok(()),
    }
}

fn effect(effect: &Effect, bounds: &Bounds) -> Checked {
    for id in effect.moves() {
        bounds.name("effects.ids", id.as_str())?;
    }
    match effect {
        Effect::Submit(new) => submit(new, bounds),
        Effect::Fork(new) => fork(new, bounds),
        Effect::Mail(mail) => {
            bounds.name("mail.id", mail.id.as_str())?;
            bounds.name("mail.to", mail.to.as_str())?;
            bounds.name_if("mail.topic", mail.topic.as_ref())?;
            bounds.name_if("mail.codec", mail.codec.as_ref())?;
            bounds.payload("mail.body", &mail.body)
        }
        Effect::RecvTake { message, .. } => bounds.name("recv_take.message", message.as_str()),
        Effect::SetEvent { key, value, codec, .. } | Effect::StreamWrite { key, value, codec, .. } => {
            bounds.name("effects.key", key.as_str())?;
            bounds.name_if("effects.codec", codec.as_ref())?;
            bounds.payload("effects.value", value)
        }
        Effect::StreamClose { key, .. } => bounds.name("effects.key", key.as_str()),
        Effect::Resume { queue, .. } => bounds.name_if("resume.queue", queue.as_ref()),
        Effect::Attributes { id, json } => {
            bounds.name("attributes.id", id.as_str())?;
            json.as_ref().map_or(Ok(()), |json| bounds.attributes("attributes.json", json))
        }
        Effect::Debounce { queue, dedup, input, .. } => {
            bounds.name("debounce.queue", queue.as_str())?;
            bounds.name("debounce.dedup", dedup.as_str())?;
            bounds.payload("debounce.input", input)
        }
        Effect::Schedule(schedule) => {
            bounds.name("schedule.name", schedule.name.as_str())?;
            bounds.payload("schedule.change", &schedule.change)
        }
        Effect::Cancel { .. } | Effect::Delete { .. } | Effect::Rewind { .. } => Ok(()),
        Effect::GiveBack { .. } | Effect::SetDelay { .. } => Ok(()),
    }
}

fn submit(new: &Submit, bounds: &Bounds) -> Checked {
    bounds.name("submit.id", new.id.as_str())?;
    bounds.name("submit.name", new.name.as_str())?;
    bounds.token("submit.token", new.token.as_str())?;
    bounds.class_if("submit.class", new.class.as_ref())?;
    bounds.class_if("submit.config", new.config.as_ref())?;
    bounds.name_if("submit.codec", new.codec.as_ref())?;
    bounds.name_if("submit.parent", new.parent.as_ref())?;
    bounds.name_if("submit.app", new.app.as_ref())?;
    bounds.name_if("submit.version", new.version.as_ref())?;
    bounds.name_if("submit.schedule", new.schedule.as_ref())?;
    if let Some(input) = &new.input {
        bounds.payload("submit.input", input)?;
    }
    if let Some(attributes) = &new.attributes {
        bounds.attributes("submit.attributes", attributes)?;
    }
    if new.priority < 0 {
        return refuse("submit.priority", "is negative");
    }
    if new.timeout.is_some_and(|timeout| timeout.as_millis() == 0) {
        return refuse("submit.timeout", "must be at least a millisecond");
    }
    let roles = new.caller.user.iter().chain(&new.caller.role).chain(&new.caller.roles);
    if roles.into_iter().any(|text| text.contains('\0')) {
        return refuse("submit.caller", "contains a NUL character");
    }
    place(new, bounds)
}

fn place(new: &Submit, bounds: &Bounds) -> Checked {
    if let Some(dedup) = &new.dedup {
        bounds.name("submit.dedup", dedup.key.as_str())?;
    }
    match &new.place {
        Place::Run(executor) => {
            bounds.name("submit.executor", executor.as_str())?;
            if new.dedup.is_some() {
                return refuse("submit.dedup", "needs a queue");
            }
            Ok(())
        }
        Place::Queue { name, key, .. } => {
            bounds.name("submit.queue", name.as_str())?;
            bounds.name_if("submit.key", key.as_ref())?;
            if new.dedup.is_some() && key.is_some() {
                return refuse("submit.dedup", "cannot stand beside a partition key");
            }
            Ok(())
        }
    }
}

fn fork(new: &Fork, bounds: &Bounds) -> Checked {
    bounds.name("fork.source", new.source.as_str())?;
    bounds.name("fork.id", new.id.as_str())?;
    bounds.name_if("fork.queue", new.queue.as_ref())?;
    bounds.name_if("fork.key", new.key.as_ref())?;
    bounds.name_if("fork.version", new.version.as_ref())?;
    if new.source == new.id {
        return refuse("fork.id", "is the source's own");
    }
    if new.below.0 < 0 {
        return refuse("fork.below", "is negative");
    }
    Ok(())
}
