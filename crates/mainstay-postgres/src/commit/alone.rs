//! A unit that is written effect by effect: those that reach rows which it does not name, or touch a row twice.
//!
//! Its rows are locked first, in order of id. What it reaches beyond them is found before the lock and looked up again
//! after it: an execution that starts another child holds its own row, and so is seen.

use std::collections::BTreeSet;

use mainstay_store::{Effect, EffectReply, Refusal, Timestamp, Unit, UnitReply, WorkflowId};
use tokio_postgres::Row;

use super::batch;
use super::columns::{Answer, Fences, Outcomes, Steps};
use super::moves::{self, Touched};
use super::submits::Submits;
use super::texts;
use super::{Done, Told, Work};
use crate::fault::Fault;
use crate::row::{self, get};
use crate::session::{Ask, Session};

/// The one unit of its transaction.
const ORD: i32 = 0;

/// How a transaction ended: the unit is written, or undone and answered.
///
/// The flag: see [`Done::lacking`].
enum Ended {
    Written(UnitReply, Told, bool),
    Undone(UnitReply),
}

/// Commits the unit at this place of the batch.
pub(super) async fn commit(session: &mut Session, work: &Work, place: usize) -> Result<Done, Fault> {
    let unit = work.units.get(place).ok_or_else(|| Fault::unreadable("ord", "names no unit"))?;
    let reached = family(session, unit).await?;
    let mut fences = Fences::default();
    fences.push(ORD, unit);
    fences.touch(reached.iter().map(String::as_str));
    fences.touch(unit.effects.iter().flat_map(named));
    fences.seal();
    let (now, judged) = begin(session, work, unit, &fences).await?;
    let (written, mut lacking) = match judged {
        Some((reply, lacking)) => (Ok(Ended::Undone(reply)), lacking),
        None => (write(session, work, unit, &fences).await, false),
    };
    lacking &= !session.texts().layout.split;
    match written {
        Ok(Ended::Written(reply, told, lacking)) => Ok(Done { now, replies: vec![(place, Ok(reply))], told, lacking }),
        Ok(Ended::Undone(reply)) => {
            session.cancel().await?;
            Ok(Done { now, replies: vec![(place, Ok(reply))], told: Told::default(), lacking })
        }
        Err(fault) => {
            // A failure of the server has undone the transaction, and this one then does nothing. Where it fails too, the
            // connection is not used again, and the first failure is the one to tell.
            let _ = session.cancel().await;
            Err(fault)
        }
    }
}

/// The workflows that the unit reaches beyond those that it names.
async fn family(session: &mut Session, unit: &Unit) -> Result<Vec<String>, Fault> {
    let roots: Vec<&str> =
        unit.effects.iter().filter(|effect| reaches(effect)).flat_map(Effect::moves).map(WorkflowId::as_str).collect();
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let rows = session.one(&texts::FAMILY, &[&roots]).await?;
    rows.iter().map(|found| get(found, "id")).collect()
}

fn reaches(effect: &Effect) -> bool {
    matches!(effect, Effect::Cancel { children: true, .. } | Effect::Delete { children: true, .. })
}

/// Rows that an effect touches beside those that it moves.
fn named(effect: &Effect) -> Vec<&str> {
    match effect {
        Effect::Fork(copy) => vec![copy.source.as_str(), copy.id.as_str()],
        Effect::Attributes { id, .. } => vec![id.as_str()],
        _ => Vec::new(),
    }
}

/// An answer of a unit that may not write, and whether it tells of an end without its payload.
type Judged = Option<(UnitReply, bool)>;

/// Begins the transaction; the answer where the unit may not write.
async fn begin(
    session: &mut Session,
    work: &Work,
    unit: &Unit,
    fences: &Fences<'_>,
) -> Result<(Timestamp, Judged), Fault> {
    let mut submits = Submits::default();
    for effect in &unit.effects {
        if let Effect::Submit(new) = effect {
            submits.push(ORD, 0, new, work.about);
        }
    }
    submits.seal();
    let mut steps = Steps::default();
    steps.push(ORD, unit, |_| Answer::Moved);
    let leases = submits.leases(&work.system);
    let held = usize::from(leases.is_some());
    let asks: Vec<Ask<'_>> = leases.into_iter().chain([fences.lock(&work.now)]).chain(fences.probe(&steps)).collect();
    let answers = session.begin(&asks).await?;
    let clock = answers.get(held).and_then(|rows| rows.first());
    let judged = clock
        .ok_or_else(|| Fault::unreadable("now", "is missing"))
        .and_then(|found| Ok((row::stamp(found, "now")?, refused(answers.get(held + 1).map_or(&[], Vec::as_slice))?)));
    if judged.is_err() {
        let _ = session.cancel().await;
    }
    judged
}

/// What the probe says.
fn refused(rows: &[Row]) -> Result<Judged, Fault> {
    let Some(first) = rows.first() else { return Ok(None) };
    if get::<&str>(first, "why")? == "superseded" {
        return Ok(Some((batch::superseded(first)?, row::is_lacking(first)?)));
    }
    let mut rows = rows.iter().map(row::step).collect::<Result<Vec<_>, Fault>>()?;
    rows.sort_unstable_by_key(|row| row.position);
    Ok(Some((UnitReply::Recorded { rows }, false)))
}

/// Writes the effects one after the other, then the rest, and commits.
async fn write(session: &mut Session, work: &Work, unit: &Unit, fences: &Fences<'_>) -> Result<Ended, Fault> {
    let mut touched = Touched::new(unit, fences.locked());
    let mut effects: Vec<EffectReply> = Vec::with_capacity(unit.effects.len());
    for (at, effect) in unit.effects.iter().enumerate() {
        let applied: Result<EffectReply, Refusal> = moves::apply(session, work, effect, &mut touched).await?;
        match applied {
            Ok(reply) => effects.push(reply),
            Err(why) => return Ok(Ended::Undone(UnitReply::Refused { effect: at, why })),
        }
    }
    let (mut steps, mut outcomes) = (Steps::default(), Outcomes::default());
    steps.push(ORD, unit, |effect| {
        let answer = effects.get(effect).map(EffectReply::answer);
        Answer::Text(answer.map_or_else(|| "null".into(), |answer| answer.as_str().to_owned().into()))
    });
    outcomes.push(ORD, unit);
    let ending = outcomes.write(&work.now);
    let ends = ending.is_some();
    let asks: Vec<Ask<'_>> = ending.into_iter().chain(steps.write(&work.now)).collect();
    let answers = session.finish(&asks).await?;
    let mut told = std::mem::take(&mut touched.told);
    for found in answers.first().filter(|_| ends).into_iter().flatten() {
        batch::ended(found, "ended", &mut told.hints)?;
    }
    let lacking = touched.lacking && !session.texts().layout.split;
    Ok(Ended::Written(UnitReply::Done { effects }, told, lacking))
}

/// Rows that a transaction holds.
pub(super) type Held<'u> = BTreeSet<&'u str>;
