//! Units: each is judged, then written, and one that loses has written nothing.

use async_trait::async_trait;
use mainstay_store::{
    Bounds, Committed, EffectReply, Refusal, Result, StoreError, Timestamp, Unit, UnitReply, WorkflowId, WriteStore,
};

use crate::effect;
use crate::error;
use crate::row;
use crate::steps;
use crate::store::Sqlite;
use crate::transition::{self, Execution};
use crate::tx::Tx;

const OP: &str = "commit";

#[async_trait]
impl WriteStore for Sqlite {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        let bounds = Bounds::default();
        let checked: Vec<Result<Unit>> = units
            .iter()
            .map(|unit| unit.check(&bounds).map(|()| unit.clone()).map_err(|field| StoreError::field_error(OP, field)))
            .collect();
        let (now, units) = self.write(OP, move |tx| commit(tx, &checked)).await?;
        Ok(Committed::new(now, units))
    }
}

type Replies = Vec<Result<UnitReply>>;

fn commit(tx: &mut Tx<'_>, units: &[Result<Unit>]) -> rusqlite::Result<(Timestamp, Replies)> {
    let mut replies = Vec::with_capacity(units.len());
    for unit in units {
        replies.push(match unit {
            Ok(unit) if tx.careful => guarded(tx, unit)?,
            Ok(unit) => Ok(one(tx, unit)?),
            Err(invalid) => Err(invalid.clone()),
        });
    }
    Ok((tx.now, replies))
}

/// A unit whose failure is its own: the others of the batch are written all the same.
fn guarded(tx: &mut Tx<'_>, unit: &Unit) -> rusqlite::Result<Result<UnitReply>> {
    let tried = tx.attempt(|tx| match one(tx, unit) {
        Err(error) if error::is_of_the_row(&error) => Ok(Err(error)),
        reply => reply.map(Ok),
    })?;
    Ok(tried.map_err(|error| error::failed(OP, error)))
}

/// One unit. With several effects the first ones may be written before a later one loses, and are undone then.
fn one(tx: &mut Tx<'_>, unit: &Unit) -> rusqlite::Result<UnitReply> {
    let execution = match judge(tx, unit)? {
        Ok(execution) => execution,
        Err(reply) => return Ok(reply),
    };
    let written = if unit.effects.len() > 1 {
        tx.attempt(|tx| write(tx, unit, execution.as_ref()))?
    } else {
        write(tx, unit, execution.as_ref())?
    };
    Ok(written.unwrap_or_else(|(effect, why)| UnitReply::Refused { effect, why }))
}

type Judged = std::result::Result<Option<(WorkflowId, Execution)>, UnitReply>;

/// Whether the fence is current and the positions are free.
fn judge(tx: &mut Tx<'_>, unit: &Unit) -> rusqlite::Result<Judged> {
    let Some(fence) = &unit.fence else { return Ok(Ok(None)) };
    let id = fence.workflow();
    let Some(execution) = Execution::of(tx, id)?.filter(|execution| execution.is_held_by(fence)) else {
        return Ok(Err(UnitReply::Superseded { by: row::standing(tx.conn, id)? }));
    };
    let rows = steps::recorded(tx.conn, id, &unit.steps)?;
    if !rows.is_empty() {
        return Ok(Err(UnitReply::Recorded { rows }));
    }
    Ok(Ok(Some((id.clone(), execution))))
}

type Written = std::result::Result<UnitReply, (usize, Refusal)>;

fn write(tx: &mut Tx<'_>, unit: &Unit, own: Option<&(WorkflowId, Execution)>) -> rusqlite::Result<Written> {
    let mut effects: Vec<EffectReply> = Vec::with_capacity(unit.effects.len());
    for (index, item) in unit.effects.iter().enumerate() {
        match effect::apply(tx, item, own)? {
            Ok(reply) => effects.push(reply),
            Err(why) => return Ok(Err((index, why))),
        }
    }
    if let Some((id, execution)) = own {
        for step in &unit.steps {
            steps::write(tx, id, execution.app.as_deref(), step, &effects)?;
        }
        if let Some(outcome) = &unit.outcome {
            transition::end(tx, id, execution, outcome)?;
        }
    }
    Ok(Ok(UnitReply::Done { effects }))
}
