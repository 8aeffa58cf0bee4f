//! The statements that take, and how many rows they may.

use std::sync::Arc;
use std::time::Duration;

use mainstay_env::Env;
use mainstay_store::{Admission, Allowance, Counts, Limits, Needs, Result, Starts, Store, Timestamp};
use tokio_postgres::Row;

use crate::claim::fronts::Planned;
use crate::claim::reply::{Reply, State};
use crate::claim::wanted::Wanted;
use crate::claim::{OP, front};
use crate::fault::Fault;
use crate::row::{get, whole_if};
use crate::session::{Ask, Session};
use crate::store::Postgres;
use crate::text::{Text, text};

pub(crate) static PLAIN: Text = text!("claim_plain");
pub(crate) static LOCK: Text = text!("claim_lock");
pub(crate) static COUNTS: Text = text!("claim_counts");
pub(crate) static TAKE: Text = text!("claim_take");
pub(crate) static REPEAT: Text = text!("claim_repeat");

/// Takes what the plan's limits leave. The plan is judged inside, so that the limits are those of the queue's row.
pub(crate) async fn run(store: &Postgres, wanted: &Arc<Wanted>, planned: &Arc<Planned>) -> Result<(Reply, Allowance)> {
    let (asked, plan, env) = (wanted.clone(), planned.clone(), store.env().clone());
    let (reply, allowance, took) = store
        .call(OP, move |session: &mut Session| {
            let (wanted, planned, env) = (asked.clone(), plan.clone(), env.clone());
            Box::pin(async move {
                let admission = admission(&wanted, &planned.limits);
                let needs = admission.needs();
                if needs.room == 0 || !planned.limits.counted() {
                    let (reply, took) = plain(session, &wanted, &planned, needs.room, &env).await?;
                    return Ok((reply, admission.decide(&Counts::default()), took));
                }
                fleet(session, &wanted, &planned, &admission, &env).await
            })
        })
        .await?;
    front::look_after(store, &wanted.request.queue, &wanted.asker, took);
    Ok((reply, allowance))
}

fn admission<'a>(wanted: &'a Wanted, limits: &'a Limits) -> Admission<'a> {
    Admission { limits, local: &wanted.request.local, budget: wanted.request.budget }
}

async fn plain(
    session: &mut Session,
    wanted: &Wanted,
    planned: &Planned,
    room: u32,
    env: &Env,
) -> std::result::Result<(Reply, Duration), Fault> {
    let taking = wanted.taking(planned, room);
    let begun = env.monotonic();
    let rows = session.one(&PLAIN, &taking.params()).await?;
    Ok((Reply::read(&rows, session.texts().layout)?, env.monotonic().since(begun)))
}

/// Under the lock of the queue: what is counted in between cannot change before the commit.
async fn fleet(
    session: &mut Session,
    wanted: &Wanted,
    planned: &Planned,
    admission: &Admission<'_>,
    env: &Env,
) -> std::result::Result<(Reply, Allowance, Duration), Fault> {
    let (state, now, counts) = count(session, wanted, planned, &admission.needs()).await?;
    let allowance = admission.decide(&counts);
    if state != State::Open || allowance.total == 0 {
        session.cancel().await?;
        return Ok((Reply::bare(now, state, session.texts().layout), allowance, Duration::ZERO));
    }
    let taking = wanted.taking(planned, allowance.total);
    let begun = env.monotonic();
    let taken = session.finish(&[Ask::new(&TAKE, &taking.params())]).await?;
    let reply = Reply::read(taken.first().map_or(&[], Vec::as_slice), session.texts().layout)?;
    Ok((reply, allowance, env.monotonic().since(begun)))
}

/// Begins the transaction, with the lock and what `Admission` asks for.
async fn count(
    session: &mut Session,
    wanted: &Wanted,
    planned: &Planned,
    needs: &Needs,
) -> std::result::Result<(State, Timestamp, Counts), Fault> {
    let request = &wanted.request;
    let (queue, executor, app) = (request.queue.as_str(), request.executor.as_str(), request.app.as_str());
    let running = needs.running.map(bound);
    let starts = needs.starts.map(|rate| bound(rate.starts));
    let period = needs.starts.map_or(0, |rate| -(Timestamp::from_millis(0) - rate.period).0);
    let answers = session
        .begin(&[
            Ask::new(&LOCK, &[&wanted.system, &queue, &executor]),
            Ask::new(
                &COUNTS,
                &[&wanted.now, &wanted.system, &queue, &app, &planned.revision, &running, &starts, &period],
            ),
        ])
        .await?;
    let read = answers.last().and_then(|rows| rows.first()).ok_or_else(|| Fault::unreadable("counts", "no row"));
    let read = read.and_then(|row| counted(row, needs));
    if read.is_err() {
        session.cancel().await?;
    }
    read
}

fn counted(row: &Row, needs: &Needs) -> std::result::Result<(State, Timestamp, Counts), Fault> {
    let now = Timestamp::from_millis(get(row, "now")?);
    let mut counts = Counts { running: whole_if(row, "running")?.unwrap_or(0), ..Counts::default() };
    if let Some(rate) = needs.starts {
        let oldest: Option<i64> = get(row, "oldest")?;
        counts.starts = Starts {
            count: whole_if(row, "starts")?.unwrap_or(0),
            opens_in: oldest.map(|at| (Timestamp::from_millis(at) + rate.period).since(now)),
        };
    }
    Ok((State::of(row)?, now, counts))
}

fn bound(limit: u32) -> i32 {
    i32::try_from(limit).unwrap_or(i32::MAX)
}

/// What the token holds.
pub(crate) async fn repeat(store: &Postgres, wanted: &Arc<Wanted>) -> Result<Reply> {
    let wanted = wanted.clone();
    store
        .call(OP, move |session: &mut Session| {
            let wanted = wanted.clone();
            Box::pin(async move {
                let planned = Planned::default();
                let taking = wanted.taking(&planned, 0);
                let rows = session.one(&REPEAT, &taking.repeating()).await?;
                Reply::read(&rows, session.texts().layout)
            })
        })
        .await
}
