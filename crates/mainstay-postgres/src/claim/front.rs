//! Looks for the stretch of rows in front of a queue that nobody takes, off the path of claims.

use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{QueueName, Result, Store};

use crate::claim::OP;
use crate::claim::fronts::{Asker, Hole, Look};
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
        let look = look(&looking, &asked).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "the front of a queue could not be looked at");
            Look { asked: begun, answered: looking.env().monotonic(), found: None }
        });
        looking.fronts().end_look(&asked.0, look);
    });
}

/// Asks the server. What it costs is measured on the connection: the wait for one is no cost of the look.
async fn look(store: &Postgres, asked: &Arc<(QueueName, Asker)>) -> Result<Look> {
    let (shared, env) = (asked.clone(), store.env().clone());
    store
        .call(OP, move |session: &mut Session| {
            let (shared, env) = (shared.clone(), env.clone());
            Box::pin(async move {
                let (queue, asker) = &*shared;
                let (queue, version, app) = (queue.as_str(), asker.version.as_str(), asker.app.as_str());
                let [names, classes, configs] = asker.columns();
                let asked = env.monotonic();
                let rows = session.one(&FRONT, &[&queue, &version, &names, &classes, &configs, &LEAST, &app]).await?;
                let mut look = Look { asked, answered: env.monotonic(), found: None };
                if let Some(row) = rows.first() {
                    let (priority, to) = (get(row, "hole_priority")?, get(row, "hole_to")?);
                    look.found = Some((asker.clone(), Hole { priority, to, latest: get(row, "hole_latest")? }));
                }
                Ok(look)
            })
        })
        .await
}

#[cfg(test)]
mod tests {
    use mainstay_env::{Env, block_on};
    use mainstay_store::{
        Beat, Claim, ClaimedRow, Effect, ExecutorStore, Maintenance, Place, QueueStore, Registered, StoreClock, Submit,
        TakeOver, Tick, Unit, UnitReply, WriteStore,
    };
    use tokio::sync::oneshot;

    use super::*;
    use crate::Config;

    /// Rows of a version that nobody runs any more, in front of the queue `q`.
    const RETIRED: &str =
        "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, application_version,
            queue_name, created_at, updated_at)
        SELECT 'old-' || n, 'ENQUEUED', 'work', 'shop', 'v0', 'q', n, n FROM generate_series(1, 1100) n;
        INSERT INTO dbos.queues (name) VALUES ('q')";

    fn asker() -> Asker {
        Asker { app: "shop".into(), version: "v1".into(), names: vec![Registered::new("work")] }
    }

    #[test]
    fn a_look_is_not_charged_with_its_wait_for_a_connection() {
        let Some(database) = crate::plans::database() else { return };
        database.client().run(RETIRED);
        block_on(async {
            let env = Env::system("front").expect("a thread");
            let config = Config::new(database.url()).silent().pool(1);
            let store = Postgres::open(&env, config, StoreClock::Server).await.expect("a store");
            let (taken, is_taken) = oneshot::channel();
            let (mut taken, pause, beside) = (Some(taken), env.clone(), store.clone());
            store.beside("holder", async move {
                let held = beside.call("holder", move |_| {
                    let (taken, env) = (taken.take(), pause.clone());
                    Box::pin(async move {
                        taken.map(|taken| taken.send(()));
                        env.sleep(Duration::from_secs(2)).await;
                        Ok(())
                    })
                });
                held.await.expect("held");
            });
            is_taken.await.expect("the one connection is taken");
            let begun = env.monotonic();
            let look = look(&store, &Arc::new(("q".into(), asker()))).await.expect("a look");
            assert!(env.monotonic().since(begun) > Duration::from_secs(1), "it has waited");
            assert!(look.answered.since(look.asked) < Duration::from_secs(1), "{look:?}");
            assert_eq!(look.found.expect("a hole").1, Hole { priority: 0, to: 1_101, latest: true });
        });
    }

    /// A row of ours with this number, as others see it in the table.
    fn row(id: &str, status: &str, at: i64) -> String {
        format!(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, application_version, queue_name,
                executor_id, created_at, updated_at, delay_until_epoch_ms)
            VALUES ('{id}', '{status}', 'work', 'shop', 'v1', 'q', 'dead~1', {at}, {at}, 1)"
        )
    }

    async fn claimed(store: &Postgres) -> Vec<ClaimedRow> {
        let claim = Claim::new("q", "one~1", "shop", "v1", store.env().ids().uuid()).names(asker().names);
        store.queue_claim(claim).await.expect("a claim").rows
    }

    /// Looks until the hole is known, each time when a look is due.
    async fn looked(store: &Postgres) {
        let end = store.env().deadline(Duration::from_secs(60));
        while !is_known(store) {
            assert!(store.env().monotonic() < end, "no hole");
            look_after(store, &"q".into(), &asker(), Duration::from_secs(1));
            store.env().sleep(Duration::from_millis(10)).await;
        }
    }

    fn is_known(store: &Postgres) -> bool {
        store.fronts().hole(&"q".into(), &asker(), store.env().monotonic()).is_some()
    }

    async fn effect(store: &Postgres, unit: Unit) {
        let committed = store.commit(&[unit]).await.expect("committed");
        assert!(matches!(committed.units[..], [Ok(UnitReply::Done { .. })]), "{committed:?}");
    }

    #[test]
    fn a_row_that_this_process_returns_into_a_hole_is_claimed_at_once_and_a_new_one_leaves_the_hole() {
        let Some(database) = crate::plans::database() else { return };
        let mut client = database.client();
        client.run(RETIRED);
        block_on(async {
            let env = Env::system("front").expect("a thread");
            let store =
                Postgres::open(&env, Config::new(database.url()).silent(), StoreClock::Server).await.expect("a store");
            for executor in ["one~1", "dead~1"] {
                store.lease_beat(Beat::new(executor, "shop", 1_u64)).await.expect("a lease");
            }
            client.run(&row("given-back", "ENQUEUED", 500));
            let fence = claimed(&store).await.remove(0).fence;
            looked(&store).await;
            effect(&store, Unit::by(&fence).effect(Effect::GiveBack { delay: None, begun: true })).await;
            assert_eq!(claimed(&store).await.remove(0).row.id.as_str(), "given-back");

            client.run(&row("resumed", "CANCELLED", 500));
            looked(&store).await;
            let (ids, queue) = (vec!["resumed".into()], Some("q".into()));
            effect(&store, Unit::new().effect(Effect::Resume { ids, queue, force: false })).await;
            assert_eq!(claimed(&store).await.remove(0).row.id.as_str(), "resumed");

            client.run(&row("released", "DELAYED", 500));
            looked(&store).await;
            store.tick(Tick::new("shop")).await.expect("a tick");
            assert_eq!(claimed(&store).await.remove(0).row.id.as_str(), "released");

            client.run(&row("taken-over", "PENDING", 500));
            client.run(
                "UPDATE dbos.workflow_status SET owner_xid = 't', started_at_epoch_ms = 1 WHERE status = 'PENDING'",
            );
            looked(&store).await;
            store.lease_take_over(TakeOver::new("dead~1", 1_u64)).await.expect("taken over");
            assert_eq!(claimed(&store).await.remove(0).row.id.as_str(), "taken-over");

            looked(&store).await;
            let new = Submit::new("new", "work", "t", Place::queue("q")).app("shop");
            effect(&store, Unit::new().effect(new)).await;
            assert!(is_known(&store), "it is behind the hole");
            assert_eq!(claimed(&store).await.remove(0).row.id.as_str(), "new");
        });
    }
}
