//! The tick and the collection of ended rows.

use std::collections::BTreeSet;

use async_trait::async_trait;
use mainstay_store::{
    Beaten, Collect, Collected, Lease, Maintenance, QueueName, RegistryStamp, Result, StoreError, Tick, Ticked,
    Timestamp, Wakeup, WorkflowId, wire,
};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;

use crate::executor::{self, Moved};
use crate::fault::Fault;
use crate::queues;
use crate::row;
use crate::session::{Ask, Session};
use crate::store::Postgres;
use crate::text::{Text, text};

static SWEEP: Text = text!("tick_sweep");
static READ: Text = text!("tick_read");
static ROWS: Text = text!("collect_rows");
static PICK: Text = text!("collect_pick");
static ORPHANS: Text = text!("collect_orphans");

/// The statements of this module.
#[cfg(test)]
pub(crate) const ALL: &[&Text] = &[&SWEEP, &READ, &ROWS, &PICK, &ORPHANS];

/// The parts of its age at which a look for orphans may begin.
const PLACES: u64 = 1_000;

type Done<T> = std::result::Result<T, Fault>;

#[async_trait]
impl Maintenance for Postgres {
    async fn tick(&self, request: Tick) -> Result<Ticked> {
        let op = "tick";
        request.check(&self.bounds()).map_err(|field| StoreError::field_error(op, field))?;
        let (now, system) = (self.now(), self.system().to_owned());
        let (ticked, number, hints) = self
            .call(op, move |session| {
                let (system, request) = (system.clone(), request.clone());
                Box::pin(async move { tick(session, now, &system, &request).await })
            })
            .await?;
        self.fronts().returned(&ticked.released);
        self.publish(hints);
        // What the tick did stands, and the next one looks again.
        if let Err(error) = self.note_number(number).await {
            tracing::warn!(%error, number, "the schema has another number and could not be looked at");
        }
        Ok(ticked)
    }

    async fn collect(&self, request: Collect) -> Result<Collected> {
        let op = "collect";
        request.check(&self.bounds()).map_err(|field| StoreError::field_error(op, field))?;
        let (now, place) = (self.now(), mainstay_store::Store::env(self).rng().below(PLACES));
        let sweep = Sweep { place: i32::try_from(place).unwrap_or(0), key: turn(self.system()) };
        let (collected, hints) = self
            .call(op, move |session| {
                let request = request.clone();
                Box::pin(async move { collect(session, now, &request, sweep).await })
            })
            .await?;
        self.publish(hints);
        Ok(collected)
    }
}

/// The beat, the sweep and the reads in one transaction and one trip; the recorded number beside the answer.
async fn tick(
    session: &mut Session,
    now: Option<i64>,
    system: &str,
    request: &Tick,
) -> Done<(Ticked, i64, Vec<Wakeup>)> {
    let (app, internal) = (request.app.as_str(), wire::INTERNAL_QUEUE);
    let limit = i32::try_from(request.limit).unwrap_or(i32::MAX);
    let seen = request.seen.map(|seen| seen.0);
    let beat = request.beat.as_ref().map(|beat| Moved::of(beat, system));
    let mut asks: Vec<Ask<'_>> = beat.iter().map(Moved::ask).collect();
    asks.push(Ask::new(&SWEEP, &[&now, &app, &internal, &limit]));
    asks.push(Ask::new(&READ, &[&now, &system, &app, &seen]));
    let mut answers = session.transaction(&asks).await?;
    let (read, swept) = (answers.pop().unwrap_or_default(), answers.pop().unwrap_or_default());
    let beaten: Option<Beaten> = answers.pop().map(|rows| executor::beaten(rows.len()));
    let read = read.first().ok_or_else(|| Fault::unreadable("now", "the statement answered no row"))?;
    let mut ticked = found(read, request)?;
    ticked.beat = beaten;
    let hints = swept_rows(&swept, &mut ticked)?;
    let number = row::get::<Option<i64>>(read, "catalog")?.unwrap_or(0);
    ticked.catalog = u32::try_from(number.max(0)).unwrap_or(u32::MAX);
    Ok((ticked, number, hints))
}

