//! A unit that is written effect by effect: those that reach rows which it does not name, or touch a row twice.
//!
//! Its rows are locked first, in order of id. What it reaches beyond them is found before the lock and looked up again
//! after it: an execution that starts another child holds its own row, so none is started unseen where that is held.

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
    let Begun { now, judged, held } = begin(session, work, unit, &fences).await?;
    let (written, mut lacking) = match judged {
        Some((reply, lacking)) => (Ok(Ended::Undone(reply)), lacking),
        None => (write(session, work, unit, held).await, false),
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
async fn family(session: &mut Session, unit: &Unit) -> Result<BTreeSet<String>, Fault> {
    let roots: Vec<&str> =
        unit.effects.iter().filter(|effect| reaches(effect)).flat_map(Effect::moves).map(WorkflowId::as_str).collect();
    if roots.is_empty() {
        return Ok(BTreeSet::new());
    }
    moves::ids_of(&session.one(&texts::FAMILY, &[&roots]).await?)
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

/// A transaction that has begun.
struct Begun {
    now: Timestamp,
    /// The answer where the unit may not write.
    judged: Judged,
    /// Of a unit that reaches families, the rows that are held.
    held: BTreeSet<String>,
}

/// Begins the transaction.
async fn begin(session: &mut Session, work: &Work, unit: &Unit, fences: &Fences<'_>) -> Result<Begun, Fault> {
    let mut submits = Submits::default();
    for effect in &unit.effects {
        if let Effect::Submit(new) = effect {
            submits.push(ORD, 0, new, work.about);
        }
    }
    submits.seal();
    let mut steps = Steps::default();
    steps.push(ORD, unit, |_| Answer::Moved);
    let (leases, probe) = (submits.leases(&work.system), fences.probe(&steps));
    let (leased, probed) = (usize::from(leases.is_some()), usize::from(probe.is_some()));
    let states = unit.effects.iter().any(reaches).then(|| fences.states());
    let asks: Vec<Ask<'_>> = leases.into_iter().chain([fences.lock(&work.now)]).chain(probe).chain(states).collect();
    let answers = session.begin(&asks).await?;
    let answer = |at: usize| answers.get(at).map_or(&[][..], Vec::as_slice);
    let begun = answer(leased).first().ok_or_else(|| Fault::unreadable("now", "is missing")).and_then(|found| {
        let judged = refused(if probed == 1 { answer(leased + 1) } else { &[] })?;
        Ok(Begun { now: row::stamp(found, "now")?, judged, held: moves::ids_of(answer(leased + 1 + probed))? })
    });
    if begun.is_err() {
        let _ = session.cancel().await;
    }
    begun
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
async fn write(session: &mut Session, work: &Work, unit: &Unit, held: BTreeSet<String>) -> Result<Ended, Fault> {
    let mut touched = Touched::new(unit, held);
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
