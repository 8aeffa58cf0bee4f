//! Effects one by one, in a transaction that holds the rows they touch.

use std::collections::BTreeSet;

use mainstay_store::model::wire;
use mainstay_store::{
    Effect, EffectReply, ErrorKind, Fork, Move, Payload, QueueName, Refusal, Status, Submit, Unit, Wakeup, When,
    WorkflowId,
};
use tokio_postgres::Row;

use super::batch;
use super::columns::Cancels;
use super::submits::{self, Submits};
use super::texts;
use super::{Told, Work};
use crate::fault::Fault;
use crate::row::{self, bound, get, millis};
use crate::session::{Ask, Param, Session};
use crate::text::Text;

/// What an effect did, or why it refuses its unit.
type Applied = Result<Result<EffectReply, Refusal>, Fault>;

/// The one unit of its transaction.
const ORD: i32 = 0;

/// Most looks at a family, one after the other, that find a row of it held by another.
const MOST_LOOKS: u32 = 5;

/// What a transaction holds, and what there is to tell of it.
pub(super) struct Touched<'u> {
    /// Rows that are there and held, of those that a unit with families may move.
    held: BTreeSet<String>,
    own: Option<&'u str>,
    pub(super) told: Told,
    /// Whether an answer is an end without its payload.
    pub(super) lacking: bool,
}

impl<'u> Touched<'u> {
    pub(super) fn new(unit: &'u Unit, held: BTreeSet<String>) -> Self {
        let own = unit.fence.as_ref().map(|fence| fence.workflow().as_str());
        Self { held, own, told: Told::default(), lacking: false }
    }
}

/// Writes one effect.
pub(super) async fn apply<'u>(
    session: &mut Session,
    work: &Work,
    effect: &'u Effect,
    touched: &mut Touched<'u>,
) -> Applied {
    match effect {
        Effect::Submit(new) => submit(session, work, new, touched).await,
        Effect::Cancel { ids, children } => {
            let reached = reached(session, ids, *children, touched).await?;
            cancel(session, work, reached, touched).await
        }
        Effect::Delete { ids, children } => {
            let reached = reached(session, ids, *children, touched).await?;
            delete(session, reached, touched).await
        }
        Effect::Resume { ids, queue, force } => {
            let resume = Resume { ids, queue: queue.as_ref(), force: *force };
            resume.apply(session, work, touched).await
        }
        Effect::Fork(copy) => fork(session, work, copy, touched).await,
        Effect::SetDelay { id, delay } => {
            let (delay, due) = match delay {
                When::In(delay) => (Some(millis(*delay)), None),
                When::At(at) => (None, Some(at.0)),
            };
            let rows = go_on(session, &texts::SET_DELAY, &[&work.now, &id.as_str(), &delay, &due]).await?;
            Ok(written_if(&rows, id))
        }
        Effect::Attributes { id, json } => {
            let json = json.as_ref().map(Payload::as_str);
            let rows = go_on(session, &texts::ATTRIBUTES, &[&id.as_str(), &json]).await?;
            Ok(written_if(&rows, id))
        }
        _ => Ok(Err(Refusal::Unsupported)),
    }
}

/// One statement in the transaction.
async fn go_on(session: &mut Session, text: &'static Text, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
    Ok(session.go_on(&[Ask::new(text, params)]).await?.pop().unwrap_or_default())
}

fn written_if(rows: &[Row], id: &WorkflowId) -> Result<EffectReply, Refusal> {
    if rows.is_empty() { Err(Refusal::Missing(id.clone())) } else { Ok(EffectReply::Written) }
}

async fn submit<'u>(session: &mut Session, work: &Work, new: &'u Submit, touched: &mut Touched<'u>) -> Applied {
    let mut submits = Submits::default();
    submits.push(ORD, 0, new, work.about);
    let asks: Vec<Ask<'_>> = submits.write(&work.now).into_iter().chain(submits.judge()).collect();
    let answers = session.go_on(&asks).await?;
    let found = answers.last().and_then(|rows| rows.first());
    let judged = submits::judged(found.ok_or_else(|| Fault::unreadable("verdict", "is missing"))?, &submits)?;
    touched.told.hints.extend(judged.hint);
    touched.lacking |= judged.lacking;
    judged.answer
}

