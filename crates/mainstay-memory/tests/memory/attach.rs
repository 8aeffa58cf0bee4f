//! Several processes on one state.

use std::time::Duration;

use mainstay_env::{Sim, Timestamp};
use mainstay_memory::{Memory, Trouble};
use mainstay_store::{
    Capability, Outcome, QueueStore, Registry, Store, StoreClock, UnitReply, Wakeup, WorkflowStore, WriteExt,
};

use crate::support::{World, claim, enqueued, heard};

#[test]
fn another_process_sees_the_rows_and_hears_of_them() {
    let world = World::new(Trouble::none());
    let other = world.memory.attach(world.sim.env("two"));
    assert!(other.capabilities().has(Capability::Shared));
    assert_eq!((world.memory.env().name(), other.env().name()), ("one", "two"));
    let (mut here, mut there) = (world.memory.wakeups().subscribe(), other.wakeups().subscribe());
    world.enqueue("w");
    assert_eq!(heard(&mut here), [Wakeup::Queue("orders".into())]);
    assert_eq!(heard(&mut there), [Wakeup::Queue("orders".into())]);
    let claimed = world.sim.block_on(other.queue_claim(claim("c"))).expect("a claim");
    let fence = &claimed.rows[0].fence;
    let reply = world.run(async |memory| memory.settle(fence, Outcome::Cancelled).await);
    assert_eq!(reply, UnitReply::done());
    assert_eq!(heard(&mut there), [Wakeup::Workflow("w".into())]);
    assert_eq!(other.rows(), world.memory.rows());
}

#[test]
fn a_hub_is_one_process_s_own_and_ends_with_it() {
    let world = World::new(Trouble::none());
    let other = world.memory.attach(world.sim.env("two"));
    let (mut here, mut there) = (world.memory.wakeups().subscribe(), other.wakeups().subscribe());
    other.wakeups().publish(Wakeup::All);
    assert_eq!((heard(&mut here), heard(&mut there)), (vec![], vec![Wakeup::All]));
    drop(other);
    world.enqueue("w");
    assert_eq!((heard(&mut here).len(), heard(&mut there).len()), (1, 0));
}

#[test]
fn what_one_hub_loses_another_one_hears() {
    let world = World::new(Trouble { lost: 0.5, ..Trouble::none() });
    let other = world.memory.attach(world.sim.env("two"));
    let (mut here, mut there) = (world.memory.wakeups().subscribe(), other.wakeups().subscribe());
    let mut alone = 0;
    for at in 0..100 {
        world.enqueue(&format!("w{at}"));
        alone += usize::from(heard(&mut here).len() != heard(&mut there).len());
    }
    assert!((30..70).contains(&alone), "{alone} of 100 hints reached one process alone");
}

#[test]
fn a_process_reads_its_own_clock_but_never_one_behind_the_store() {
    let (early, late) = (Sim::starting_at(1, Timestamp(1_000)), Sim::starting_at(1, Timestamp(9_000)));
    let one = Memory::open(early.env("one"), StoreClock::Server);
    let two = one.attach(late.env("two"));
    let committed = |sim: &Sim, memory: &Memory, id: &str| {
        assert!(sim.block_on(memory.submit(enqueued(id))).is_ok_and(|reply| reply.is_done()));
        let row = sim.block_on(memory.workflow_rows(&[id.into()])).expect("rows").remove(0).expect("a row");
        row.created_at
    };
    assert_eq!(committed(&early, &one, "a"), Timestamp(1_000));
    assert_eq!(committed(&late, &two, "b"), Timestamp(9_000));
    assert_eq!(committed(&early, &one, "c"), Timestamp(9_000));
    early.advance(Duration::from_millis(8_500));
    assert_eq!(committed(&early, &one, "d"), Timestamp(9_500));
    assert!(early.block_on(one.queue_list(&"shop".into())).is_ok_and(|queues| queues.is_empty()));
}
