//! Ends whose payload was not in the row, where the statements of a commit have looked for it: a peer may have given payloads
//! tables of their own since the last look at the catalog.

use mainstay_store::{Effect, EffectReply, Payload, Result, Standing, StoreError, Unit, UnitReply, WorkflowId};

use super::OP;
use crate::store::Postgres;

/// The answer to a unit, once it has one.
type Answer = Option<Result<UnitReply>>;

/// Looks at the catalog, and reads those ends again where it shows the tables. Where that fails, the units that have them
/// are answered by the failure: sent again, each of them meets the same end.
pub(super) async fn complete(store: &Postgres, units: &[Unit], replies: &mut [Answer]) {
    let found: Vec<WorkflowId> = all(units, replies).map(|(id, _)| id.clone()).collect();
    match read(store, &found).await {
        Ok(None) => {}
        Ok(Some(standings)) => {
            for ((_, end), standing) in all(units, replies).zip(standings) {
                *end = standing;
            }
        }
        Err(error) => {
            for (unit, reply) in units.iter().zip(replies) {
                if !ends(unit, reply).is_empty() {
                    *reply = Some(Err(StoreError::new(error.kind(), OP).with_source(error.to_string())));
                }
            }
        }
    }
}

async fn read(store: &Postgres, ids: &[WorkflowId]) -> Result<Option<Vec<Standing>>> {
    if !store.is_split(OP).await? {
        return Ok(None);
    }
    Ok(Some(store.standings(OP, ids).await?.0))
}

fn all<'a>(units: &'a [Unit], replies: &'a mut [Answer]) -> impl Iterator<Item = (&'a WorkflowId, &'a mut Standing)> {
    units.iter().zip(replies).flat_map(|(unit, reply)| ends(unit, reply))
}

/// The ends that an answer tells of and that may lack their payload, with their workflows.
fn ends<'a>(unit: &'a Unit, reply: &'a mut Answer) -> Vec<(&'a WorkflowId, &'a mut Standing)> {
    let found: Vec<(Option<&WorkflowId>, &mut Standing)> = match reply {
        Some(Ok(UnitReply::Superseded { by })) => vec![(unit.fence.as_ref().map(|fence| fence.workflow()), by)],
        Some(Ok(UnitReply::Done { effects })) => {
            let both = unit.effects.iter().zip(effects);
            both.filter_map(|(effect, reply)| match (effect, reply) {
                (Effect::Submit(new), EffectReply::Existing(standing)) => Some((Some(&new.id), standing)),
                _ => None,
            })
            .collect()
        }
        _ => Vec::new(),
    };
    found.into_iter().filter(|(_, end)| may_lack(end)).filter_map(|(id, end)| Some((id?, end))).collect()
}

/// Whether an end is one that reads as if its payload were missing.
fn may_lack(standing: &Standing) -> bool {
    let Standing::Ended(outcome) = standing else { return false };
    outcome.payload().map(Payload::as_str) == Some("null")
}