/// The named workflows, with their descendants where wanted; never the unit's own.
async fn reached(
    session: &mut Session,
    ids: &[WorkflowId],
    children: bool,
    touched: &mut Touched<'_>,
) -> Result<BTreeSet<String>, Fault> {
    let roots: BTreeSet<String> = ids.iter().map(|id| id.as_str().to_owned()).collect();
    let mut reached = if children { family(session, roots, touched).await? } else { roots };
    if let Some(own) = touched.own {
        reached.remove(own);
    }
    Ok(reached)
}

/// Those of the named workflows that are there, and all descendants of the named, each of them held: none has a child that is
/// not seen. One that came after the lock is held from here on. A named one that another holds is not there yet, nor is what
/// came beneath it. For a descendant that another holds the transaction is begun anew in the end: its holder may be waiting
/// for this one.
async fn family(
    session: &mut Session,
    mut roots: BTreeSet<String>,
    touched: &mut Touched<'_>,
) -> Result<BTreeSet<String>, Fault> {
    let (known, mut late) = (touched.held.clone(), BTreeSet::new());
    let mut fruitless = 0;
    while fruitless < MOST_LOOKS {
        let mut found = descendants(session, &roots).await?;
        if found.is_subset(&touched.held) {
            let beneath = if late.is_empty() { late } else { descendants(session, &late).await? };
            found.extend(beneath.intersection(&known).cloned());
            return Ok(found);
        }
        let before = touched.held.len() + late.len();
        hold(session, &found, touched).await?;
        late.extend(roots.extract_if(.., |id| found.contains(id) && !touched.held.contains(id)));
        fruitless = if touched.held.len() + late.len() == before { fruitless + 1 } else { 0 };
    }
    Err(Fault::Store(ErrorKind::Contended, "a family has grown".into()))
}

/// Workflows that are there, with all their descendants and those of others.
async fn descendants(session: &mut Session, roots: &BTreeSet<String>) -> Result<BTreeSet<String>, Fault> {
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    ids_of(&go_on(session, &texts::FAMILY, &[&roots]).await?)
}

/// Holds those of these rows that are there and that nobody else holds.
async fn hold(session: &mut Session, ids: &BTreeSet<String>, touched: &mut Touched<'_>) -> Result<(), Fault> {
    let missing: Vec<&str> = ids.difference(&touched.held).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let rows = go_on(session, &texts::STATES, &[&missing]).await?;
    touched.held.extend(ids_of(&rows)?);
    Ok(())
}

/// The rows that [`texts::STATES`] or [`texts::FAMILY`] has found.
pub(super) fn ids_of(rows: &[Row]) -> Result<BTreeSet<String>, Fault> {
    rows.iter().map(|found| get(found, "id")).collect()
}

async fn cancel(session: &mut Session, work: &Work, ids: BTreeSet<String>, touched: &mut Touched<'_>) -> Applied {
    let mut cancels = Cancels::default();
    cancels.push(ORD, 0, ids.iter().map(String::as_str));
    let asks: Vec<Ask<'_>> = cancels.write(&work.now).into_iter().collect();
    let answers = session.go_on(&asks).await?;
    let mut moved = BTreeSet::new();
    for found in answers.iter().flatten() {
        moved.insert(batch::cancelled(found, &mut touched.told.hints)?);
    }
    Ok(Ok(EffectReply::Moved(moved.into_iter().collect())))
}

async fn delete(session: &mut Session, ids: BTreeSet<String>, touched: &mut Touched<'_>) -> Applied {
    let ids: Vec<String> = ids.into_iter().collect();
    let rows = go_on(session, &texts::DELETE, &[&ids]).await?;
    let mut gone: BTreeSet<WorkflowId> = BTreeSet::new();
    for found in &rows {
        batch::ended(found, "gone", &mut touched.told.hints)?;
        gone.extend(get::<Vec<String>>(found, "gone")?.into_iter().map(WorkflowId::from));
    }
    Ok(Ok(EffectReply::Moved(gone.into_iter().collect())))
}

