//! Checkpoints: written once a position, and read back in order.

use mainstay_store::{EffectReply, Payload, Position, RecordedStep, StepOutput, StepRow, Timestamp, WorkflowId};
use rusqlite::{Connection, params};

use crate::row::{self, bound};
use crate::sql::{self, Cached};
use crate::tx::Tx;

/// What is recorded already at the positions of these rows, in order of position.
pub(crate) fn recorded(conn: &Connection, id: &WorkflowId, steps: &[StepRow]) -> rusqlite::Result<Vec<RecordedStep>> {
    let mut found = Vec::new();
    for step in steps {
        found.extend(conn.maybe(sql::STEP, params![id.as_str(), step.position.0], row::step)?);
    }
    found.sort_unstable_by_key(|step| step.position);
    Ok(found)
}

/// What is recorded of a workflow from a position on: as many steps as a number of bytes holds, `least` of them at least,
/// and the one after those, which shows that there is more.
pub(crate) fn up_to(
    conn: &Connection,
    id: &WorkflowId,
    from: Position,
    most: u64,
    least: usize,
) -> rusqlite::Result<Vec<RecordedStep>> {
    let mut statement = conn.statement(sql::STEPS)?;
    let mut rows = statement.query(params![id.as_str(), from.0])?;
    let (mut steps, mut bytes) = (Vec::new(), 0);
    while (bytes <= most || steps.len() <= least)
        && let Some(found) = rows.next()?
    {
        let step = row::step(found)?;
        bytes += step.result.bytes();
        steps.push(step);
    }
    Ok(steps)
}

/// Writes one checkpoint; two forms of its output are completed here.
pub(crate) fn write(
    tx: &mut Tx<'_>,
    id: &WorkflowId,
    app: Option<&str>,
    step: &StepRow,
    effects: &[EffectReply],
) -> rusqlite::Result<()> {
    let now = tx.now;
    let (completed, output, error) = outputs(step, now, effects);
    let params = params![
        id.as_str(),
        step.position.0,
        step.name.as_str(),
        output.as_ref().map(Payload::as_str),
        error.as_ref().map(Payload::as_str),
        bound(step.child.as_ref()),
        (now - step.took).0,
        completed.0,
        bound(step.codec.as_ref()),
        app,
        now.0,
    ];
    tx.conn.run(sql::INSERT_STEP, params)?;
    tx.stamped(now);
    Ok(())
}

fn outputs(step: &StepRow, now: Timestamp, effects: &[EffectReply]) -> (Timestamp, Option<Payload>, Option<Payload>) {
    match &step.output {
        StepOutput::Nothing => (now, None, None),
        StepOutput::Value(value) => (now, Some(value.clone()), None),
        StepOutput::Failure(error) => (now, None, Some(error.clone())),
        StepOutput::WakeIn(wait) => {
            let wake = now + *wait;
            (wake, Some(wake.to_string().into()), None)
        }
        StepOutput::Answer(index) => (now, effects.get(*index).map(EffectReply::answer), None),
    }
}