/// What a tick has read.
fn found(read: &Row, request: &Tick) -> Done<Ticked> {
    let now = row::stamp(read, "now")?;
    let mut ticked = Ticked::new(now, RegistryStamp(row::get(read, "stamp")?));
    if let Some(text) = row::get::<Option<&str>>(read, "queues")? {
        let stored: Vec<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| Fault::unreadable("queues", error))?;
        let named = |stored: &serde_json::Value| {
            let name = stored.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
            (QueueName::from(name), queues::queue_json(stored))
        };
        let (queues, malformed) = queues::all(stored.iter().map(named).collect());
        ticked.queues = Some(queues);
        ticked.malformed = malformed;
    }
    let leases: Vec<(String, i64, bool)> =
        serde_json::from_str(row::get(read, "leases")?).map_err(|error| Fault::unreadable("leases", error))?;
    let lease = |(executor, beat, ended): (String, i64, bool)| {
        Lease::new(executor, request.app.clone(), executor::counted(beat)).ended(ended)
    };
    ticked.leases = leases.into_iter().map(lease).collect();
    ticked.next_due = row::stamp_if(read, "next_due")?.map(|at: Timestamp| at.since(now));
    Ok(ticked)
}

/// Rows with an id were cancelled, the others released. A queue beside an id has a fleet limit, and now room.
fn swept_rows(swept: &[Row], ticked: &mut Ticked) -> Done<Vec<Wakeup>> {
    let (mut released, mut hints) = (BTreeSet::new(), Vec::new());
    for found in swept {
        let queue = row::text_if::<QueueName>(found, "queue_name")?;
        hints.extend(queue.clone().map(Wakeup::Queue));
        match row::text_if::<WorkflowId>(found, "workflow_uuid")? {
            Some(id) => {
                hints.push(Wakeup::Workflow(id.clone()));
                ticked.cancelled.push(id);
            }
            None => released.extend(queue),
        }
    }
    ticked.released = released.into_iter().collect();
    ticked.cancelled.sort_unstable();
    Ok(hints)
}

/// How one look for orphans goes.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    /// Where in the order of age it begins, in thousandths.
    place: i32,
    /// The lock that all peers take for it.
    key: i64,
}

/// The advisory lock under which the SDKs look for orphans of a schema, so that two never do at once. Source: schema
/// documentation of the shared database, section on garbage collection.
fn turn(schema: &str) -> i64 {
    let digest = Sha256::digest(format!("dbos.retention.{schema}").as_bytes());
    digest.iter().take(8).fold(0, |key, byte| (key << 8) | i64::from(*byte))
}

/// Old rows with all that hangs on them, and payloads and steps that older peers have left behind.
async fn collect(
    session: &mut Session,
    now: Option<i64>,
    request: &Collect,
    sweep: Sweep,
) -> Done<(Collected, Vec<Wakeup>)> {
    let (app, age) = (request.app.as_str(), row::millis(request.age));
    let limit = i32::try_from(request.limit).unwrap_or(i32::MAX);
    let mut asks = vec![Ask::new(&ROWS, &[&now, &app, &age, &limit])];
    // Elsewhere a key deletes steps with their workflow, and payloads stand in its row.
    if session.texts().layout.split {
        asks.push(Ask::new(&PICK, &[&now, &age, &limit, &sweep.place, &sweep.key]));
        asks.push(Ask::new(&ORPHANS, &[]));
    }
    let answers = session.transaction(&asks).await?;
    let rows = answers.first().map(Vec::as_slice).unwrap_or_default();
    let first = rows.first().ok_or_else(|| Fault::unreadable("now", "the statement answered no row"))?;
    let mut collected = Collected::new(row::stamp(first, "now")?);
    collected.more = row::get(first, "more")?;
    let ids = rows.iter().map(|found| row::text_if::<WorkflowId>(found, "workflow_uuid")).collect::<Done<Vec<_>>>()?;
    let hints: Vec<Wakeup> = ids.into_iter().flatten().map(Wakeup::Workflow).collect();
    collected.removed = u32::try_from(hints.len()).unwrap_or(u32::MAX);
    if let Some(orphans) = answers.get(2).and_then(|rows| rows.first()) {
        let count = |column| row::get::<i64>(orphans, column);
        let (inputs, outputs, steps) = (count("inputs")?, count("outputs")?, count("steps")?);
        if inputs + outputs + steps > 0 {
            tracing::info!(inputs, outputs, steps, "removed what deleted workflows had left behind");
        }
    }
    Ok((collected, hints))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_is_that_of_the_other_sdks() {
        assert_eq!(turn("dbos"), 7_208_852_302_618_897_048);
        assert_ne!(turn("other"), turn("dbos"));
    }
}
