//! Looks for the stretch of rows in front of a queue that nobody takes, off the path of claims.

use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{Claim, Result, Store};

use crate::claim::OP;
use crate::claim::fronts::{Asker, Hole};
use crate::claim::wanted::Wanted;
use crate::row::get;
use crate::session::Session;
use crate::store::Postgres;
use crate::text::{Text, text};

pub(crate) static FRONT: Text = text!("claim_front");

/// A shorter stretch is not worth remembering: reading so many rows costs a claim less than a millisecond.
const LEAST: i32 = 1_000;

/// Looks, where a claim has taken long or a hole is known, and not too often.
pub(crate) fn look_after(store: &Postgres, wanted: &Arc<Wanted>, took: Duration) {
    let queue = wanted.request.queue.clone();
    if !store.fronts().begin_look(&queue, store.env().monotonic(), took) {
        return;
    }
    let (looking, wanted) = (store.clone(), wanted.clone());
    store.beside("claim_front", async move {
        let begun = looking.env().monotonic();
        let found = look(&looking, &wanted).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "the front of a queue could not be looked at");
            None
        });
        let now = looking.env().monotonic();
        looking.fronts().end_look(&queue, now, now.since(begun), found);
    });
}

async fn look(store: &Postgres, wanted: &Arc<Wanted>) -> Result<Option<(Asker, Hole)>> {
    let asked = wanted.clone();
    let hole = store
        .call(OP, move |session: &mut Session| {
            let wanted = asked.clone();
            Box::pin(async move {
                let Claim { queue, version, app, .. } = &wanted.request;
                let (queue, version, app) = (queue.as_str(), version.as_str(), app.as_str());
                let [names, classes, configs] = wanted.asker.columns();
                let rows = session.one(&FRONT, &[&queue, &version, &names, &classes, &configs, &LEAST, &app]).await?;
                let Some(row) = rows.first() else { return Ok(None) };
                let (priority, to) = (get(row, "hole_priority")?, get(row, "hole_to")?);
                Ok(Some(Hole { priority, to, latest: get(row, "hole_latest")? }))
            })
        })
        .await?;
    Ok(hole.map(|hole| (wanted.asker.clone(), hole)))
}
