//! What tests may look at, and the store's answers to what only a peer can have written.

use std::time::Duration;

use mainstay_memory::{FlipKind, Memory, Trouble};
use mainstay_store::{
    Effect, ErrorKind, Limits, Outcome, Place, Queue, QueueStore, Reach, Revision, Stop, StoreClock, Submit, WriteExt,
};

use crate::support::{World, claim, created, enqueued};

#[test]
fn the_history_tells_every_execution_s_begin_and_end() {
    let world = World::new(Trouble::none());
    world.enqueue("a");
    world.enqueue("b");
    let first = world.claim("c1").rows;
    let late = Effect::GiveBack { delay: Some(Duration::from_secs(1)), begun: true };
    let direct = Submit::new("c", "checkout", "of c", Place::Run("one~1".into()));
    world.run(async |memory| {
        memory.settle(&first[0].fence, Outcome::Cancelled).await?;
        memory.give_back(&first[1].fence).await?;
        memory.submit(direct).await?;
        let again = memory.queue_claim(claim("c2")).await?;
        memory.unit(mainstay_store::Unit::by(&again.rows[0].fence).effect(late)).await?;
        memory.delete(&"c".into()).await
    });
    let flips: Vec<_> = world.memory.history().into_iter().map(|flip| (flip.id, flip.kind, flip.attempts)).collect();
    let expected = [
        ("a", FlipKind::Claimed, 1),
        ("b", FlipKind::Claimed, 1),
        ("a", FlipKind::Ended, 1),
        ("b", FlipKind::Returned, 1),
        ("c", FlipKind::Started, 1),
        ("b", FlipKind::Claimed, 2),
        ("b", FlipKind::Returned, 2),
        ("c", FlipKind::Ended, 1),
    ];
    assert_eq!(flips, expected.map(|(id, kind, attempts)| (id.into(), kind, attempts)));
    let last = world.memory.history_since(6);
    assert_eq!((last.len(), last[0].queue.as_ref().map(|queue| queue.as_str())), (2, Some("orders")));
    assert_eq!(last[1].queue, None);
}

#[test]
fn a_store_for_programs_keeps_no_history() {
    let world = World::new(Trouble::none());
    let memory = Memory::open(world.sim.env("program"), StoreClock::Server);
    let queued = world.sim.block_on(memory.submit(enqueued("w"))).expect("an answer");
    assert_eq!((created(&queued).fence.clone(), memory.history()), (None, vec![]));
}

#[test]
fn a_queue_that_a_peer_paused_gives_nothing() {
    let world = World::new(Trouble::none());
    world.enqueue("w");
    let paused = Limits { concurrency: Some(0), ..Limits::default() };
    let peer = Queue::new("orders", Revision(0)).stored(paused);
    let stored = world.run(async |memory| memory.put_queue(peer).await);
    assert!(stored.revision > Revision(0));
    let claimed = world.claim("c");
    assert_eq!((claimed.stop, claimed.rows.len()), (Stop::Limit(Reach::Fleet), 0));
}

#[test]
fn a_queue_that_a_peer_partitioned_is_not_claimed_without_its_limits() {
    let world = World::new(Trouble::none());
    world.enqueue("w");
    let limits = Limits { concurrency: Some(1), ..Limits::default() };
    let peer = Queue::new("orders", Revision(0)).stored(limits).partition_flag(true);
    world.run(async |memory| memory.put_queue(peer).await);
    let refused = world.sim.block_on(world.memory.queue_claim(claim("c"))).expect_err("no capability");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert_eq!(world.memory.check_invariants(), Ok(()));
}
