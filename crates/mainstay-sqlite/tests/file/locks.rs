//! Lock files: the proof that an executor's process is gone.

use mainstay_env::block_on;
use mainstay_sqlite::Sqlite;
use mainstay_store::{Beat, Beaten, ExecutorStore, Maintenance, QueueStore, TakeOver, TakenOver, Tick, WriteStore};

use crate::support::{Folder, claim, enqueue, lease, soon};

/// Executors of the application, with whether they are proved dead.
fn listed(store: &Sqlite) -> Vec<(String, bool)> {
    let leases = soon(store.lease_list(&"app".into())).expect("a list").leases;
    let ticked = soon(store.tick(Tick::new("app"))).expect("a tick").leases;
    assert_eq!(leases, ticked, "a tick tells the same");
    leases.into_iter().map(|lease| (lease.executor.to_string(), lease.dead)).collect()
}

fn both(a: bool, b: bool) -> Vec<(String, bool)> {
    vec![("a~1".to_owned(), a), ("b~1".to_owned(), b)]
}

#[test]
fn an_executor_whose_handle_is_dropped_is_proved_dead_at_once() {
    let folder = Folder::new();
    let (a, b) = (folder.open(), folder.open());
    lease(&a, "a~1");
    lease(&b, "b~1");
    assert_eq!((listed(&a), listed(&b)), (both(false, false), both(false, false)));
    let clone = a.clone();
    drop(a);
    assert_eq!(listed(&b), both(false, false), "a clone lives");
    drop(clone);
    assert_eq!(listed(&b), both(true, false));
    assert_eq!(listed(&b), both(true, false), "looking takes the proof from nobody");
}

#[test]
fn a_take_over_of_the_dead_removes_the_file() {
    let folder = Folder::new();
    let (a, b) = (folder.open(), folder.open());
    lease(&a, "a~1");
    soon(a.commit(&[enqueue("w")])).expect("a commit");
    assert_eq!(soon(a.queue_claim(claim("a~1", "c1"))).expect("a claim").rows.len(), 1);
    assert_eq!(folder.locks().len(), 1);
    drop(a);
    let taken = soon(b.lease_take_over(TakeOver::new("a~1", 1_u64))).expect("taken over");
    assert_eq!(taken, TakenOver::Rows { ids: vec!["w".into()], more: false });
    assert_eq!((listed(&b), folder.locks()), (vec![], vec![]));
}

#[test]
fn an_executor_that_finds_its_lease_gone_lets_go_of_its_lock() {
    let folder = Folder::new();
    let (a, b) = (folder.open(), folder.open());
    lease(&a, "a~1");
    soon(b.lease_take_over(TakeOver::new("a~1", 1_u64))).expect("taken over");
    assert_eq!(soon(a.lease_beat(Beat::new("a~1", "app", 2_u64))).expect("a beat"), Beaten::Gone);
    lease(&a, "a~1");
    assert_eq!((listed(&b), folder.locks().len()), (vec![("a~1".to_owned(), false)], 1));
}

#[test]
fn a_missing_file_proves_nothing() {
    let folder = Folder::new();
    let (a, b) = (folder.open(), folder.open());
    lease(&a, "a~1");
    drop(a);
    for lock in folder.locks() {
        std::fs::remove_file(lock).expect("removed");
    }
    assert_eq!(listed(&b), [("a~1".to_owned(), false)]);
}

#[test]
fn a_beat_through_another_handle_takes_the_free_lock() {
    let folder = Folder::new();
    let (a, b) = (folder.open(), folder.open());
    lease(&a, "a~1");
    drop(a);
    assert_eq!(listed(&b), [("a~1".to_owned(), true)]);
    assert_eq!(soon(b.lease_beat(Beat::new("a~1", "app", 2_u64))).expect("a beat"), Beaten::Alive);
    assert_eq!((listed(&b), folder.locks().len()), (vec![("a~1".to_owned(), false)], 1));
    block_on(b.close());
    assert_eq!(listed(&folder.open()), [("a~1".to_owned(), true)]);
}

#[cfg(unix)]
#[test]
fn a_link_to_the_file_leads_to_the_same_locks() {
    let folder = Folder::new();
    let a = folder.open();
    lease(&a, "a~1");
    let elsewhere = Folder::new();
    std::os::unix::fs::symlink(folder.file(), elsewhere.file()).expect("a link");
    let b = elsewhere.open();
    assert_eq!(listed(&b), [("a~1".to_owned(), false)]);
    drop(a);
    assert_eq!((listed(&b), elsewhere.locks()), (vec![("a~1".to_owned(), true)], vec![]));
}

#[test]
fn files_that_no_lease_names_are_swept_away_by_the_next_opener() {
    let folder = Folder::new();
    let a = folder.open();
    lease(&a, "a~1");
    let left = folder.path().join("store.db-exec/left.lock");
    let foreign = folder.path().join("store.db-exec/notes.txt");
    std::fs::write(&left, "").expect("a file");
    std::fs::write(&foreign, "").expect("a file");
    let b = folder.open();
    assert!(!left.exists() && foreign.exists());
    drop(a);
    let c = folder.open();
    assert_eq!((listed(&b), listed(&c)), (vec![("a~1".to_owned(), true)], vec![("a~1".to_owned(), true)]));
}
