//! Rows that another program has damaged: they harm no other row, and no other caller.

use std::time::Duration;

use mainstay_sqlite::Sqlite;
use mainstay_store::{
    Audit, Claim, Claimed, Collect, Effect, ErrorKind, ExecutorStore, Maintenance, Outcome, Place, QueueStore,
    RegisterQueue, Registry, Result, Standing, Stop, Submit, TakeOver, TakenOver, Tick, Timestamp, Unit, UnitReply,
    When, WorkflowId, WorkflowStore, WriteStore,
};

use crate::support::{Folder, Q, claim, enqueue, lease, sent, soon, submit};

const BAD: &str = "WHERE workflow_uuid = 'bad'";

/// Changes the file behind the store's back.
fn damage(folder: &Folder, statement: &str) {
    folder.stranger().execute_batch(statement).expect("damage");
}

/// A store with a leased executor and rows of these ids.
fn with_rows(folder: &Folder, ids: &[&str]) -> Sqlite {
    let store = folder.open();
    lease(&store, "e");
    let units: Vec<Unit> = ids.iter().map(|id| Unit::new().effect(submit(id).input("1"))).collect();
    soon(store.commit(&units)).expect("rows");
    store
}

fn taken(claimed: &Claimed) -> Vec<&str> {
    claimed.rows.iter().map(|row| row.row.id.as_str()).collect()
}

/// Sends a commit and a claim into one transaction; the commit must not notice what the claim meets.
fn beside_a_commit(folder: &Folder, store: &Sqlite, claim: Claim) -> Result<Claimed> {
    let held = folder.stranger();
    held.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let units = [enqueue("other")];
    let (commit, claim) = (sent(store.commit(&units)), sent(store.queue_claim(claim)));
    drop(held);
    let (committed, claimed) = (soon(commit), soon(claim));
    assert!(committed.expect("a commit").units[0].as_ref().is_ok_and(UnitReply::is_done));
    claimed
}

