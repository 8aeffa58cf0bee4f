//! The claim: planned with the queue's row, one statement where nothing is counted for the fleet, two trips under the
//! queue's lock where something is.

mod front;
mod fronts;
mod late;
#[cfg(test)]
mod plans;
mod reply;
mod take;
mod wanted;

use std::sync::Arc;

use mainstay_store::model::wire;
use mainstay_store::{Allowance, Claim, Claimed, ErrorKind, Queue, Result, Stop, StoreError, Timestamp, Wakeup};

use crate::claim::reply::{Found, Reply, State, Unread};
use crate::fault::Fault;
use crate::queues;
use crate::row::get;
use crate::session::Session;
use crate::store::Postgres;
use crate::text::{Text, text};

pub(crate) use front::look_after;
pub(crate) use fronts::{Asker, Fronts, Hole, Planned};
use wanted::Wanted;

pub(crate) const OP: &str = "queue_claim";

static QUEUE: Text = text!("claim_queue");
static ASIDE: Text = text!("claim_aside");

/// The statements of claims.
#[cfg(test)]
pub(crate) const ALL: &[&Text] = &[
    &QUEUE,
    &ASIDE,
    &take::PLAIN,
    &take::LOCK,
    &take::COUNTS,
    &take::TAKE,
    &take::REPEAT,
    &late::INPUTS,
    &late::REFENCE,
    &late::TRIM,
    &front::FRONT,
];

/// How often a claim is planned anew because the queue's row has changed between the plan and the claim.
const PLANS: usize = 8;

/// Answers a claim.
pub(crate) async fn run(store: &Postgres, request: Claim) -> Result<Claimed> {
    request.check(&store.bounds()).map_err(|field| StoreError::field_error(OP, field))?;
    // A claim whose caller has gone goes on; the same one again finds what it took.
    let turn = store.fronts().turn(&request.token).lock_owned().await;
    let wanted = Arc::new(Wanted::new(store, request, turn));
    if wanted.request.repeat
        && let Some(claimed) = repeat(store, &wanted).await?
    {
        return Ok(claimed);
    }
    let mut now = Timestamp::from_millis(0);
    for _ in 0..PLANS {
        let planned = match plan(store, &wanted).await? {
            Ok(planned) => planned,
            Err(claimed) => return Ok(*claimed),
        };
        let (reply, allowance) = match take::run(store, &wanted, &planned).await {
            // A claim waits for nobody, and says so where it had to give way.
            Err(error) if error.kind() == ErrorKind::Contended => return contended(store, &wanted).await,
            taken => taken?,
        };
        now = reply.now;
        match reply.state {
            State::Open => return taken(store, &wanted, reply, &allowance).await,
            State::Contended => return Ok(Claimed::new(now, Stop::Contended)),
            State::Unleased => return Ok(Claimed::new(now, Stop::Unleased)),
            State::Changed => store.fronts().forget(&wanted.request.queue),
        }
    }
    Ok(Claimed::new(now, Stop::Contended))
}

/// The rows that the same claim, sent before, has taken and still holds; none where it is to take anew.
async fn repeat(store: &Postgres, wanted: &Arc<Wanted>) -> Result<Option<Claimed>> {
    let reply = take::repeat(store, wanted).await?;
    if reply.state == State::Unleased {
        return Ok(Some(Claimed::new(reply.now, Stop::Unleased)));
    }
    let mut claimed = Claimed::new(reply.now, Stop::More);
    let layout = reply.layout;
    for found in reply.found {
        match found {
            Found::Row(row) => claimed.rows.push(*row),
            Found::Unreadable(Unread { id, reason, .. }) => {
                tracing::warn!(workflow = %id, error = reason, "a claimed row cannot be read");
            }
            Found::Parked(_) => {}
        }
    }
    late::complete(store, wanted, layout, &mut claimed.rows).await?;
    Ok((!claimed.rows.is_empty()).then_some(claimed))
}

type Plan = std::result::Result<Arc<Planned>, Box<Claimed>>;

