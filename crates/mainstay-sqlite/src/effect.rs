//! Effects: each is judged against the rows as they are, and then written.

use std::collections::BTreeSet;

use mainstay_store::model::wire;
use mainstay_store::{
    Effect, EffectReply, Fork, Outcome, Payload, QueueName, Refusal, Status, Timestamp, Wakeup, When, WorkflowId,
};
use rusqlite::params;

use crate::row::{self, bound};
use crate::sql::{self, Cached};
use crate::submit;
use crate::transition::{self, Execution};
use crate::tx::Tx;

/// What an effect did, or why it refuses its unit; then it has written nothing.
pub(crate) type Applied = std::result::Result<EffectReply, Refusal>;

/// The workflow of the unit's fence.
type Own<'a> = Option<&'a (WorkflowId, Execution)>;

/// Writes one effect.
pub(crate) fn apply(tx: &mut Tx<'_>, effect: &Effect, own: Own<'_>) -> rusqlite::Result<Applied> {
    match effect {
        Effect::Submit(new) => submit::apply(tx, new),
        Effect::Cancel { ids, children } => cancel(tx, &reached(tx, ids, *children, own)?),
        Effect::Delete { ids, children } => delete(tx, &reached(tx, ids, *children, own)?),
        Effect::Resume { ids, queue, force } => resume(tx, ids, queue.as_ref(), *force),
        Effect::Fork(copy) => fork(tx, copy),
        Effect::GiveBack { delay, begun } => match own {
            Some((id, execution)) => {
                let until = delay.map(|delay| tx.now + delay);
                transition::give_back(tx, id, execution, &wire::INTERNAL_QUEUE.into(), until)?;
                if !*begun {
                    tx.conn.run(sql::UNCOUNT, [id.as_str()])?;
                }
                Ok(Ok(EffectReply::Written))
            }
            None => Ok(Err(Refusal::Unsupported)),
        },
        Effect::SetDelay { id, delay } => set_delay(tx, id, *delay),
        Effect::Attributes { id, json } => attributes(tx, id, json.as_ref()),
        _ => Ok(Err(Refusal::Unsupported)),
    }
}

/// The named workflows in order of id, with their descendants where wanted; never the unit's own.
fn reached(tx: &Tx<'_>, ids: &[WorkflowId], children: bool, own: Own<'_>) -> rusqlite::Result<BTreeSet<WorkflowId>> {
    let mut reached: BTreeSet<WorkflowId> = ids.iter().cloned().collect();
    let mut pending: Vec<WorkflowId> = if children { reached.iter().cloned().collect() } else { Vec::new() };
    while let Some(parent) = pending.pop() {
        for child in tx.conn.list(sql::CHILDREN, [parent.as_str()], |found| row::text::<WorkflowId>(found, 0))? {
            if reached.insert(child.clone()) {
                pending.push(child);
            }
        }
    }
    if let Some((id, _)) = own {
        reached.remove(id);
    }
    Ok(reached)
}

fn cancel(tx: &mut Tx<'_>, ids: &BTreeSet<WorkflowId>) -> rusqlite::Result<Applied> {
    let mut moved = Vec::new();
    for id in ids {
        let Some(before) = Execution::of(tx, id)? else { continue };
        if before.status.after(mainstay_store::Move::Cancel).is_some() {
            transition::end(tx, id, &before, &Outcome::Cancelled)?;
            moved.push(id.clone());
        }
    }
    Ok(Ok(EffectReply::Moved(moved)))
}

fn delete(tx: &mut Tx<'_>, ids: &BTreeSet<WorkflowId>) -> rusqlite::Result<Applied> {
    let mut moved = Vec::new();
    for id in ids {
        if let Some(before) = Execution::of_any(tx, id)? {
            transition::delete(tx, id, &before)?;
            moved.push(id.clone());
        }
    }
    Ok(Ok(EffectReply::Moved(moved)))
}

fn resume(tx: &mut Tx<'_>, ids: &[WorkflowId], queue: Option<&QueueName>, force: bool) -> rusqlite::Result<Applied> {
    let mut resumed = std::collections::BTreeMap::new();
    for id in ids {
        let Some(before) = Execution::of(tx, id)? else { return Ok(Err(Refusal::Missing(id.clone()))) };
        if before.status == Status::Pending && !force {
            return Ok(Err(Refusal::Running(id.clone())));
        }
        if before.status.after(mainstay_store::Move::Resume).is_some() {
            resumed.insert(id.clone(), before);
        }
    }
    for (id, before) in &resumed {
        transition::resume(tx, id, before, queue)?;
    }
    Ok(Ok(EffectReply::Moved(resumed.into_keys().collect())))
}

fn fork(tx: &mut Tx<'_>, copy: &Fork) -> rusqlite::Result<Applied> {
    if Execution::of(tx, &copy.source)?.is_none() {
        return Ok(Err(Refusal::Missing(copy.source.clone())));
    }
    if let Some(taken) = submit::Taken::of(tx, &copy.id)? {
        let same = taken.forked_from.as_ref() == Some(&copy.source);
        return Ok(if same { Ok(EffectReply::Written) } else { Err(taken.conflict(&copy.id)) });
    }
    let queue = copy.queue.clone().unwrap_or_else(|| wire::INTERNAL_QUEUE.into());
    let (source, id, now) = (copy.source.as_str(), copy.id.as_str(), tx.now.0);
    let key = bound(copy.key.as_ref());
    tx.conn.run(sql::FORK_ROW, params![source, id, now, bound(copy.version.as_ref()), queue.as_str(), key])?;
    tx.conn.run(sql::FORK_INPUT, params![source, id, now])?;
    tx.conn.run(sql::FORK_STEPS, params![source, id, now, copy.below.0])?;
    tx.conn.run(sql::FORK_MARK, [source])?;
    tx.stamped(tx.now);
    tx.hint(Wakeup::Queue(queue));
    Ok(Ok(EffectReply::Written))
}

fn set_delay(tx: &mut Tx<'_>, id: &WorkflowId, delay: When) -> rusqlite::Result<Applied> {
    let until: Timestamp = delay.resolve(tx.now);
    let changed = tx.conn.run(sql::SET_DELAY, params![id.as_str(), until.0])?;
    Ok(written_if(changed, id))
}

fn attributes(tx: &mut Tx<'_>, id: &WorkflowId, json: Option<&Payload>) -> rusqlite::Result<Applied> {
    let changed = tx.conn.run(sql::SET_ATTRIBUTES, params![id.as_str(), json.map(Payload::as_str)])?;
    Ok(written_if(changed, id))
}

fn written_if(changed: usize, id: &WorkflowId) -> Applied {
    if changed == 0 { Err(Refusal::Missing(id.clone())) } else { Ok(EffectReply::Written) }
}
