//! Group `isolation`: clients that do random calls at once, and the history checker over all that they were answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_env::{Clock, Rng, SimClock};
use mainstay_store::{
    Beat, Claim, Effect, ExecutorId, Fence, Limits, Place, Rate, Registered, Store, Submit, TakeOver, TakenOver, Unit,
    UnitReply, WorkflowId, WriteExt,
};

use crate::clients::{self, Work};
use crate::desk::{APP, Desk, Q, V1, WORK, ms, success};
use crate::history::{self, Allowed, Did, Recorder, Taken};

cases! { "isolation";
    a_random_history_has_an_order;
    a_random_history_keeps_to_its_fleet;
    a_random_history_keeps_to_its_rate;
    a_random_history_under_take_overs_has_an_order;
    a_random_history_of_two_processes_has_an_order: Shared;
    a_random_history_of_two_processes_keeps_to_its_fleet: Shared;
    a_random_history_of_two_processes_keeps_to_its_rate: Shared;
}

const CLIENTS: u32 = 5;
const CALLS: u32 = 60;

/// What the clients of one history do.
#[derive(Clone, Copy)]
struct Plan {
    seed: u64,
    limits: Limits,
    take_overs: bool,
    processes: usize,
}

impl Plan {
    const fn new(seed: u64, limits: Limits) -> Self {
        Self { seed, limits, take_overs: false, processes: 1 }
    }
}

const NONE: Limits = Limits {
    concurrency: None,
    worker_concurrency: None,
    rate: None,
    partition_concurrency: None,
    partition_worker_concurrency: None,
    partition_rate: None,
};

fn fleet() -> Limits {
    Limits { concurrency: Some(3), ..NONE }
}

fn rate() -> Limits {
    Limits { rate: Some(Rate { starts: 4, period: ms(10) }), ..NONE }
}

/// Runs the clients, reads all rows, and demands that the checker finds nothing.
async fn explained(d: &Desk, plan: Plan) {
    d.register(Q, plan.limits).await;
    let mut stores = vec![d.store()];
    for _ in 1..plan.processes {
        stores.push(d.another().await);
    }
    let recorder = Arc::new(Recorder::default());
    let mut works: Vec<Work<()>> = Vec::new();
    for n in 0..CLIENTS {
        let client = Client {
            n,
            plan,
            store: stores[n as usize % stores.len()].clone(),
            clock: d.clock().clone(),
            rng: Rng::seeded(plan.seed).child(&n.to_string()),
            recorder: recorder.clone(),
            executor: ExecutorId::from(format!("client-{n}~0")),
            launches: 0,
            made: 0,
            held: Vec::new(),
            last: None,
        };
        works.push(Box::pin(client.run()));
    }
    clients::at_once(d, works).await;
    let events = recorder.events();
    let ids: Vec<WorkflowId> = (0..CLIENTS).flat_map(|n| (0..CALLS).map(move |made| id(n, made))).collect();
    let rows = d.store().workflow_rows(&ids).await.expect("read");
    let last: BTreeMap<_, _> = rows.into_iter().flatten().map(|row| (row.id.clone(), row)).collect();
    let allowed = Allowed { concurrency: plan.limits.concurrency, rate: plan.limits.rate };
    let faults = history::check(&events, &last, allowed);
    assert!(faults.is_empty(), "seed {}: {faults:#?}", plan.seed);
    let claimed = events.iter().filter(|event| matches!(&event.did, Did::Claimed { rows, .. } if !rows.is_empty()));
    let claimed = claimed.count();
    assert!(claimed > 4 && last.len() > 40, "too little was shown: {claimed} claims, {} rows", last.len());
}

fn id(client: u32, made: u32) -> WorkflowId {
    format!("w{client}-{made:02}").into()
}

struct Client {
    n: u32,
    plan: Plan,
    store: Arc<dyn Store>,
    clock: SimClock,
    rng: Rng,
    recorder: Arc<Recorder>,
    executor: ExecutorId,
    launches: u32,
    made: u32,
    held: Vec<Fence>,
    last: Option<Claim>,
}

impl Client {
    async fn run(mut self) {
        self.launch().await;
        for _ in 0..CALLS {
            match self.rng.below(20) {
                0..6 => self.enqueue().await,
                6..11 => self.claim().await,
                11 => self.repeat().await,
                12..15 => self.settle().await,
                15 | 16 => self.give_back().await,
                17 => self.cancel().await,
                18 if self.plan.take_overs => self.die().await,
                _ => self.clock.advance(ms(7)),
            }
            // A store in memory answers before another client is awake.
            std::thread::yield_now();
        }
        // Or a client that is through would keep the others from their slots.
        while !self.held.is_empty() {
            self.settle().await;
        }
    }

    async fn launch(&mut self) {
        self.launches += 1;
        self.executor = ExecutorId::from(format!("client-{}~{}", self.n, self.launches));
        self.store.lease_beat(Beat::new(self.executor.clone(), APP, 1_u64)).await.expect("leased");
    }

