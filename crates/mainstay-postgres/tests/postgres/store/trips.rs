//! What a claim costs on the line: the same number of round trips, however many rows it takes.

use mainstay_env::block_on;
use mainstay_pgkit::Proxy;
use mainstay_store::{Limits, Place, QueueStore, Rate, Submit, Unit, WriteStore};
use std::time::Duration;

use crate::store::claim::{APP, E1, Q, V1, WORK, claim, lease, register};
use crate::store::support;

/// Enqueues rows and has them claimed: the round trips and transactions of the claim.
async fn claims(store: &mainstay_postgres::Postgres, proxy: &Proxy, rows: usize, name: &str) -> (u64, u64) {
    let unit = |n: usize| {
        let id = format!("{name}-{n}");
        let submit =
            Submit::new(id.as_str(), WORK, format!("t-{id}"), Place::queue(Q)).app(APP).version(V1).input("[1]");
        Unit::new().effect(submit)
    };
    let units: Vec<Unit> = (0..rows).map(unit).collect();
    store.commit(&units).await.expect("enqueued");
    proxy.reset_counts();
    let claimed = store.queue_claim(claim(store, E1).budget(64)).await.expect("a claim");
    let (counts, messages) = (proxy.counts(), proxy.messages());
    assert_eq!(claimed.rows.len(), rows, "{:?}", claimed.stop);
    // After a claim that took long on a busy machine a look at the queue's front goes by the same connection.
    let looks = messages.iter().filter(|message| message.sql().contains("far AS MATERIALIZED"));
    let [ran, prepared] = [true, false].map(|runs| looks.clone().filter(|look| look.runs() == runs).count() as u64);
    let found = (counts.round_trips - ran - prepared.min(1), counts.transactions - ran - prepared.min(1));
    assert!(found.0 > 0, "{messages:?}");
    found
}

#[test]
fn a_claim_takes_one_trip_without_a_limit_over_all_processes_and_two_with_one_whatever_it_takes() {
    let rate = Some(Rate { starts: 100_000, period: Duration::from_secs(60) });
    for (what, limits, expected) in [
        ("none", Limits::default(), 1),
        ("own", Limits { worker_concurrency: Some(1_000), ..Limits::default() }, 1),
        ("fleet", Limits { concurrency: Some(1_000), ..Limits::default() }, 2),
        ("rate", Limits { rate, ..Limits::default() }, 2),
        ("both", Limits { concurrency: Some(1_000), rate, ..Limits::default() }, 2),
    ] {
        let Some(database) = support::database() else { return };
        let proxy = Proxy::before(database.server()).expect("a proxy");
        block_on(async {
            let url = proxy.url(&database);
            // Without hints, which go by a connection of their own.
            let store = support::open_at(url, |config| config.pool(1).silent()).await;
            lease(&store, E1).await;
            register(&store, limits).await;
            // The statements are prepared once for the connection.
            for n in 0..2 {
                claims(&store, &proxy, 1, &format!("first{n}")).await;
            }
            for rows in [1, 10, 64] {
                assert_eq!(
                    claims(&store, &proxy, rows, &format!("r{rows}")).await,
                    (expected, 1),
                    "{what}: {rows} rows"
                );
            }
        });
    }
}
