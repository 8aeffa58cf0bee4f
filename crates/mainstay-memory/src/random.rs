//! Random operations on a small world: after each the checker is content, and what was refused has left nothing.

use std::time::Duration;

use mainstay_env::Rng;
use mainstay_store::{
    Audit, Claim, Effect, Fence, Fork, Joining, OnHeld, Outcome, Place, QueueName, Rate, RegisterQueue, Registered,
    StepOutput, StepRow, StoreClock, Submit, TakeOver, Tick, Timestamp, Unit, UnitReply, When, WorkflowId,
};
use mainstay_store::{Beat, Collect, ExecutorStore, Limits, Maintenance, QueueStore, Registry, WriteStore};

use crate::check;
use crate::memory::Memory;
use crate::state::State;
use crate::trouble::Trouble;

const IDS: u64 = 14;
const STEPS: usize = 400;

struct World {
    sim: mainstay_env::Sim,
    memory: Memory,
    rng: Rng,
    refused: usize,
    taken_back: usize,
    serial: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let sim = mainstay_env::Sim::new(seed);
        let clock = StoreClock::Manual(sim.clock().clone());
        let memory = Memory::troubled(sim.env("one"), clock, seed, Trouble::none());
        let rng = Rng::seeded(seed).child("actions");
        let world = Self { sim, memory, rng, refused: 0, taken_back: 0, serial: 0 };
        let rate = Some(Rate { starts: 3, period: Duration::from_millis(50) });
        let limits = Limits { concurrency: Some(3), rate, ..Limits::default() };
        let limited = RegisterQueue::new("q0", "shop").limits(limits);
        world.sim.block_on(async {
            assert!(world.memory.queue_register(limited).await.is_ok());
            assert!(world.memory.queue_register(RegisterQueue::new("q1", "shop")).await.is_ok());
        });
        world
    }

    fn id(&self) -> WorkflowId {
        format!("w{}", self.rng.below(IDS)).into()
    }

    fn ids(&self) -> Vec<WorkflowId> {
        (0..=self.rng.below(3)).map(|_| self.id()).collect()
    }

    fn queue(&self) -> QueueName {
        format!("q{}", self.rng.below(2)).into()
    }

    fn executor(&self) -> String {
        format!("e~{}", self.rng.below(2))
    }

    fn wait(&self) -> Duration {
        Duration::from_millis(self.rng.below(30))
    }

    fn token(&mut self) -> String {
        self.serial += 1;
        format!("t{}", self.serial)
    }

    fn submit(&mut self) -> Submit {
        let (token, when) = (self.token(), self.wait());
        let place = match self.rng.below(4) {
            0 => Place::Run(self.executor().into()),
            1 => Place::Queue { name: self.queue(), key: None, delay: Some(When::In(when)) },
            _ => Place::Queue { name: self.queue(), key: None, delay: None },
        };
        let runs = matches!(place, Place::Run(_));
        let mut submit = Submit::new(self.id(), "f", token, place).input("{}");
        submit.app = self.rng.chance(0.7).then(|| "shop".into());
        submit.parent = self.rng.chance(0.4).then(|| self.id());
        submit.timeout = self.rng.chance(0.3).then(|| when + Duration::from_millis(1));
        submit.deadline = self.rng.chance(0.2).then_some(When::In(when));
        let key = Joining { key: format!("k{}", self.rng.below(2)).into(), on_held: OnHeld::Reject };
        submit.dedup = (!runs && self.rng.chance(0.4)).then_some(key);
        submit
    }

    fn effect(&mut self) -> Effect {
        let children = self.rng.chance(0.4);
        match self.rng.below(9) {
            0..=2 => self.submit().into(),
            3 => Effect::Cancel { ids: self.ids(), children },
            4 => Effect::Delete { ids: self.ids(), children },
            5 => Effect::Resume { ids: self.ids(), queue: None, force: self.rng.chance(0.5) },
            6 => Fork::new(self.id(), self.id(), 1).into(),
            7 => Effect::SetDelay { id: self.id(), delay: When::In(self.wait()) },
            _ => Effect::Attributes { id: self.id(), json: self.rng.chance(0.5).then(|| "{}".into()) },
        }
    }

    fn unit(&mut self) -> Unit {
        let fences = self.memory.fences();
        let mut unit = match self.rng.pick(&fences) {
            Some(fence) if self.rng.chance(0.6) => Unit::by(fence),
            _ => Unit::new(),
        };
        if unit.fence.is_some() && self.rng.chance(0.2) {
            let delay = self.rng.chance(0.4).then(|| self.wait());
            return unit.effect(Effect::GiveBack { delay, begun: self.rng.chance(0.5) });
        }
        for _ in 0..self.rng.below(4) {
            unit = unit.effect(self.effect());
        }
        if unit.fence.is_none() {
            return unit;
        }
        if self.rng.chance(0.5) {
            unit = unit.step(StepRow::new(self.rng.below(4) as i32, "s", StepOutput::WakeIn(self.wait())));
        }
        match self.rng.below(5) {
            0 => unit.outcome(Outcome::Success("1".into())),
            1 => unit.outcome(Outcome::Parked("1".into())),
            _ => unit,
        }
    }

    /// Commits a unit; what is not done must have left everything as it was.
    fn commit(&mut self) {
        let unit = self.unit();
        let before: State = self.memory.state().clone();
        let committed = self.sim.block_on(self.memory.commit(std::slice::from_ref(&unit))).expect("memory answers");
        if matches!(committed.units[..], [Ok(UnitReply::Done { .. })]) {
            return;
        }
        self.refused += 1;
        if let [Ok(UnitReply::Refused { effect, .. })] = committed.units[..] {
            self.taken_back += usize::from(effect > 0);
        }
        assert!(*self.memory.state() == before, "{unit:?} left something behind: {:?}", committed.units);
    }

    fn claim(&mut self) {
        let (token, budget) = (self.token(), 1 + self.rng.below(4) as u32);
        let registered = Registered { max_attempts: 3, ..Registered::new("f") };
        let claim = Claim::new(self.queue(), self.executor(), "shop", "v1", token)
            .names(vec![registered])
            .budget(budget)
            .repeat(self.rng.chance(0.2));
        self.sim.block_on(self.memory.queue_claim(claim)).expect("memory answers");
    }

    fn act(&mut self) {
        let (memory, executor) = (self.memory.clone(), self.executor());
        match self.rng.below(12) {
            0..=5 => self.commit(),
            6 | 7 => self.claim(),
            8 => {
                let tick = Tick::new("shop").limit(self.rng.below(3) as u32).beat(Beat::new(executor, "shop", 1u64));
                self.sim.block_on(memory.tick(tick)).expect("memory answers");
            }
            9 => {
                let collect = Collect::new("shop", self.wait()).limit(2);
                self.sim.block_on(memory.collect(collect)).expect("memory answers");
            }
            10 => {
                let take_over = TakeOver::new(executor, 1u64).limit(1 + self.rng.below(2) as u32);
                self.sim.block_on(memory.lease_take_over(take_over)).expect("memory answers");
            }
            _ => self.sim.clock().advance(self.wait()),
        }
    }

    /// What an audit shows page by page is what the rows say.
    fn audit(&self) -> Vec<Fence> {
        let mut found = Vec::new();
        for executor in ["e~0", "e~1"] {
            let mut audit = Audit::new(executor).limit(2);
            loop {
                let page = self.sim.block_on(self.memory.queue_audit(audit.clone())).expect("memory answers");
                found.extend(page.rows.into_iter().map(|row| row.fence));
                match page.next {
                    Some(next) => audit = audit.after(next),
                    None => break,
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn random_operations_keep_every_invariant_and_refused_units_leave_nothing() {
    let (mut refused, mut taken_back, mut flips) = (0, 0, 0);
    for seed in 0..40 {
        let mut world = World::new(seed);
        let mut latest = Timestamp(i64::MIN);
        for step in 0..STEPS {
            world.act();
            let state = world.memory.state();
            assert_eq!(check::state(&state), Vec::<String>::new(), "seed {seed}, step {step}");
            assert!(state.latest >= latest, "seed {seed}, step {step}");
            latest = state.latest;
        }
        assert_eq!(world.audit(), world.memory.fences(), "seed {seed}");
        refused += world.refused;
        taken_back += world.taken_back;
        flips += world.memory.history().len();
    }
    assert!(refused > 1000 && taken_back > 200 && flips > 1000, "{refused} {taken_back} {flips}");
}
