//! Leases of executors.

use async_trait::async_trait;
use mainstay_store::{
    AppName, Beat, Beaten, ExecutorId, ExecutorStore, Lease, Leases, QueueName, Result, StoreError, TakeOver,
    TakenOver, Wakeup, WorkflowId,
};
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::row;
use crate::session::{Ask, Session};
use crate::store::Postgres;
use crate::text::{Text, text};

static OPEN: Text = text!("lease_open");
static BEAT: Text = text!("lease_beat");
static LIST: Text = text!("lease_list");
static OVER: Text = text!("lease_over");
static ROWS: Text = text!("lease_rows");

/// The statements of this module.
#[cfg(test)]
pub(crate) const ALL: &[&Text] = &[&OPEN, &BEAT, &LIST, &OVER, &ROWS];

#[async_trait]
impl ExecutorStore for Postgres {
    async fn lease_beat(&self, request: Beat) -> Result<Beaten> {
        let op = "lease_beat";
        request.check(&self.bounds()).map_err(|field| StoreError::field_error(op, field))?;
        let beat = Moved::of(&request, self.system());
        self.call(op, move |session| {
            let beat = beat.clone();
            Box::pin(async move {
                let ask = beat.ask();
                Ok(beaten(session.one(ask.text, &ask.params).await?.len()))
            })
        })
        .await
    }

    async fn lease_list(&self, app: &AppName) -> Result<Leases> {
        let (now, system, app) = (self.now(), self.system().to_owned(), app.clone());
        self.call("lease_list", move |session| {
            let (system, app) = (system.clone(), app.clone());
            Box::pin(async move {
                // No stored name holds a NUL character, and no parameter may.
                let asked = if app.as_str().contains('\0') { "" } else { app.as_str() };
                let rows = session.one(&LIST, &[&now, &system, &asked]).await?;
                let mut leases = Leases::new(row::stamp(first(&rows)?, "now")?);
                for found in &rows {
                    if let Some(executor) = row::text_if::<ExecutorId>(found, "executor")? {
                        let beat = counted(row::get(found, "beat")?);
                        let lease = Lease::new(executor, row::text::<AppName>(found, "app")?, beat);
                        leases.leases.push(lease.ended(row::get(found, "ended")?));
                    }
                }
                Ok(leases)
            })
        })
        .await
    }

    async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver> {
        let op = "lease_take_over";
        request.check(&self.bounds()).map_err(|field| StoreError::field_error(op, field))?;
        let (now, system) = (self.now(), self.system().to_owned());
        let (reply, hints) = self
            .call(op, move |session| {
                let (system, request) = (system.clone(), request.clone());
                Box::pin(async move { take_over(session, now, &system, &request).await })
            })
            .await?;
        self.fronts().returned(hints.iter().filter_map(|hint| match hint {
            Wakeup::Queue(queue) => Some(queue),
            _ => None,
        }));
        self.publish(hints);
        Ok(reply)
    }
}

/// A beat as its column holds it.
fn stored(beat: u64) -> i64 {
    i64::try_from(beat).unwrap_or(i64::MAX)
}

/// A stored beat. None is below 0.
pub(crate) fn counted(beat: i64) -> u64 {
    u64::try_from(beat).unwrap_or(0)
}

/// A beat as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    system: String,
    executor: String,
    app: String,
    beat: i64,
}

impl Moved {
    pub(crate) fn of(request: &Beat, system: &str) -> Self {
        Self {
            system: system.to_owned(),
            executor: request.executor.as_str().to_owned(),
            app: request.app.as_str().to_owned(),
            beat: stored(request.beat),
        }
    }

    /// Beat 1 opens the lease, a later one moves it.
    pub(crate) fn ask(&self) -> Ask<'_> {
        if self.beat == 1 {
            Ask::new(&OPEN, &[&self.system, &self.executor, &self.app])
        } else {
            Ask::new(&BEAT, &[&self.system, &self.executor, &self.beat])
        }
    }
}

/// The answer to a beat, by the number of rows that its statement answered.
pub(crate) const fn beaten(rows: usize) -> Beaten {
    if rows == 0 { Beaten::Gone } else { Beaten::Alive }
}

async fn take_over(
    session: &mut Session,
    now: Option<i64>,
    system: &str,
    request: &TakeOver,
) -> std::result::Result<(TakenOver, Vec<Wakeup>), Fault> {
    let (executor, fallback, beat) = (request.executor.as_str(), request.fallback.as_str(), stored(request.beat));
    let limit = i32::try_from(request.limit).unwrap_or(i32::MAX);
    let asks = [
        Ask::new(&OVER, &[&system, &executor, &beat]),
        Ask::new(&ROWS, &[&now, &system, &executor, &fallback, &limit]),
    ];
    let answers = session.transaction(&asks).await?;
    let [_, rows] = answers.as_slice() else { unreachable!("two statements have two answers") };
    let (mut ids, mut hints) = (Vec::new(), Vec::new());
    if row::get(first(rows)?, "alive")? {
        return Ok((TakenOver::Alive, hints));
    }
    for found in rows {
        if let Some(id) = row::text_if::<WorkflowId>(found, "workflow_uuid")? {
            hints.push(Wakeup::Workflow(id.clone()));
            hints.push(Wakeup::Queue(row::text::<QueueName>(found, "queue_name")?));
            ids.push(id);
        }
    }
    let more = row::get(first(rows)?, "more")?;
    Ok((TakenOver::Rows { ids, more }, hints))
}

fn first(rows: &[Row]) -> std::result::Result<&Row, Fault> {
    rows.first().ok_or_else(|| Fault::unreadable("now", "the statement answered no row"))
}