    async fn enqueue(&mut self) {
        let id = id(self.n, self.made);
        let token = format!("make {id}");
        let submit = Submit::new(&id, WORK, token, Place::queue(Q)).app(APP).priority(self.rng.between(0, 2));
        self.made += 1;
        let begun = self.recorder.begin();
        assert!(self.store.submit(submit).await.expect("submitted").is_done());
        self.recorder.note(begun, Did::Enqueued(id));
    }

    async fn claim(&mut self) {
        let token = format!("{} {}", self.executor, self.recorder.begin());
        let claim = Claim::new(Q, self.executor.clone(), APP, V1, token)
            .names(vec![Registered::new(WORK)])
            .budget(self.rng.between(1, 4));
        let begun = self.recorder.begin();
        let claimed = self.store.queue_claim(claim.clone()).await.expect("claimed");
        let rows: Vec<Taken> = claimed.rows.iter().map(Taken::of).collect();
        self.held.extend(rows.iter().map(|taken| taken.fence.clone()));
        let executor = self.executor.clone();
        self.recorder.note(begun, Did::Claimed { executor, now: claimed.now, rows });
        self.last = Some(claim);
    }

    /// As after a lost answer; a claim whose rows have all gone is no repeat and is left out.
    async fn repeat(&mut self) {
        let Some(claim) = self.last.clone() else { return };
        let begun = self.recorder.begin();
        let claimed = self.store.queue_claim(claim.repeat(true)).await.expect("claimed");
        let rows: Vec<Taken> = claimed.rows.iter().map(Taken::of).collect();
        let fresh = rows.iter().any(|taken| !self.held.contains(&taken.fence));
        let did = if fresh {
            self.held.extend(rows.iter().map(|taken| taken.fence.clone()));
            Did::Claimed { executor: self.executor.clone(), now: claimed.now, rows }
        } else {
            Did::Repeated { rows }
        };
        self.recorder.note(begun, did);
    }

    fn pick(&mut self) -> Option<Fence> {
        if self.held.is_empty() {
            return None;
        }
        let at = self.rng.index(self.held.len());
        Some(self.held.swap_remove(at))
    }

    async fn settle(&mut self) {
        let Some(fence) = self.pick() else { return };
        let begun = self.recorder.begin();
        let reply = self.store.settle(&fence, success("end")).await.expect("settled");
        self.recorder.note(begun, Did::Settled { fence, done: reply.is_done() });
    }

    async fn give_back(&mut self) {
        let Some(fence) = self.pick() else { return };
        let begun = self.recorder.begin();
        let reply = self.store.give_back(&fence).await.expect("given back");
        self.recorder.note(begun, Did::GaveBack { fence, done: reply.is_done() });
    }

    async fn cancel(&mut self) {
        if self.made == 0 {
            return;
        }
        let id = id(self.n, self.rng.below(u64::from(self.made)) as u32);
        let cancel = Effect::Cancel { ids: vec![id.clone()], children: false };
        let begun = self.recorder.begin();
        let reply = self.store.unit(Unit::new().effect(cancel)).await.expect("cancelled");
        let moved = matches!(reply, UnitReply::Done { effects } if effects == [mainstay_store::EffectReply::Moved(vec![id.clone()])]);
        self.recorder.note(begun, Did::Cancelled { id, moved });
    }

    /// Its executor is taken over, and it goes on as a new one, with the fences of the old one still in hand.
    async fn die(&mut self) {
        let request = TakeOver::new(self.executor.clone(), 1_u64).limit(2);
        loop {
            let begun = self.recorder.begin();
            let reply = self.store.lease_take_over(request.clone()).await.expect("taken over");
            let TakenOver::Rows { ids, more } = reply else { panic!("its beat has not moved: {reply:?}") };
            self.recorder.note(begun, Did::TookOver { executor: self.executor.clone(), ids });
            if !more {
                break;
            }
        }
        self.last = None;
        self.launch().await;
    }
}

async fn a_random_history_has_an_order(d: &Desk) {
    explained(d, Plan::new(1, NONE)).await;
}

async fn a_random_history_keeps_to_its_fleet(d: &Desk) {
    explained(d, Plan::new(2, fleet())).await;
}

async fn a_random_history_keeps_to_its_rate(d: &Desk) {
    explained(d, Plan::new(3, rate())).await;
}

async fn a_random_history_under_take_overs_has_an_order(d: &Desk) {
    explained(d, Plan { take_overs: true, ..Plan::new(4, fleet()) }).await;
}

async fn a_random_history_of_two_processes_has_an_order(d: &Desk) {
    explained(d, Plan { processes: 2, take_overs: true, ..Plan::new(5, NONE) }).await;
}

async fn a_random_history_of_two_processes_keeps_to_its_fleet(d: &Desk) {
    explained(d, Plan { processes: 2, take_overs: true, ..Plan::new(6, fleet()) }).await;
}

async fn a_random_history_of_two_processes_keeps_to_its_rate(d: &Desk) {
    let before = d.clock().now();
    explained(d, Plan { processes: 2, ..Plan::new(7, rate()) }).await;
    assert!(d.clock().now() > before);
}
