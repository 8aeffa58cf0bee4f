//! Units written by kind: one transaction, one trip.

use std::collections::BTreeMap;

use mainstay_store::{Effect, EffectReply, QueueName, RecordedStep, Timestamp, Unit, UnitReply, Wakeup, WorkflowId};
use tokio_postgres::Row;

use super::columns::{self, Cancels, Fences, GiveBacks, Ord, Outcomes, Steps};
use super::submits::{self, Submits};
use super::{Done, Reply, Told, Work};
use crate::fault::Fault;
use crate::row::{self, get};
use crate::session::{Ask, Session};

/// What is sent.
#[derive(Default)]
struct Batch<'u> {
    units: Vec<(Ord, &'u Unit)>,
    fences: Fences<'u>,
    submits: Submits<'u>,
    steps: Steps<'u>,
    outcomes: Outcomes<'u>,
    cancels: Cancels<'u>,
    gives: GiveBacks<'u>,
}

/// The statements of a batch, in their order; those that it does not need are not sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Leases,
    Lock,
    Probe,
    Submit,
    Judge,
    Outcomes,
    Cancels,
    GiveBacks,
    Steps,
}

/// Commits these units of the batch; none for the clock alone.
pub(super) async fn commit(session: &mut Session, work: &Work, places: &[usize]) -> Result<Done, Fault> {
    let mut batch = Batch::default();
    for place in places {
        batch.push(*place, work);
    }
    batch.fences.seal();
    batch.submits.seal();
    let (kinds, asks): (Vec<Kind>, Vec<Ask<'_>>) = batch.asks(work).into_iter().unzip();
    let answers = session.transaction(&asks).await?;
    let mut read = Read::default();
    for (kind, rows) in kinds.into_iter().zip(&answers) {
        read.statement(kind, rows, &batch)?;
    }
    read.lacking &= !session.texts().layout.split;
    read.done(&batch)
}

impl<'u> Batch<'u> {
    fn push(&mut self, place: usize, work: &'u Work) {
        let Some(unit) = work.units.get(place) else { return };
        let ord = super::ordinal(place);
        self.units.push((ord, unit));
        self.fences.push(ord, unit);
        for (effect, item) in unit.effects.iter().enumerate() {
            let effect = super::ordinal(effect);
            match item {
                Effect::Submit(new) => self.submits.push(ord, effect, new, work.about),
                Effect::Cancel { ids, .. } => self.cancels.push(ord, effect, ids.iter().map(WorkflowId::as_str)),
                _ => {}
            }
        }
        self.gives.push(ord, unit);
        self.outcomes.push(ord, unit);
        self.steps.push(ord, unit, |effect| columns::answer_of(unit, effect));
    }

    fn asks<'a>(&'a self, work: &'a Work) -> Vec<(Kind, Ask<'a>)> {
        let now = &work.now;
        [
            (Kind::Leases, self.submits.leases(&work.system)),
            (Kind::Lock, Some(self.fences.lock(now))),
            (Kind::Probe, self.fences.probe(&self.steps)),
            (Kind::Submit, self.submits.write(now)),
            (Kind::Judge, self.submits.judge()),
            (Kind::Outcomes, self.outcomes.write(now)),
            (Kind::Cancels, self.cancels.write(now)),
            (Kind::GiveBacks, self.gives.write(now)),
            (Kind::Steps, self.steps.write(now)),
        ]
        .into_iter()
        .filter_map(|(kind, ask)| Some((kind, ask?)))
        .collect()
    }
}

/// What the answers say so far.
#[derive(Default)]
struct Read {
    now: Option<Timestamp>,
    /// Units that are not done.
    lost: BTreeMap<Ord, Result<UnitReply, Fault>>,
    recorded: BTreeMap<Ord, Vec<RecordedStep>>,
    created: BTreeMap<(Ord, i32), EffectReply>,
    moved: BTreeMap<(Ord, i32), Vec<WorkflowId>>,
    /// Hints of a unit, if it is done.
    made: BTreeMap<Ord, Vec<Wakeup>>,
    told: Told,
    lacking: bool,
}

impl Read {
    fn statement(&mut self, kind: Kind, rows: &[Row], batch: &Batch<'_>) -> Result<(), Fault> {
        match kind {
            Kind::Leases | Kind::Submit | Kind::Steps => Ok(()),
            Kind::Lock => rows.iter().try_for_each(|found| {
                self.now = Some(row::stamp(found, "now")?);
                Ok(())
            }),
            Kind::Probe => rows.iter().try_for_each(|found| self.probed(found)),
            Kind::Judge => rows.iter().try_for_each(|found| self.judged(found, batch)),
            Kind::Outcomes => rows.iter().try_for_each(|found| ended(found, "ended", &mut self.told.hints)),
            Kind::Cancels => rows.iter().try_for_each(|found| self.cancelled(found)),
            Kind::GiveBacks => rows.iter().try_for_each(|found| given_back(found, &mut self.told)),
        }
    }

