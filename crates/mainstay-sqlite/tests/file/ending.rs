//! The end of a handle: its threads, its log, and what was on its way.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mainstay_env::block_on;
use mainstay_store::{Standing, Status, Store, WorkflowStore, WriteStore};

use crate::support::{Folder, SOON, enqueue, env, open, soon};

#[test]
fn the_threads_end_with_the_last_handle() {
    let folder = Folder::new();
    let env = env();
    let store = open(&env, folder.config());
    assert_eq!(env.tasks().live(), ["sqlite/writer", "sqlite/reader-0", "sqlite/reader-1"]);
    let clone = store.clone();
    drop(store);
    soon(clone.commit(&[enqueue("w")])).expect("a clone still commits");
    drop(clone);
    assert_eq!(block_on(env.tasks().drain(env.deadline(SOON))), Vec::<String>::new());
}

#[test]
fn a_closed_store_leaves_one_file() {
    let folder = Folder::new();
    let store = folder.open();
    soon(store.commit(&[enqueue("w")])).expect("a commit");
    let env = store.env().clone();
    soon(store.close());
    assert_eq!(env.tasks().live(), Vec::<String>::new());
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["store.db"]);
}

#[test]
fn a_commit_whose_future_is_dropped_is_whole() {
    let folder = Folder::new();
    let store = folder.open();
    {
        let units = [enqueue("a"), enqueue("b")];
        let mut commit = pin!(store.commit(&units));
        let polled = commit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending | Poll::Ready(Ok(_))));
    }
    // Behind it in the queue.
    soon(store.commit(&[enqueue("c")])).expect("a commit");
    let standing = soon(store.workflow_standing(&["a".into(), "b".into(), "c".into()])).expect("a read");
    assert_eq!(standing, vec![Standing::Open(Status::Enqueued); 3]);
}

#[test]
fn what_was_sent_before_the_last_handle_went_is_written() {
    let folder = Folder::new();
    let store = folder.open();
    let env = store.env().clone();
    {
        let units = [enqueue("a")];
        let mut commit = pin!(store.commit(&units));
        let _ = commit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    drop(store);
    assert_eq!(block_on(env.tasks().drain(env.deadline(SOON))), Vec::<String>::new());
    let again = folder.open();
    assert_eq!(soon(again.workflow_standing(&["a".into()])).expect("a read"), [Standing::Open(Status::Enqueued)]);
}
