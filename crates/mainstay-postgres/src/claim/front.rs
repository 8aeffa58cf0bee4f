//! Looks for the stretch of rows in front of a queue that nobody takes, off the path of claims.

use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{QueueName, Result, Store};

use crate::claim::OP;
use crate::claim::fronts::{Asker, Hole};
use crate::row::get;
use crate::session::Session;
use crate::store::Postgres;
use crate::text::{Text, text};

pub(crate) static FRONT: Text = text!("claim_front");

/// A shorter stretch is not worth remembering: reading so many rows costs a claim less than a millisecond.
const LEAST: i32 = 1_000;

/// Looks, where a claim has taken long or a hole is known, and not too often. Probes ask for it too: they pass over a hole as
/// claims do, and where they find nothing nobody claims.
pub(crate) fn look_after(store: &Postgres, queue: &QueueName, asker: &Asker, took: Duration) {
    if !store.fronts().begin_look(queue, store.env().monotonic(), took) {
        return;
    }
    let (looking, asked) = (store.clone(), Arc::new((queue.clone(), asker.clone())));
    store.beside("claim_front", async move {
        let begun = looking.env().monotonic();
        let found = look(&looking, &asked).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "the front of a queue could not be looked at");
            None
        });
        let now = looking.env().monotonic();
        looking.fronts().end_look(&asked.0, now, now.since(begun), found);
    });
}

async fn look(store: &Postgres, asked: &Arc<(QueueName, Asker)>) -> Result<Option<(Asker, Hole)>> {
    let shared = asked.clone();
    let hole = store
        .call(OP, move |session: &mut Session| {
            let asked = shared.clone();
            Box::pin(async move {
                let (queue, asker) = &*asked;
                let (queue, version, app) = (queue.as_str(), asker.version.as_str(), asker.app.as_str());
                let [names, classes, configs] = asker.columns();
                let rows = session.one(&FRONT, &[&queue, &version, &names, &classes, &configs, &LEAST, &app]).await?;
                let Some(row) = rows.first() else { return Ok(None) };
                let (priority, to) = (get(row, "hole_priority")?, get(row, "hole_to")?);
                Ok(Some(Hole { priority, to, latest: get(row, "hole_latest")? }))
            })
        })
        .await?;
    Ok(hole.map(|hole| (asked.1.clone(), hole)))
}
