//! A process that is killed: its lock proves it, and its rows run elsewhere.

use std::collections::BTreeSet;
use std::time::Duration;

use mainstay_env::{Env, block_on};
use mainstay_store::{Outcome, Standing, Store, WorkflowId};
use mainstay_tests::load;
use mainstay_tests::worker::Orders;

use crate::process::{Shop, Worker};

/// Rows of the test.
const ROWS: u32 = 400;

/// Within this all rows must have ended after the kill. A lease that had to be seen standing still would take 10 s alone.
const SOON: Duration = Duration::from_secs(8);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

#[test]
fn rows_of_a_killed_process_run_elsewhere_long_before_its_lease_would_have_expired() {
    let env = Env::system("test").expect("a thread");
    block_on(killed(&env));
}

async fn killed(env: &Env) {
    let (shop, store) = Shop::open(env).await;
    load::enqueue(&*store, 0..ROWS).await.expect("rows");
    let body = Duration::from_millis(600);
    let first = Worker::start(&Orders { body, ..shop.orders("w1") });
    let dead = first.number();
    // It has bodies that run and rows that wait.
    while shop.account().open < 40 {
        env.sleep(LOOK).await;
    }
    let second = Worker::start(&Orders { body, ..shop.orders("w2") });
    while shop.account().by_process.len() < 2 {
        env.sleep(LOOK).await;
    }
    let ids: Vec<WorkflowId> = (0..ROWS).map(|number| load::id(number).into()).collect();
    let ended = ended(&*store, &ids).await;
    drop(first);
    assert!(!shop.account().open_of(dead).is_empty(), "it was killed with bodies open");
    let begun = env.monotonic();
    while self::ended(&*store, &ids).await.len() < ids.len() {
        let took = env.monotonic().since(begun);
        assert!(took < SOON, "rows wait after {took:?}: {:?}", store.lease_list(&load::APP.into()).await);
        env.sleep(LOOK).await;
    }
    let told = second.end();
    let account = shop.account();
    let doubles = account.doubles();
    assert!(doubles.iter().all(|id| account.starts[*id] == 2 && !ended.contains(*id)), "{doubles:?} beside {ended:?}");
    assert!(!doubles.is_empty() && !told.contains("taken_over=0"), "{told}");
    assert_eq!(store.lease_list(&load::APP.into()).await.expect("a list").leases, [], "no lease is left");
}

/// Those of the rows that have ended well.
async fn ended(store: &dyn Store, ids: &[WorkflowId]) -> BTreeSet<String> {
    let standing = store.workflow_standing(ids).await.expect("a read");
    let well = |standing: &Standing| matches!(standing, Standing::Ended(Outcome::Success(_)));
    ids.iter().zip(standing).filter(|(_, standing)| well(standing)).map(|(id, _)| id.to_string()).collect()
}