/// What the claim is planned with, or its answer where nothing may be taken.
async fn plan(store: &Postgres, wanted: &Arc<Wanted>) -> Result<Plan> {
    let Claim { queue, revision, .. } = &wanted.request;
    if *queue == *wire::INTERNAL_QUEUE {
        return Ok(Ok(Arc::new(Planned::default())));
    }
    if let Some(known) = store.fronts().planned(queue)
        && revision.is_none_or(|revision| known.revision == Some(revision.0))
    {
        return Ok(Ok(known));
    }
    let Read { now, leased, queue: read } = read(store, wanted).await?;
    if !leased {
        return Ok(Err(Box::new(Claimed::new(now, Stop::Unleased))));
    }
    let Some(read) = read else {
        store.fronts().forget(queue);
        return Ok(Err(Box::new(Claimed::new(now, Stop::NoQueue))));
    };
    let read = read.map_err(|fault| fault.of(OP))?;
    if revision.is_some_and(|revision| revision != read.revision) {
        return Ok(Err(Box::new(Claimed::new(now, Stop::Stale(Box::new(read))))));
    }
    let limits = read.limits();
    if limits.partitioned() {
        return Err(StoreError::unsupported(OP, "partitions"));
    }
    let planned = Arc::new(Planned { revision: Some(read.revision.0), limits });
    store.fronts().keep(queue, planned.clone());
    Ok(Ok(planned))
}

/// The lease and the queue's row.
struct Read {
    now: Timestamp,
    leased: bool,
    queue: Option<std::result::Result<Queue, Fault>>,
}

async fn read(store: &Postgres, wanted: &Arc<Wanted>) -> Result<Read> {
    let wanted = wanted.clone();
    store
        .call(OP, move |session: &mut Session| {
            let wanted = wanted.clone();
            Box::pin(async move {
                let Claim { queue, executor, .. } = &wanted.request;
                let (queue, executor) = (queue.as_str(), executor.as_str());
                let rows = session.one(&QUEUE, &[&wanted.now, &wanted.system, &executor, &queue]).await?;
                let row = rows.first().ok_or_else(|| Fault::unreadable("claim", "no row"))?;
                let now = Timestamp::from_millis(get(row, "now")?);
                let queue = get::<Option<&str>>(row, "queue")?.map(|_| queues::queue(row));
                Ok(Read { now, leased: get(row, "leased")?, queue })
            })
        })
        .await
}

async fn contended(store: &Postgres, wanted: &Arc<Wanted>) -> Result<Claimed> {
    Ok(Claimed::new(read(store, wanted).await?.now, Stop::Contended))
}

/// The answer of a claim that could take.
async fn taken(store: &Postgres, wanted: &Arc<Wanted>, reply: Reply, allowance: &Allowance) -> Result<Claimed> {
    let mut claimed = Claimed::new(reply.now, allowance.full.clone());
    let layout = reply.layout;
    let mut unread = Vec::new();
    for found in reply.found {
        match found {
            Found::Row(row) => claimed.rows.push(*row),
            Found::Parked(id) => claimed.parked.push(id),
            Found::Unreadable(row) => {
                claimed.parked.push(row.id.clone());
                unread.push(row);
            }
        }
    }
    if reply.picked < allowance.total {
        claimed.stop = Stop::Drained;
    } else if !claimed.parked.is_empty() {
        claimed.stop = Stop::More;
    }
    if !unread.is_empty() {
        set_aside(store, wanted, unread).await?;
    }
    store.publish(claimed.parked.iter().cloned().map(Wakeup::Workflow));
    late::complete(store, wanted, layout, &mut claimed.rows).await?;
    Ok(claimed)
}

/// Parks rows that cannot be read, so that those behind them are taken. A process that dies before it leaves them to the
/// take-over, and they are met again.
async fn set_aside(store: &Postgres, wanted: &Arc<Wanted>, unread: Vec<Unread>) -> Result<()> {
    let now = wanted.now;
    let (mut ids, mut fences, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for Unread { id, fence, reason } in unread {
        tracing::warn!(workflow = %id, error = reason, "a row cannot be read and is parked");
        reasons.push(serde_json::json!({ "name": "Unreadable", "message": reason }).to_string());
        ids.push(id.as_str().to_owned());
        fences.push(fence);
    }
    let asked = Arc::new((ids, fences, reasons));
    store
        .call(OP, move |session: &mut Session| {
            let asked = asked.clone();
            Box::pin(async move {
                session.one(&ASIDE, &[&now, &asked.0, &asked.1, &asked.2]).await?;
                Ok(())
            })
        })
        .await
}
