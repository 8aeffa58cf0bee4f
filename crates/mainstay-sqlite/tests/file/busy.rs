//! Another connection in a transaction: calls wait for it, as long as their patience lasts.

use std::task::{Context, Waker};

use mainstay_store::{
    ErrorKind, QueueStore, Standing, Status, Stop, Store, UnitReply, Wakeup, WorkflowStore, WriteStore,
};
use rusqlite::Connection;

use crate::support::{Folder, claim, enqueue, lease, open, sent, soon, virtual_env};

/// A connection that holds the file's write lock until it is dropped.
fn holder(folder: &Folder) -> Connection {
    let conn = folder.stranger();
    conn.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    conn
}

#[test]
fn a_commit_waits_until_another_connection_lets_go() {
    let folder = Folder::new();
    let store = folder.open();
    let held = holder(&folder);
    let units = [enqueue("w")];
    let mut commit = sent(store.commit(&units));
    // Reads pass a writer by, and show that the commit has not.
    assert_eq!(soon(store.workflow_standing(&["w".into()])).expect("a read"), [Standing::Gone]);
    assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(held);
    let committed = soon(commit).expect("no error");
    assert!(committed.units[0].as_ref().is_ok_and(UnitReply::is_done));
}

#[test]
fn a_commit_beyond_its_patience_is_unavailable_and_writes_nothing() {
    let folder = Folder::new();
    let (env, clock) = virtual_env();
    let store = open(&env, folder.config());
    let held = holder(&folder);
    let units = [enqueue("w")];
    let commit = sent(store.commit(&units));
    clock.advance(folder.config().patience);
    let error = soon(commit).expect_err("no patience is left");
    assert_eq!((error.kind(), error.op()), (ErrorKind::Unavailable, "commit"));
    drop(held);
    soon(store.commit(&[enqueue("x")])).expect("a commit");
    let standing = soon(store.workflow_standing(&["w".into(), "x".into()])).expect("a read");
    assert_eq!(standing, [Standing::Gone, Standing::Open(Status::Enqueued)]);
}

#[test]
fn a_claim_says_that_it_was_contended_before_a_commit_gives_up() {
    let folder = Folder::new();
    let (env, clock) = virtual_env();
    let store = open(&env, folder.config());
    lease(&store, "e~1");
    let held = holder(&folder);
    let units = [enqueue("w")];
    let mut commit = sent(store.commit(&units));
    let claiming = sent(store.queue_claim(claim("e~1", "c1")));
    clock.advance(folder.config().claim_patience);
    let claimed = soon(claiming).expect("no error");
    assert_eq!((claimed.stop, claimed.rows.len()), (Stop::Contended, 0));
    assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(held);
    soon(commit).expect("a commit");
}

#[test]
fn hints_come_while_another_connection_holds_the_file() {
    let folder = Folder::new();
    let (store, other) = (folder.open(), folder.open());
    let mut heard = store.wakeups().subscribe();
    soon(other.commit(&[enqueue("w")])).expect("a commit");
    let held = holder(&folder);
    assert_eq!(soon(heard.next()), Wakeup::Queue(crate::support::Q.into()));
    drop(held);
}