    fn probed(&mut self, found: &Row) -> Result<(), Fault> {
        let ord: Ord = get(found, "ord")?;
        if get::<&str>(found, "why")? == "superseded" {
            self.lacking |= row::is_lacking(found)?;
            self.lost.insert(ord, superseded(found));
        } else {
            match row::step(found) {
                Ok(step) => self.recorded.entry(ord).or_default().push(step),
                Err(fault) => drop(self.lost.insert(ord, Err(fault))),
            }
        }
        Ok(())
    }

    fn judged(&mut self, found: &Row, batch: &Batch<'_>) -> Result<(), Fault> {
        let judged = submits::judged(found, &batch.submits)?;
        let (ord, effect) = (judged.ord, judged.effect);
        self.lacking |= judged.lacking;
        self.made.entry(ord).or_default().extend(judged.hint);
        match judged.answer {
            Ok(Ok(reply)) => {
                self.created.insert((ord, effect), reply);
            }
            // Rows come in order of effect: the first that loses is named.
            Ok(Err(why)) => {
                let effect = usize::try_from(effect).unwrap_or_default();
                self.lost.entry(ord).or_insert(Ok(UnitReply::Refused { effect, why }));
            }
            Err(fault) => {
                self.lost.entry(ord).or_insert(Err(fault));
            }
        }
        Ok(())
    }

    fn cancelled(&mut self, found: &Row) -> Result<(), Fault> {
        let id = cancelled(found, &mut self.told.hints)?;
        self.moved.entry((get(found, "ord")?, get(found, "effect")?)).or_default().push(id);
        Ok(())
    }

    fn done(mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        let mut replies: Vec<(usize, Reply)> = Vec::with_capacity(batch.units.len());
        for (ord, unit) in &batch.units {
            let reply = match (self.lost.remove(ord), self.recorded.remove(ord)) {
                (Some(lost), _) => lost,
                (None, Some(mut rows)) => {
                    rows.sort_unstable_by_key(|row| row.position);
                    Ok(UnitReply::Recorded { rows })
                }
                (None, None) => {
                    self.told.hints.extend(self.made.remove(ord).unwrap_or_default());
                    self.effects(*ord, unit)
                }
            };
            replies.push((usize::try_from(*ord).unwrap_or_default(), reply));
        }
        let now = self.now.ok_or_else(|| Fault::unreadable("now", "is missing"))?;
        Ok(Done { now, replies, told: self.told, lacking: self.lacking })
    }

    fn effects(&mut self, ord: Ord, unit: &Unit) -> Result<UnitReply, Fault> {
        let mut effects = Vec::with_capacity(unit.effects.len());
        for (at, effect) in unit.effects.iter().enumerate() {
            let key = (ord, super::ordinal(at));
            effects.push(match effect {
                Effect::Submit(_) => {
                    self.created.remove(&key).ok_or_else(|| Fault::unreadable("verdict", "a submit was not judged"))?
                }
                Effect::Cancel { .. } => EffectReply::Moved(self.moved.remove(&key).unwrap_or_default()),
                _ => EffectReply::Written,
            });
        }
        Ok(UnitReply::Done { effects })
    }
}

/// What the row of a void fence is, by a row of the probe.
pub(super) fn superseded(found: &Row) -> Result<UnitReply, Fault> {
    let by = match get::<Option<&str>>(found, "status")? {
        None => mainstay_store::Standing::Gone,
        Some(_) => row::standing(found)?,
    };
    Ok(UnitReply::Superseded { by })
}

/// Hints of workflows that have left their execution, named by `column`, and of the queues where that makes room.
pub(super) fn ended(found: &Row, column: &str, hints: &mut Vec<Wakeup>) -> Result<(), Fault> {
    let ids: Vec<String> = get(found, column)?;
    hints.extend(ids.into_iter().map(|id| Wakeup::Workflow(id.into())));
    rooms(found, hints)
}

pub(super) fn rooms(found: &Row, hints: &mut Vec<Wakeup>) -> Result<(), Fault> {
    let rooms: Vec<String> = get(found, "rooms")?;
    hints.extend(rooms.into_iter().map(|queue| Wakeup::Queue(queue.into())));
    Ok(())
}

/// The workflow of a row of the cancels, with its hints.
pub(super) fn cancelled(found: &Row, hints: &mut Vec<Wakeup>) -> Result<WorkflowId, Fault> {
    let id: WorkflowId = row::text(found, "id")?;
    hints.push(Wakeup::Workflow(id.clone()));
    if get(found, "room")? {
        hints.extend(row::filled_if(found, "queue")?.map(Wakeup::Queue));
    }
    Ok(id)
}

fn given_back(found: &Row, told: &mut Told) -> Result<(), Fault> {
    let queues: Vec<String> = get(found, "claimable")?;
    for queue in queues.into_iter().map(QueueName::from) {
        told.returned.push(queue.clone());
        told.hints.push(Wakeup::Queue(queue));
    }
    rooms(found, &mut told.hints)
}
