//! Executors, cancellations and deletions that meet in the same rows.

use std::sync::Arc;
use std::time::Duration;

use mainstay::Store;
use mainstay_env::{Monotonic, Rng, block_on};
use mainstay_pgkit::Options;
use mainstay_store::{Effect, Place, Unit, WorkflowId};

use super::support::{self, JOB, Marks, ORDERS, count, database_on, launch, own_server, shop, until};

/// Executors, each with a client that cancels and one that deletes.
const EXECUTORS: usize = 4;

/// Ids that all of them meet in.
const IDS: u64 = 400;

/// Ids of one request.
const SOME: u64 = 100;

/// How long they do.
const SPAN: Duration = Duration::from_secs(4);

/// Longest time that a request may take, retries that nobody sees included.
const SOON: Duration = Duration::from_secs(2);

#[test]
fn case_o24_batches_cancellations_and_deletions_of_the_same_rows_never_lock_each_other_out() {
    let Some(server) = own_server(Options::new().setting("deadlock_timeout", "100ms")) else { return };
    let database = database_on(&server);
    block_on(async {
        let marks = Marks::default();
        let (mut engines, mut clients) = (Vec::new(), Vec::new());
        for number in 0..EXECUTORS {
            let store = support::open(&database.url(), |config| config).await;
            let builder = shop(&store, &marks, Duration::from_millis(5)).executor(format!("e{number}"));
            engines.push(launch(builder.settings(|settings| support::quick(settings).batch(100))).await);
            for what in [cancel, delete, enqueue] {
                let rng = Rng::seeded(24).child(&format!("{number}-{}", clients.len()));
                let (store, end) = (store.clone(), store.env().deadline(SPAN));
                clients.push(store.env().tasks().spawn("client", meddle(store.clone(), rng, end, what)));
            }
        }
        let mut requests = 0;
        for client in clients {
            let (done, longest) = client.await.expect("a client");
            requests += done;
            assert!(longest < SOON, "a request took {longest:?}");
        }
        let ran = marks.len();
        assert!(requests > 60 && ran > 200, "{requests} requests, {ran} bodies");
        let env = engines[0].store().env().clone();
        let mut client = database.client();
        until(&env, "the rest ends", || count(&mut client, "status IN ('ENQUEUED', 'PENDING')") == 0).await;
        for engine in engines {
            assert_eq!(engine.stats().renewals, 0, "a lease was lost");
            engine.shutdown(Duration::from_secs(5)).await.expect("an end");
        }
        let log = server.log();
        let met: Vec<&str> = log.lines().filter(|line| line.contains("deadlock detected")).collect();
        assert_eq!(met, [""; 0], "after {requests} requests");
    });
}

type What = fn(Vec<WorkflowId>, u64) -> Vec<Unit>;

/// Sends requests over ids in random order until the end; tells how many, and the longest.
async fn meddle(store: Arc<dyn Store>, rng: Rng, end: Monotonic, what: What) -> (u32, Duration) {
    let (mut done, mut longest) = (0, Duration::ZERO);
    let env = store.env().clone();
    while env.monotonic() < end {
        let mut ids: Vec<u64> = (0..IDS).collect();
        rng.shuffle(&mut ids);
        let ids = ids.into_iter().take(SOME as usize).map(|id| format!("w{id}").into()).collect();
        let units = what(ids, rng.u64());
        let begun = env.monotonic();
        let committed = store.commit(&units).await.unwrap_or_else(|error| panic!("{error}"));
        assert!(committed.units.iter().all(Result::is_ok), "{:?}", committed.units);
        longest = longest.max(env.monotonic().since(begun));
        done += 1;
        env.sleep(rng.between(Duration::ZERO, Duration::from_millis(20))).await;
    }
    (done, longest)
}

fn cancel(ids: Vec<WorkflowId>, _: u64) -> Vec<Unit> {
    vec![Unit::new().effect(Effect::Cancel { ids, children: true })]
}

fn delete(ids: Vec<WorkflowId>, _: u64) -> Vec<Unit> {
    vec![Unit::new().effect(Effect::Delete { ids, children: true })]
}

fn enqueue(ids: Vec<WorkflowId>, nonce: u64) -> Vec<Unit> {
    let submit = |id: WorkflowId| {
        let token = format!("{nonce}-{id}");
        mainstay_store::Submit::new(id, JOB, token, Place::queue(ORDERS)).app(support::APP).version("shop@1")
    };
    ids.into_iter().map(|id| Unit::new().effect(submit(id).input(r#"{"positionalArgs":[],"namedArgs":{}}"#))).collect()
}
