//! The record of starts: as long as a window may ask for it, and no longer.

use std::time::Duration;

use mainstay_env::{Clock, SimClock, block_on};
use mainstay_sqlite::Sqlite;
use mainstay_store::{
    Limits, Place, QueueStore, Rate, RegisterQueue, Registry, StoreClock, Submit, Timestamp, Unit, WriteStore,
};

use crate::support::{Folder, claim, env, lease, soon};

/// Rows that are started in a round.
const ROWS: usize = 20;

#[test]
fn starts_that_no_window_reaches_are_removed_by_later_claims() {
    let folder = Folder::new();
    let clock = SimClock::new(Timestamp::from_millis(1_700_000_000_000));
    let store = block_on(Sqlite::open(&env(), folder.config(), StoreClock::Manual(clock.clone()))).expect("opened");
    lease(&store, "e~1");
    let rate = Rate { starts: 1_000, period: Duration::from_secs(1) };
    let limits = Limits { rate: Some(rate), ..Limits::default() };
    soon(store.queue_register(RegisterQueue::new("mail", "app").limits(limits))).expect("a queue");
    for round in 0..30 {
        let place = || Place::queue("mail");
        let units: Vec<Unit> =
            (0..ROWS).map(|n| Unit::new().effect(Submit::new(format!("w{round}-{n}"), "job", "t", place()))).collect();
        soon(store.commit(&units)).expect("a commit");
        let mut asked = claim("e~1", &format!("c{round}"));
        asked.queue = "mail".into();
        assert_eq!(soon(store.queue_claim(asked)).expect("a claim").rows.len(), ROWS);
        clock.advance(Duration::from_secs(600));
    }
    let stranger = folder.stranger();
    let count = |sql: &str| stranger.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number");
    // Those of the last hour are kept, in case the window is made longer.
    assert_eq!(count("SELECT count(*) FROM mainstay_starts"), 6 * 20);
    assert!(count("SELECT min(started_at) FROM mainstay_starts") >= clock.now().as_millis() - 4_200_000);
}
