//! Writes that SQLite itself refuses: they fail alone.

use mainstay_store::{ErrorKind, Standing, Status, WorkflowStore, WriteStore};

use crate::support::{Folder, enqueue, sent, soon};

/// A store in whose file one id cannot be written.
fn poisoned(folder: &Folder) -> mainstay_sqlite::Sqlite {
    let store = folder.open();
    let trigger = "CREATE TRIGGER poison AFTER INSERT ON workflow_input WHEN new.workflow_uuid = 'bad' \
        BEGIN SELECT RAISE(ABORT, 'poison'); END";
    folder.stranger().execute_batch(trigger).expect("a trigger");
    store
}

fn unit(id: &str) -> mainstay_store::Unit {
    mainstay_store::Unit::new().effect(crate::support::submit(id).input("1"))
}

#[test]
fn a_unit_that_cannot_be_written_leaves_the_others_of_its_batch_done() {
    let folder = Folder::new();
    let store = poisoned(&folder);
    let committed = soon(store.commit(&[unit("a"), unit("bad"), unit("b")])).expect("an answer");
    let kinds: Vec<_> = committed.units.iter().map(|reply| reply.as_ref().map_err(|error| error.kind())).collect();
    assert!(kinds[0].is_ok_and(|reply| reply.is_done()) && kinds[2].is_ok_and(|reply| reply.is_done()), "{kinds:?}");
    assert_eq!(kinds[1], Err(ErrorKind::Bug));
    let standing = soon(store.workflow_standing(&["a".into(), "bad".into(), "b".into()])).expect("a read");
    let open = Standing::Open(Status::Enqueued);
    assert_eq!(standing, [open.clone(), Standing::Gone, open], "nothing of the bad one is written");
}

#[test]
fn calls_that_share_a_transaction_do_not_share_a_failure() {
    let folder = Folder::new();
    let store = poisoned(&folder);
    let held = folder.stranger();
    held.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    // All of them wait for the lock, and so are of one batch.
    let batches = ["a", "bad", "b"].map(|id| [unit(id), enqueue(&format!("{id}2"))]);
    let calls: Vec<_> = batches.iter().map(|units| sent(store.commit(units))).collect();
    drop(held);
    for (call, wrong) in calls.into_iter().zip([false, true, false]) {
        let committed = soon(call).expect("an answer");
        assert_eq!(committed.units[0].is_err(), wrong);
        assert!(committed.units[1].as_ref().is_ok_and(mainstay_store::UnitReply::is_done));
    }
}