#[test]
fn a_claim_parks_a_row_that_it_cannot_read_and_takes_those_behind_it() {
    // What is damaged, and what the reason of the parked row must name.
    let cases = [
        (format!("UPDATE workflow_status SET authenticated_roles = 'no json' {BAD}"), "authenticated_roles"),
        (format!("UPDATE workflow_status SET workflow_timeout_ms = -5 {BAD}"), "workflow_timeout_ms"),
        (format!("UPDATE workflow_status SET priority = -5000000000 {BAD}"), "priority"),
        (format!("UPDATE workflow_status SET recovery_attempts = 5000000000 {BAD}"), "recovery_attempts"),
        (format!("UPDATE workflow_status SET queue_partition_key = CAST(x'ff' AS TEXT) {BAD}"), "queue_partition_key"),
        (format!("UPDATE workflow_input SET inputs = CAST(x'ff' AS TEXT) {BAD}"), "inputs"),
        (
            "INSERT INTO operation_outputs (workflow_uuid, function_id, retention_timestamp) VALUES ('bad', -1, 0), \
             ('bad', 5000000000, 0)"
                .to_owned(),
            "function_id",
        ),
    ];
    for (statement, named) in cases {
        let folder = Folder::new();
        let store = with_rows(&folder, &["bad", "good"]);
        damage(&folder, &statement);
        let claimed = soon(store.queue_claim(claim("e", "t1"))).expect(named);
        assert_eq!(taken(&claimed), ["good"], "{named}");
        assert_eq!(claimed.parked, [WorkflowId::from("bad")], "{named}");
        let standing = soon(store.workflow_standing(&["bad".into()])).expect("a read");
        let [Standing::Ended(Outcome::Parked(reason))] = &standing[..] else { panic!("{named}: {standing:?}") };
        let reason = reason.as_str();
        assert!(reason.contains(r#""name":"Unreadable""#) && reason.contains(named), "{named}: {reason}");
        let again = soon(store.queue_claim(claim("e", "t2"))).expect("a claim");
        assert!(again.rows.is_empty() && again.parked.is_empty(), "{again:?}");
    }
}

#[test]
fn a_parked_row_keeps_its_attempts_and_uses_a_place_of_the_claim() {
    let folder = Folder::new();
    let store = with_rows(&folder, &["bad", "good"]);
    damage(&folder, &format!("UPDATE workflow_status SET authenticated_roles = 'no json', priority = -1 {BAD}"));
    let mut request = claim("e", "t1");
    request.budget = 1;
    let claimed = soon(store.queue_claim(request)).expect("a claim");
    assert_eq!((taken(&claimed).len(), claimed.parked.len()), (0, 1));
    assert!(matches!(claimed.stop, Stop::More), "{:?}", claimed.stop);
    let attempts = format!("SELECT recovery_attempts FROM workflow_status {BAD}");
    let attempts: i64 = folder.stranger().query_row(&attempts, [], |row| row.get(0)).expect("a row");
    assert_eq!(attempts, 0);
    assert_eq!(taken(&soon(store.queue_claim(claim("e", "t2"))).expect("a claim")), ["good"]);
}

#[test]
fn rows_of_a_name_that_cannot_be_read_are_passed_over() {
    let folder = Folder::new();
    let store = with_rows(&folder, &["bad", "good"]);
    damage(&folder, &format!("UPDATE workflow_status SET name = CAST(x'01ff' AS TEXT) {BAD}"));
    assert_eq!(taken(&soon(store.queue_claim(claim("e", "t1"))).expect("a claim")), ["good"]);
}

#[test]
fn a_claim_that_meets_an_unreadable_row_fails_no_call_beside_it() {
    let folder = Folder::new();
    let store = with_rows(&folder, &["bad", "good"]);
    damage(&folder, &format!("UPDATE workflow_status SET authenticated_roles = 'no json' {BAD}"));
    let claimed = beside_a_commit(&folder, &store, claim("e", "t1")).expect("a claim");
    assert_eq!(taken(&claimed), ["good", "other"]);
}

#[test]
fn a_queue_that_cannot_be_read_fails_its_own_claims_alone() {
    let folder = Folder::new();
    let store = with_rows(&folder, &["good"]);
    soon(store.queue_register(RegisterQueue::new("q", "app"))).expect("a queue");
    damage(&folder, "UPDATE queues SET rate_limit_max = 5 WHERE name = 'q'");
    let mut request = claim("e", "t1");
    request.queue = "q".into();
    let failure = beside_a_commit(&folder, &store, request).expect_err("an unreadable queue");
    assert_eq!(failure.kind(), ErrorKind::Corrupt);
    assert_eq!(taken(&soon(store.queue_claim(claim("e", "t2"))).expect("a claim")), ["good", "other"]);
}

#[test]
fn a_tick_names_a_queue_that_it_cannot_read_beside_the_others() {
    let folder = Folder::new();
    let store = folder.open();
    for name in ["q", "sound"] {
        soon(store.queue_register(RegisterQueue::new(name, "app"))).expect("a queue");
    }
    damage(&folder, "UPDATE queues SET rate_limit_max = 5 WHERE name = 'q'");
    let ticked = soon(store.tick(Tick::new("app"))).expect("a tick");
    let queues: Vec<_> = ticked.queues.expect("the set").into_iter().map(|queue| queue.name).collect();
    assert_eq!((ticked.malformed, queues), (vec!["q".into()], vec!["sound".into()]));
}

#[test]
fn a_repeated_claim_answers_with_the_rows_that_can_be_read() {
    let folder = Folder::new();
    let store = with_rows(&folder, &["bad", "good"]);
    assert_eq!(taken(&soon(store.queue_claim(claim("e", "t1"))).expect("a claim")), ["bad", "good"]);
    damage(&folder, &format!("UPDATE workflow_status SET authenticated_roles = 'no json' {BAD}"));
    let mut request = claim("e", "t1");
    request.repeat = true;
    assert_eq!(taken(&soon(store.queue_claim(request)).expect("a claim")), ["good"]);
}

#[test]
fn a_tick_releases_a_delayed_row_without_a_queue_to_the_internal_one() {
    let folder = Folder::new();
    let store = folder.open();
    lease(&store, "e");
    let delayed = |id: &str| {
        let delay = Some(When::At(Timestamp::from_millis(1)));
        let place = Place::Queue { name: "q".into(), key: None, delay };
        Unit::new().effect(Submit::new(id, "job", format!("token {id}"), place).app("app"))
    };
    soon(store.commit(&[delayed("bad"), delayed("good")])).expect("rows");
    let holder = Unit::new().effect(submit("holder").app("another"));
    soon(store.commit(&[holder])).expect("a row");
    damage(&folder, "UPDATE workflow_status SET deduplication_id = 'd' WHERE workflow_uuid IN ('bad', 'holder')");
    damage(&folder, &format!("UPDATE workflow_status SET queue_name = NULL {BAD}"));
    let ticked = soon(store.tick(Tick::new("app"))).expect("a tick");
    assert_eq!(ticked.released, [Q, "q"]);
    assert_eq!(taken(&soon(store.queue_claim(claim("e", "t1"))).expect("a claim")), ["bad"]);
}

#[test]
fn a_tick_ends_a_late_row_whose_owner_cannot_be_read() {
    let folder = Folder::new();
    let store = with_rows(&folder, &["bad", "good"]);
    let damaged = "owner_xid = CAST(x'ff' AS TEXT)";
    damage(&folder, &format!("UPDATE workflow_status SET workflow_deadline_epoch_ms = 1, {damaged} {BAD}"));
    damage(&folder, "UPDATE workflow_status SET workflow_deadline_epoch_ms = 2 WHERE workflow_uuid = 'good'");
    let ticked = soon(store.tick(Tick::new("app"))).expect("a tick");
    assert_eq!(ticked.cancelled, [WorkflowId::from("bad"), WorkflowId::from("good")]);
}

#[test]
fn an_audit_passes_over_rows_that_have_no_fence() {
    let folder = Folder::new();
    let store = with_rows(&folder, &["a", "b", "c"]);
    assert_eq!(soon(store.queue_claim(claim("e", "t1"))).expect("a claim").rows.len(), 3);
    damage(&folder, "UPDATE workflow_status SET owner_xid = NULL WHERE workflow_uuid = 'a'");
    damage(&folder, "UPDATE workflow_status SET started_at_epoch_ms = NULL WHERE workflow_uuid = 'b'");
    // Pages of one: that a page shows nothing does not hide the next.
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let mut request = Audit::new("e");
        request.limit = 1;
        request.after = after;
        let audited = soon(store.queue_audit(request)).expect("an audit");
        found.extend(audited.rows.iter().map(|held| held.fence.workflow().to_string()));
        (after, pages) = (audited.next, pages + 1);
        if after.is_none() {
            break;
        }
    }
    assert_eq!((found, pages), (vec!["c".to_owned()], 3));
}

#[test]
fn a_take_over_gives_back_a_row_whose_owner_cannot_be_read() {
    let folder = Folder::new();
    let store = with_rows(&folder, &["bad", "good"]);
    assert_eq!(soon(store.queue_claim(claim("e", "t1"))).expect("a claim").rows.len(), 2);
    damage(&folder, &format!("UPDATE workflow_status SET owner_xid = CAST(x'ff' AS TEXT) {BAD}"));
    let over = soon(store.lease_take_over(TakeOver::new("e", 1_u64))).expect("a take-over");
    assert!(matches!(&over, TakenOver::Rows { ids, more: false } if ids.len() == 2), "{over:?}");
    lease(&store, "f");
    assert_eq!(taken(&soon(store.queue_claim(claim("f", "t2"))).expect("a claim")), ["bad", "good"]);
}

#[test]
fn a_collection_and_a_deletion_remove_ended_rows_that_cannot_be_read() {
    let folder = Folder::new();
    let store = with_rows(&folder, &["bad", "good", "worse"]);
    let ended = "status = 'SUCCESS', completed_at = 1, updated_at = 1";
    damage(&folder, &format!("UPDATE workflow_status SET {ended} WHERE workflow_uuid <> 'worse'"));
    damage(&folder, &format!("UPDATE workflow_status SET owner_xid = CAST(x'ff' AS TEXT) {BAD}"));
    let collected = soon(store.collect(Collect::new("app", Duration::ZERO))).expect("a collection");
    assert_eq!((collected.removed, collected.more), (2, false));
    damage(&folder, "UPDATE workflow_status SET queue_name = CAST(x'ff' AS TEXT) WHERE workflow_uuid = 'worse'");
    let deletion = Effect::Delete { ids: vec!["worse".into()], children: false };
    let answers = soon(store.commit(&[Unit::new().effect(deletion)])).expect("a commit");
    assert!(answers.units[0].as_ref().is_ok_and(UnitReply::is_done), "{answers:?}");
    assert_eq!(folder.stranger().query_row("SELECT count(*) FROM workflow_status", [], |row| row.get(0)), Ok(0_i64));
}
