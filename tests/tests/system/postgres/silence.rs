//! Connections that fall silent: nobody says that they have ended.

use std::cell::Cell;
use std::time::Duration;

use mainstay::Queue;
use mainstay_env::block_on;
use mainstay_pgkit::Proxy;
use mainstay_pgkit::proxy::{End, Kind, Message, Rule};
use mainstay_store::Place;

use super::support::{
    self, Marks, ORDERS, count, fresh_database, ids, is_checkpoint, launch, shop, submit, until, within,
};

/// Longest time that the store waits for an answer, in these tests.
const LIMIT: Duration = Duration::from_secs(1);

/// What comes after a lost answer: a repeat, a poll, the work itself.
const SLACK: Duration = Duration::from_secs(3);

/// Longer than any test: what is held back this long never comes.
const NEVER: Duration = Duration::from_secs(300);

#[test]
fn case_o07_a_connection_that_is_silent_inside_a_claim_holds_up_nobody_else_and_its_own_queue_not_for_long() {
    let Some(database) = fresh_database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let marks = Marks::default();
        let store = support::open(&proxy.url(&database), |config| config.call_timeout(LIMIT)).await;
        let direct = support::open(&database.url(), |config| config).await;
        let env = store.env().clone();
        // A fleet's limit makes the claim a transaction of two trips, the queue being locked by the first.
        let fleet = Queue::new("fleet").concurrency(40);
        let engine = launch(shop(&store, &marks, Duration::ZERO).queue(fleet)).await;
        let mut client = database.client();
        env.sleep(Duration::from_millis(500)).await;
        // The server keeps the transaction and its locks: nothing tells it that the client has given up.
        let is_second_trip = |message: &Message| message.kind() == Kind::Bind && message.sql().contains("picked");
        let fired = proxy.script(Rule::message(1, is_second_trip).delay(NEVER));
        submit(&direct, &ids("f", 20), || Place::queue("fleet")).await;
        let held = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                    AND state = 'idle in transaction' AND state_change < now() - interval '100 ms'";
        until(&env, "the claim is held back", || client.value(held) == "1").await;
        let begun = env.monotonic();
        let mut round = 0;
        let mut done = false;
        while !done {
            // All the while the other queue is served as ever.
            let rows = ids(&format!("o{round}-"), 5);
            submit(&direct, &rows, || Place::queue(ORDERS)).await;
            let ended = format!("workflow_uuid LIKE 'o{round}-%' AND status = 'SUCCESS'");
            within(&env, LIMIT, "the other queue", || count(&mut client, &ended) == rows.len()).await;
            round += 1;
            done = count(&mut client, "queue_name = 'fleet' AND status = 'SUCCESS'") == 20;
            let took = env.monotonic().since(begun);
            assert!(took < 2 * LIMIT + SLACK, "its queue stands still after {took:?}");
            env.sleep(Duration::from_millis(50)).await;
        }
        assert!(!fired.has_fired(), "the claim never went on");
        assert!(round > 1, "nothing was held up at all");
        assert_eq!(marks.doubles(), Vec::new());
        assert_eq!((engine.stats().renewals, engine.stats().worker_restarts), (0, 0));
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}

/// Lets the connection of a checkpoint fall silent, and judges how the workflow goes on.
fn lose_checkpoint(rule: Rule) {
    let Some(database) = fresh_database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let marks = Marks::default();
        // Were the silent one not given back, nothing could be done with the other for long.
        let set = |config: mainstay::postgres::Config| config.call_timeout(LIMIT).pool(2);
        let store = support::open(&proxy.url(&database), set).await;
        let direct = support::open(&database.url(), |config| config).await;
        let env = store.env().clone();
        let engine = launch(shop(&store, &marks, Duration::ZERO)).await;
        let mut fired = proxy.script(rule);
        submit(&direct, &ids("w", 1), || Place::queue(ORDERS)).await;
        assert!(fired.wait().await, "a checkpoint was sent");
        let mut client = database.client();
        let ended = |client: &mut mainstay_pgkit::Client| count(client, "status = 'SUCCESS'");
        let took = within(&env, LIMIT + SLACK, "it ends", || ended(&mut client) == 1).await;
        assert!(took > LIMIT / 2, "the answer was to be missing, and it took {took:?}");
        submit(&direct, &ids("more", 30), || Place::queue(ORDERS)).await;
        within(&env, SLACK, "the others end", || ended(&mut client) == 31).await;
        assert_eq!((marks.len(), marks.doubles()), (31, Vec::new()), "no step ran again");
        assert_eq!(count(&mut client, "recovery_attempts <> 1"), 0);
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}

#[test]
fn case_o13_a_checkpoint_whose_connection_falls_silent_before_it_is_written_again() {
    lose_checkpoint(Rule::message(1, is_checkpoint).cut_before(End::Silent));
}

#[test]
fn case_o13_a_checkpoint_whose_answer_never_comes_is_found_written() {
    let writing = Cell::new(0);
    let is_its_commit = move |message: &Message| {
        if is_checkpoint(message) {
            writing.set(message.connection());
        }
        writing.get() == message.connection() && message.is_commit()
    };
    lose_checkpoint(Rule::message(1, is_its_commit).cut_after(End::Silent));
}
