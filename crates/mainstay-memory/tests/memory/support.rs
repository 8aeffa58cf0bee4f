//! What the tests share: one world, and the calls that most of them begin with.

use mainstay_env::Sim;
use mainstay_memory::{Memory, Trouble};
use mainstay_store::{
    Beat, Claim, Claimed, Created, EffectReply, ExecutorStore, Place, QueueStore, RegisterQueue, Registered, Registry,
    Result, StoreClock, Submit, UnitReply, Wakeup, WriteExt,
};

/// A store with its own world, without trouble unless told otherwise.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) memory: Memory,
}

impl World {
    pub(crate) fn new(trouble: Trouble) -> Self {
        Self::seeded(1, trouble)
    }

    pub(crate) fn seeded(seed: u64, trouble: Trouble) -> Self {
        let sim = Sim::new(9);
        let clock = StoreClock::Manual(sim.clock().clone());
        let memory = Memory::troubled(sim.env("one"), clock, seed, trouble);
        let world = Self { sim, memory };
        world.run(async |memory| {
            memory.lease_beat(Beat::new("one~1", "shop", 1u64)).await?;
            memory.queue_register(RegisterQueue::new("orders", "shop")).await
        });
        world
    }

    pub(crate) fn run<T>(&self, work: impl AsyncFnOnce(&Memory) -> Result<T>) -> T {
        self.sim.block_on(work(&self.memory)).expect("the store answers")
    }

    pub(crate) fn enqueue(&self, id: &str) {
        let reply = self.run(async |memory| memory.submit(enqueued(id)).await);
        assert!(reply.is_done(), "{reply:?}");
    }

    pub(crate) fn claim(&self, token: &str) -> Claimed {
        self.run(async |memory| memory.queue_claim(claim(token)).await)
    }
}

pub(crate) fn enqueued(id: &str) -> Submit {
    Submit::new(id, "checkout", format!("of {id}"), Place::queue("orders")).app("shop")
}

pub(crate) fn claim(token: &str) -> Claim {
    Claim::new("orders", "one~1", "shop", "v1", token).names(vec![Registered::new("checkout")])
}

pub(crate) fn created(reply: &UnitReply) -> &Created {
    match reply {
        UnitReply::Done { effects } => match effects.as_slice() {
            [EffectReply::Created(created)] => created,
            other => panic!("no row was made: {other:?}"),
        },
        other => panic!("not done: {other:?}"),
    }
}

/// All hints that are there.
pub(crate) fn heard(subscription: &mut mainstay_store::Subscription) -> Vec<Wakeup> {
    std::iter::from_fn(|| subscription.ready()).collect()
}
