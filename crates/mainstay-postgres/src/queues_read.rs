//! Questions about queues: the claim, the probe and the audit.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mainstay_store::model::wire;
use mainstay_store::{
    Audit, AuditCursor, Audited, Claim, Claimed, Fence, HeldRow, Probe, Probed, QueueStore, Result, Store, StoreError,
    Timestamp, Token, WorkflowId,
};
use tokio_postgres::Row;

use crate::claim::{self, Asker, Hole};
use crate::fault::Fault;
use crate::row::{filled_if, get, stamp, stamp_if, text, text_if};
use crate::session::Session;
use crate::store::Postgres;
use crate::text::{Text, text};

static PROBE: Text = text!("probe");
static AUDIT: Text = text!("audit");

/// The statements of probe and audit.
#[cfg(test)]
pub(crate) const ALL: &[&Text] = &[&PROBE, &AUDIT];

#[async_trait]
impl QueueStore for Postgres {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        claim::run(self, request).await
    }

    async fn queue_probe(&self, request: Probe) -> Result<Probed> {
        let op = "queue_probe";
        request.check(&self.bounds()).map_err(|field| StoreError::field_error(op, field))?;
        let asker = Asker { app: request.app, version: request.version, names: request.names };
        let now = self.env().monotonic();
        let hole = |queue| self.fronts().hole(queue, &asker, now);
        let holes: Vec<Option<Hole>> = request.queues.iter().map(hole).collect();
        for (queue, _) in request.queues.iter().zip(&holes).filter(|(_, hole)| hole.is_some()) {
            claim::look_after(self, queue, &asker, Duration::ZERO);
        }
        let queues = request.queues.iter().map(|queue| queue.as_str().to_owned()).collect();
        let asked = Arc::new((self.now(), asker, queues, Holes::new(&holes)));
        self.call(op, move |session: &mut Session| {
            let asked = asked.clone();
            Box::pin(async move { probe(session, &asked).await })
        })
        .await
    }

    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        let op = "queue_audit";
        request.check(&self.bounds()).map_err(|field| StoreError::field_error(op, field))?;
        let (now, system, request) = (self.now(), self.system().to_owned(), Arc::new(request));
        self.call(op, move |session: &mut Session| {
            let (system, request) = (system.clone(), request.clone());
            Box::pin(async move {
                let (created, id) = match &request.after {
                    Some(after) => (after.created_at.0, after.id.as_str()),
                    None => (i64::MIN, ""),
                };
                let executor = request.executor.as_str();
                let limit = i32::try_from(request.limit).unwrap_or(i32::MAX);
                audited(&session.one(&AUDIT, &[&now, &system, &executor, &created, &id, &limit]).await?)
            })
        })
        .await
    }
}

/// Holes as arrays, one entry for each queue.
#[derive(Debug)]
struct Holes {
    priorities: Vec<Option<i32>>,
    tos: Vec<Option<i64>>,
    latests: Vec<Option<bool>>,
}

impl Holes {
    fn new(holes: &[Option<Hole>]) -> Self {
        Self {
            priorities: holes.iter().map(|hole| hole.map(|hole| hole.priority)).collect(),
            tos: holes.iter().map(|hole| hole.map(|hole| hole.to)).collect(),
            latests: holes.iter().map(|hole| hole.map(|hole| hole.latest)).collect(),
        }
    }
}

async fn probe(
    session: &mut Session,
    (now, asker, queues, holes): &(Option<i64>, Asker, Vec<String>, Holes),
) -> std::result::Result<Probed, Fault> {
    let [names, classes, configs] = asker.columns();
    let (version, app, internal) = (asker.version.as_str(), asker.app.as_str(), wire::INTERNAL_QUEUE);
    let Holes { priorities, tos, latests } = holes;
    let found = session
        .one(&PROBE, &[now, &version, queues, &names, &classes, &configs, &app, priorities, tos, latests, &internal])
        .await?;
    let found = found.first().ok_or_else(|| Fault::unreadable("probe", "no row"))?;
    let mut probed = Probed::new(stamp(found, "now")?);
    probed.due = get::<Vec<&str>>(found, "due")?.into_iter().map(Into::into).collect();
    probed.next_due = stamp_if(found, "next_due")?.map(|due| due.since(probed.now));
    Ok(probed)
}

fn audited(found: &[Row]) -> std::result::Result<Audited, Fault> {
    let first = found.first().ok_or_else(|| Fault::unreadable("audit", "no row"))?;
    let mut audited = Audited::new(Timestamp::from_millis(get(first, "now")?));
    if let (Some(created_at), Some(id)) = (stamp_if(first, "next_created")?, text_if(first, "next_id")?) {
        audited.next = Some(AuditCursor { created_at, id });
    }
    for row in found {
        let Some(id) = text_if::<WorkflowId>(row, "workflow_uuid")? else { continue };
        match held(&id, row) {
            Err(Fault::Unreadable(error)) => tracing::warn!(workflow = %id, error, "a pending row has no fence"),
            held => audited.rows.push(held?),
        }
    }
    Ok(audited)
}

fn held(id: &WorkflowId, row: &Row) -> std::result::Result<HeldRow, Fault> {
    let fence = Fence::issue(id.clone(), text::<Arc<str>>(row, "fence")?);
    let mut held = HeldRow::new(fence, stamp(row, "created_at")?);
    held.queue = filled_if(row, "queue_name")?;
    held.token = text_if::<Token>(row, "token")?;
    Ok(held)
}
