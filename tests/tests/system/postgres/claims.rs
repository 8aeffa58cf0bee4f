//! Claims whose answer is lost.

use std::cell::Cell;
use std::time::Duration;

use mainstay::Queue;
use mainstay_env::block_on;
use mainstay_pgkit::Proxy;
use mainstay_pgkit::proxy::{End, Fired, Message, Rule};
use mainstay_store::Place;

use super::support::{
    self, JOB, Marks, ORDERS, POLL, count, fresh_database, ids, is_claim, is_repeat_of_a_claim, launch, shop, within,
};

/// Rows of a test.
const ROWS: usize = 50;

/// Loses answers to claims of an engine that has come to rest, gives it 50 rows, and judges what it makes of them.
fn lose_answers(rules: Vec<Rule>, queue: Queue) {
    let Some(database) = fresh_database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let marks = Marks::default();
        let store = support::open(&proxy.url(&database), |config| config).await;
        let direct = support::open(&database.url(), |config| config).await;
        let engine = launch(shop(&store, &marks, Duration::ZERO).queue(queue)).await;
        let env = store.env().clone();
        // An engine at rest only asks whether there is work, so the next claim has rows.
        env.sleep(POLL / 2).await;
        let mut client = database.client();
        let fired: Vec<Fired> = rules.into_iter().map(|rule| proxy.script(rule)).collect();
        let rows = ids("w", ROWS);
        support::submit(&direct, &rows, || Place::queue(ORDERS)).await;
        let took = within(&env, 2 * POLL, "all run", || {
            count(&mut client, &format!("name = '{JOB}' AND status = 'SUCCESS'")) == ROWS
        })
        .await;
        assert!(fired.iter().all(Fired::has_fired), "the answer of a claim was to be lost: {fired:?}");
        assert_eq!((marks.len(), marks.doubles()), (ROWS, Vec::new()), "each ran once, after {took:?}");
        assert_eq!(count(&mut client, "recovery_attempts <> 1"), 0, "each was claimed once");
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}

#[test]
fn case_o01_rows_whose_claim_was_committed_and_its_answer_lost_run_once() {
    lose_answers(vec![Rule::message(1, is_claim).cut_after(End::Close)], Queue::new(ORDERS).polling(POLL));
}

#[test]
fn case_o01_rows_run_once_though_the_answers_of_repeats_are_lost_too() {
    let lost = |is_it: fn(&Message) -> bool| Rule::message(1, is_it).cut_after(End::Reset);
    lose_answers(vec![lost(is_claim), lost(is_repeat_of_a_claim)], Queue::new(ORDERS).polling(POLL));
}

#[test]
fn case_o01_rows_of_a_limited_queue_run_once_when_the_answer_to_the_commit_of_their_claim_is_lost() {
    // The COMMIT of a claim is the next one on the connection that the claim came by.
    let claiming = Cell::new(0);
    let is_its_commit = move |message: &Message| {
        if is_claim(message) {
            claiming.set(message.connection());
        }
        claiming.get() == message.connection() && message.is_commit()
    };
    lose_answers(
        vec![Rule::message(1, is_its_commit).cut_after(End::Close)],
        Queue::new(ORDERS).polling(POLL).concurrency(100),
    );
}
