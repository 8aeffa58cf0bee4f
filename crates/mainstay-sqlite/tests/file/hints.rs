//! Hints from one handle to another, which hears of a commit by looking at the file.

use mainstay_store::{
    Beat, Claim, ExecutorStore, Outcome, Place, QueueStore, RegisterQueue, Registry, StepOutput, StepRow, Store,
    Submit, Unit, Wakeup, WriteExt, WriteStore,
};

use crate::support::{Folder, Q, claim, enqueue, lease, soon};

#[test]
fn another_handle_hears_what_became_claimable_what_ended_and_what_changed() {
    let folder = Folder::new();
    let (store, other) = (folder.open(), folder.open());
    let mut heard = other.wakeups().subscribe();
    lease(&store, "e~1");
    soon(store.commit(&[enqueue("w")])).expect("a commit");
    assert_eq!(soon(heard.next()), Wakeup::Queue(Q.into()));
    let claimed = soon(store.queue_claim(claim("e~1", "c1"))).expect("a claim");
    soon(store.settle(&claimed.rows[0].fence, Outcome::Success("1".into()))).expect("an end");
    assert_eq!(soon(heard.next()), Wakeup::Workflow("w".into()));
    soon(store.queue_register(RegisterQueue::new("mail", "app"))).expect("a queue");
    assert_eq!(soon(heard.next()), Wakeup::Registry);
}

#[test]
fn a_handle_hears_each_of_its_own_hints_once() {
    let folder = Folder::new();
    let (store, other) = (folder.open(), folder.open());
    let mut heard = store.wakeups().subscribe();
    for n in 0..3 {
        soon(store.submit(Submit::new(format!("w{n}"), "job", "t", Place::queue(format!("q{n}"))))).expect("a commit");
    }
    soon(other.submit(Submit::new("x", "job", "t", Place::queue("z")))).expect("a commit");
    let told: Vec<Wakeup> = (0..4).map(|_| soon(heard.next())).collect();
    assert_eq!(told, ["q0", "q1", "q2", "z"].map(|queue| Wakeup::Queue(queue.into())));
}

#[test]
fn a_step_wakes_nobody_elsewhere() {
    let folder = Folder::new();
    let (store, other) = (folder.open(), folder.open());
    lease(&store, "e~1");
    soon(store.commit(&[enqueue("w")])).expect("a commit");
    let claimed = soon(store.queue_claim(claim("e~1", "c1"))).expect("a claim");
    let mut first = other.wakeups().subscribe();
    soon(other.commit(&[])).expect("it has heard what came before");
    while first.ready().is_some() {}
    let step = StepRow::new(0, "s", StepOutput::Value("1".into()));
    soon(store.unit(Unit::by(&claimed.rows[0].fence).step(step))).expect("a step");
    soon(store.submit(Submit::new("x", "job", "t", Place::queue("last")))).expect("a commit");
    assert_eq!(soon(first.next()), Wakeup::Queue("last".into()));
}

#[test]
fn more_hints_than_a_row_holds_say_all() {
    let folder = Folder::new();
    let (store, other) = (folder.open(), folder.open());
    let mut heard = other.wakeups().subscribe();
    let units: Vec<Unit> = (0..600)
        .map(|n| Unit::new().effect(Submit::new(format!("w{n}"), "job", "t", Place::queue(format!("q{n}")))))
        .collect();
    soon(store.commit(&units)).expect("a commit");
    assert_eq!(soon(heard.next()), Wakeup::All);
}

#[test]
fn a_store_opened_silent_publishes_nothing() {
    let folder = Folder::new();
    let silent = crate::support::open(&crate::support::env(), folder.config().silent(true));
    let mut heard = silent.wakeups().subscribe();
    soon(silent.commit(&[enqueue("w")])).expect("a commit");
    soon(silent.lease_beat(Beat::new("e~1", "app", 1_u64))).expect("a beat");
    let claimed: Claim = claim("e~1", "c1");
    assert_eq!(soon(silent.queue_claim(claimed)).expect("a claim").rows.len(), 1);
    assert_eq!(heard.ready(), None);
}
