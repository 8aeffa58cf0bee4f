//! Units: judged one by one, done whole or not at all.

use async_trait::async_trait;
use mainstay_store::{
    Bounds, Committed, EffectReply, Payload, Position, RecordedStep, Result, StepOutput, StepResult, StepRow,
    StoreError, Unit, UnitReply, WorkflowId, WriteStore,
};

use crate::memory::Memory;
use crate::operation::Operation;

#[async_trait]
impl WriteStore for Memory {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        self.run("commit", |operation| {
            let replies = units.iter().map(|unit| operation.unit(unit)).collect();
            Ok(Committed::new(operation.now, replies))
        })
        .await
    }
}

impl Operation<'_> {
    fn unit(&mut self, unit: &Unit) -> Result<UnitReply> {
        unit.check(&Bounds::default()).map_err(|error| StoreError::field_error("commit", error))?;
        if let Some(fence) = &unit.fence {
            if !self.state.is_current(fence) {
                return Ok(UnitReply::Superseded { by: self.state.standing(fence.workflow()) });
            }
            let rows = self.recorded(fence.workflow(), &unit.steps);
            if !rows.is_empty() {
                return Ok(UnitReply::Recorded { rows });
            }
        }
        let effects = match self.effects(unit) {
            Ok(effects) => effects,
            Err(refused) => return Ok(refused),
        };
        if let Some(fence) = &unit.fence {
            self.record(fence.workflow(), &unit.steps, &effects);
            if let Some(outcome) = &unit.outcome {
                self.end_row(fence.workflow(), outcome.clone());
            }
        }
        Ok(UnitReply::Done { effects })
    }

    /// Stored rows of a unit's positions, in order of position.
    fn recorded(&self, id: &WorkflowId, steps: &[StepRow]) -> Vec<RecordedStep> {
        let stored = &self.state.rows[id].steps;
        let mut rows: Vec<RecordedStep> = steps.iter().filter_map(|step| stored.get(&step.position)).cloned().collect();
        rows.sort_by_key(|row| row.position);
        rows
    }

    /// Does all effects, or none and says which one lost.
    fn effects(&mut self, unit: &Unit) -> std::result::Result<Vec<EffectReply>, UnitReply> {
        // A single effect is judged before it does anything: only several have something to take back.
        if unit.effects.len() > 1 {
            self.begin();
        }
        let mut replies = Vec::with_capacity(unit.effects.len());
        for (effect, item) in unit.effects.iter().enumerate() {
            match self.effect(item, unit.fence.as_ref()) {
                Ok(reply) => replies.push(reply),
                Err(why) => {
                    self.take_back();
                    return Err(UnitReply::Refused { effect, why });
                }
            }
        }
        self.keep();
        Ok(replies)
    }

    /// Writes checkpoints; their positions are free.
    fn record(&mut self, id: &WorkflowId, steps: &[StepRow], effects: &[EffectReply]) {
        if steps.is_empty() {
            return;
        }
        let now = self.now;
        self.stamped(now);
        let record = self.state.rows.get_mut(id).expect("the row of a current fence exists");
        for step in steps {
            let mut completed_at = now;
            let result = match &step.output {
                StepOutput::Nothing => StepResult::Nothing,
                StepOutput::Value(payload) => StepResult::Value(payload.clone()),
                StepOutput::Failure(payload) => StepResult::Failure(payload.clone()),
                StepOutput::Answer(effect) => StepResult::Value(effects[*effect].answer()),
                StepOutput::WakeIn(wait) => {
                    completed_at = now + *wait;
                    StepResult::Value(Payload::from(completed_at.as_millis().to_string()))
                }
            };
            let mut row = RecordedStep::new(step.position, step.name.clone(), result)
                .started_at(now - step.took)
                .completed_at(completed_at);
            row.child = step.child.clone();
            row.codec = step.codec.clone();
            let at: Position = step.position;
            let before = record.steps.insert(at, row);
            assert!(before.is_none(), "a position is recorded once");
        }
    }
}
