//! What is done for claimed rows on a database that is behind, or that a peer brings up to date under us.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{ClaimedRow, Fence, Input, Result, Store, WorkflowId};
use tokio_postgres::Row;

use crate::claim::OP;
use crate::claim::wanted::Wanted;
use crate::fault::Fault;
use crate::layout::Layout;
use crate::row::{millis, payload_if, text, whole_if};
use crate::session::Session;
use crate::store::Postgres;
use crate::text::{Text, text};

pub(crate) static INPUTS: Text = text!("claim_inputs");
pub(crate) static REFENCE: Text = text!("claim_refence");
pub(crate) static TRIM: Text = text!("claim_trim");

/// How long a claim's note is kept for its repeat and for audits while the claim is under way: four times as long as a call
/// takes at most by default. A row whose note is gone is to an audit one that nobody waits for.
const KEPT: Duration = Duration::from_secs(120);

/// How often old notes are removed.
const TRIMMED: Duration = Duration::from_secs(30);

/// Looks for the inputs of rows that have none: where the tables that they are in came while the claim was under way, no
/// row runs without its input. `before` is what the claim's own statement was rendered for.
pub(crate) async fn complete(
    store: &Postgres,
    wanted: &Arc<Wanted>,
    before: Layout,
    rows: &mut [ClaimedRow],
) -> Result<()> {
    if !before.owner && store.fronts().begin_trim(store.env().monotonic(), TRIMMED) {
        trim(store, wanted).await?;
    }
    if before.split || rows.iter().all(|row| row.input != Input::Missing) {
        return Ok(());
    }
    if !store.is_split(OP).await? {
        return Ok(());
    }
    if !before.owner && store.texts().layout.owner {
        refence(store, wanted, rows).await?;
    }
    read_inputs(store, wanted, rows).await
}

/// The fence of a row is its token from now on, and it was given another one.
async fn refence(store: &Postgres, wanted: &Arc<Wanted>, rows: &mut [ClaimedRow]) -> Result<()> {
    let ids: Vec<String> = rows.iter().map(|row| row.row.id.as_str().to_owned()).collect();
    let fences: Vec<String> = rows.iter().map(|row| row.fence.raw().to_owned()).collect();
    let asked = Arc::new((ids, fences, wanted.request.token.as_str().to_owned()));
    let mut fenced: BTreeMap<WorkflowId, Arc<str>> = store
        .call(OP, move |session: &mut Session| {
            let asked = asked.clone();
            Box::pin(async move {
                let rows = session.one(&REFENCE, &[&asked.0, &asked.1, &asked.2]).await?;
                rows.iter().map(|row| Ok((text(row, "workflow_uuid")?, text(row, "fence")?))).collect()
            })
        })
        .await?;
    for row in rows {
        if let Some(fence) = fenced.remove(&row.row.id) {
            row.fence = Fence::issue(row.row.id.clone(), fence);
        }
    }
    Ok(())
}

async fn read_inputs(store: &Postgres, wanted: &Arc<Wanted>, rows: &mut [ClaimedRow]) -> Result<()> {
    let missing = rows.iter().filter(|row| row.input == Input::Missing);
    let ids: Arc<Vec<String>> = Arc::new(missing.map(|row| row.row.id.as_str().to_owned()).collect());
    let most = wanted.row_bytes();
    let mut inputs: BTreeMap<WorkflowId, Input> = store
        .call(OP, move |session: &mut Session| {
            let ids = ids.clone();
            Box::pin(async move {
                let rows = session.one(&INPUTS, &[&*ids, &most]).await?;
                rows.iter().map(input).collect()
            })
        })
        .await?;
    for row in rows {
        if let Some(input) = inputs.remove(&row.row.id) {
            row.input = input;
        }
    }
    Ok(())
}

fn input(row: &Row) -> std::result::Result<(WorkflowId, Input), Fault> {
    let input = match (payload_if(row, "input")?, whole_if(row, "bytes")?) {
        (Some(input), _) => Input::Inline(input),
        (None, Some(bytes)) => Input::Deferred { bytes },
        (None, None) => Input::Missing,
    };
    Ok((text(row, "workflow_uuid")?, input))
}

async fn trim(store: &Postgres, wanted: &Arc<Wanted>) -> Result<()> {
    let wanted = wanted.clone();
    store
        .call(OP, move |session: &mut Session| {
            let wanted = wanted.clone();
            Box::pin(async move {
                session.one(&TRIM, &[&wanted.now, &wanted.system, &millis(KEPT)]).await?;
                Ok(())
            })
        })
        .await
}