/// A resume.
struct Resume<'a> {
    ids: &'a [WorkflowId],
    queue: Option<&'a QueueName>,
    force: bool,
}

impl Resume<'_> {
    async fn apply(&self, session: &mut Session, work: &Work, touched: &mut Touched<'_>) -> Applied {
        let named: Vec<&str> = self.ids.iter().map(WorkflowId::as_str).collect();
        let states = go_on(session, &texts::STATES, &[&named]).await?;
        let mut resumed = BTreeSet::new();
        for id in self.ids {
            let Some(status) = status_of(&states, id)? else { return Ok(Err(Refusal::Missing(id.clone()))) };
            if status == Status::Pending && !self.force {
                return Ok(Err(Refusal::Running(id.clone())));
            }
            if status.after(Move::Resume).is_some() {
                resumed.insert(id.clone());
            }
        }
        let ids: Vec<&str> = resumed.iter().map(WorkflowId::as_str).collect();
        let queue = self.queue.cloned().unwrap_or_else(|| wire::INTERNAL_QUEUE.into());
        let rows = go_on(session, &texts::RESUME, &[&work.now, &ids, &queue.as_str()]).await?;
        rows.iter().try_for_each(|found| batch::ended(found, "taken", &mut touched.told.hints))?;
        if !resumed.is_empty() {
            touched.told.returned.push(queue.clone());
            touched.told.hints.push(Wakeup::Queue(queue));
        }
        Ok(Ok(EffectReply::Moved(resumed.into_iter().collect())))
    }
}

fn state<'r>(states: &'r [Row], id: &WorkflowId) -> Result<Option<&'r Row>, Fault> {
    for found in states {
        if get::<&str>(found, "id")? == id.as_str() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn status_of(states: &[Row], id: &WorkflowId) -> Result<Option<Status>, Fault> {
    state(states, id)?.map(|found| row::status(found).map_err(|fault| row::named(id, fault))).transpose()
}

async fn fork(session: &mut Session, work: &Work, copy: &Fork, touched: &mut Touched<'_>) -> Applied {
    let (source, id) = (copy.source.as_str(), copy.id.as_str());
    if let Some(answer) = taken(session, copy).await? {
        return Ok(answer);
    }
    let queue = copy.queue.clone().unwrap_or_else(|| wire::INTERNAL_QUEUE.into());
    let (version, key) = (bound(copy.version.as_ref()), bound(copy.key.as_ref()));
    let params: [Param<'_>; 6] = [&work.now, &source, &id, &version, &queue.as_str(), &key];
    if go_on(session, &texts::FORK_ROW, &params).await?.is_empty() {
        // Another has made the id meanwhile, and may have removed it again.
        let answer = taken(session, copy).await?;
        return answer.ok_or_else(|| Fault::Store(ErrorKind::Contended, "the id of a copy came and went".into()));
    }
    let clean: [Param<'_>; 1] = [&id];
    let params: [Param<'_>; 4] = [&work.now, &source, &id, &copy.below.0];
    session.go_on(&[Ask::new(&texts::FORK_CLEAN, &clean), Ask::new(&texts::FORK_COPY, &params)]).await?;
    touched.told.hints.push(Wakeup::Queue(queue));
    Ok(Ok(EffectReply::Written))
}

/// The answer to a fork whose source is missing or whose id is taken.
async fn taken(session: &mut Session, copy: &Fork) -> Result<Option<Result<EffectReply, Refusal>>, Fault> {
    let both: Vec<&str> = vec![copy.source.as_str(), copy.id.as_str()];
    let states = go_on(session, &texts::STATES, &[&both]).await?;
    if state(&states, &copy.source)?.is_none() {
        return Ok(Some(Err(Refusal::Missing(copy.source.clone()))));
    }
    let Some(found) = state(&states, &copy.id)? else { return Ok(None) };
    let from: Option<&str> = get(found, "forked_from")?;
    if from == Some(copy.source.as_str()) {
        return Ok(Some(Ok(EffectReply::Written)));
    }
    Ok(Some(Err(submits::conflict(found, &copy.id)?)))
}
