//! The backend and memory under one clock, and one operation done on both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mainstay_env::{Clock, SimClock};
use mainstay_memory::Memory;
use mainstay_store::{
    Audit, Beat, Claim, Collect, Effect, EffectReply, Fence, OnConflict, Probe, Queue, QueueName, ReadSteps,
    RegisterQueue, RegistryStamp, Revision, Store, StoreClock, Submit, TakeOver, TakenOver, Tick, Ticked, Timestamp,
    Unit, UnitReply, UpdateQueue, WorkflowId,
};
use serde_json::{Value, json};

use super::build;
use super::compare::{self, Marks};
use super::ops::{ClaimOp, EffectOp, IDS, Op, UnitOp};
use crate::desk::Desk;

/// One of the two, with what it has given out: the same things, in its own marks.
struct Side {
    store: Arc<dyn Store>,
    marks: Marks,
    fences: Vec<Fence>,
    /// The present revision of each queue and the one before.
    revisions: BTreeMap<QueueName, Vec<Revision>>,
    /// The stamp of the last tick, and the queues that there were with it.
    stamp: Option<(RegistryStamp, Vec<Queue>)>,
}

/// What a list has met, so that lists which do nothing are noticed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    /// Units that were done.
    pub(super) done: usize,
    /// Units that were judged and not done.
    pub(super) refused: usize,
    /// Rows that were claimed.
    pub(super) claimed: usize,
}

/// See the module.
pub(super) struct Pair {
    clock: SimClock,
    sides: [Side; 2],
    /// What keeps the backend's store.
    _backend: Box<dyn crate::Backend>,
    claims: Vec<Claim>,
    submits: BTreeMap<u8, Submit>,
    tokens: u32,
    pub(super) met: Met,
}

impl Pair {
    /// Fresh stores with two queues and three leases.
    pub(super) async fn open(d: &Desk) -> Self {
        let clock = SimClock::new(Timestamp::from_millis(1_700_000_000_000));
        let manual = || StoreClock::Manual(clock.clone());
        let backend = d.fresh();
        let ours = backend.open(d.env().clone(), manual()).await.expect("the store opens");
        let memory: Arc<dyn Store> = Arc::new(Memory::open(d.env().clone(), manual()));
        let side = |store: Arc<dyn Store>| {
            let (fences, revisions) = (Vec::new(), BTreeMap::new());
            Side { store, marks: Marks::default(), fences, revisions, stamp: None }
        };
        let sides = [side(ours), side(memory)];
        let (claims, submits) = (Vec::new(), BTreeMap::new());
        let mut pair = Self { clock, sides, _backend: backend, claims, submits, tokens: 0, met: Met::default() };
        let limits = super::ops::LimitsOp { fleet: None, process: None, rate: None };
        for queue in 0..2 {
            pair.run(&Op::Register { queue, app: 0, limits: limits.clone(), policy: 1 }).await;
        }
        for executor in 0..3 {
            pair.run(&Op::Beat { executor, beat: 1 }).await;
        }
        pair
    }

    fn token(&mut self) -> mainstay_store::Token {
        self.tokens += 1;
        format!("t{}", self.tokens).into()
    }

    /// Does one operation on both; what differs in the replies, or in the rows afterwards.
    pub(super) async fn run(&mut self, op: &Op) -> Option<String> {
        match op {
            Op::Pass(millis) => self.clock.advance(Duration::from_millis((*millis).into())),
            Op::Skew(millis) => {
                self.stamp().await;
                self.clock.skew_wall((*millis).into());
            }
            _ => {
                let [ours, memory] = self.replies(op).await;
                if let Some(text) = compare::difference("reply", &ours, &memory) {
                    return Some(text);
                }
            }
        }
        if op.only_reads() { None } else { self.rows().await }
    }

    /// Stores what the clock reads, by a row that nothing else touches. A backend may hold on to a reading that it has not
    /// stored; without this the two would rightly differ once the clock goes back.
    async fn stamp(&mut self) {
        let token = self.token();
        let submit = Submit::new(format!("stamp {token}"), "stamp", token, mainstay_store::Place::queue("stamps"));
        let unit = Unit::new().effect(submit.app("stamps"));
        for side in &self.sides {
            side.store.commit(std::slice::from_ref(&unit)).await.expect("the stamp is stored");
        }
    }

    async fn replies(&mut self, op: &Op) -> [Value; 2] {
        match op {
            Op::Commit(units) => self.commit(units).await,
            Op::Claim(op) => {
                let claim = build::claim(op, self.token());
                self.claims.push(claim.clone());
                self.claim(claim, Some(op)).await
            }
            Op::Repeat(back) => match self.claims.len().checked_sub(usize::from(*back) + 1) {
                Some(at) => self.claim(self.claims[at].clone().repeat(true), None).await,
                None => [Value::Null, Value::Null],
            },
            _ => {
                let mut seen = Vec::new();
                for side in &mut self.sides {
                    let reply = side.reply(op).await;
                    seen.push(side.marks.seen(reply));
                }
                two(seen)
            }
        }
    }

    /// Commits the units that do not meet those before them, so that every serial order has one result.
    async fn commit(&mut self, ops: &[UnitOp]) -> [Value; 2] {
        let mut batches = [Vec::new(), Vec::new()];
        let mut touched: BTreeMap<String, Option<u8>> = BTreeMap::new();
        for op in ops {
            let fence = self.sides[1].fence(op.fence);
            if op.fence.is_some() && fence.is_none() {
                continue;
            }
            let names = touches(op, fence);
            let meets = |name: &String| touched.get(name).is_some_and(|by| *by != op.fence || op.fence.is_none());
            if ops.len() > 1 && (moves_many(op) || names.iter().any(meets)) {
                continue;
            }
            touched.extend(names.into_iter().map(|name| (name, op.fence)));
            let [ours, memory] = self.unit(op).await;
            batches[0].push(ours);
            batches[1].push(memory);
        }
        let mut seen = Vec::new();
        for (side, units) in self.sides.iter_mut().zip(&batches) {
            let reply = side.commit(units).await;
            seen.push(side.marks.seen(reply));
        }
        let judged = seen[0]["units"].as_array().map_or(&[][..], |units| units);
        let done = judged.iter().filter(|unit| unit.get("Done").is_some()).count();
        self.met.done += done;
        self.met.refused += judged.len() - done;
        two(seen)
    }

    async fn unit(&mut self, op: &UnitOp) -> [Unit; 2] {
        let now = self.clock.now();
        let mut units = self.sides.each_ref().map(|side| side.fence(op.fence).map_or_else(Unit::new, Unit::by));
        for effect in &op.effects {
            let built = match effect {
                EffectOp::Submit(submit) => {
                    let earlier = self.submits.get(&submit.id).filter(|_| submit.again).cloned();
                    let is_there = self.sides[1].store.workflow_rows(&[build::id(submit.id)]).await;
                    let again = earlier.filter(|_| is_there.is_ok_and(|rows| rows[0].is_some()));
                    let token = self.token();
                    let submit_now = again.unwrap_or_else(|| build::submit(submit, token, now));
                    self.submits.insert(submit.id, submit_now.clone());
                    Effect::from(submit_now)
                }
                other => build::effect(other, now).expect("all others are built"),
            };
            units = units.map(|unit| unit.effect(built.clone()));
        }
        for step in &op.steps {
            units = units.map(|unit| {
                let effects = unit.effects.len();
                unit.step(build::step(step, effects))
            });
        }
        if let Some(outcome) = op.outcome {
            units = units.map(|unit| unit.outcome(build::outcome(outcome)));
        }
        units
    }

    async fn claim(&mut self, claim: Claim, op: Option<&ClaimOp>) -> [Value; 2] {
        let (mut seen, mut claimed_rows) = (Vec::new(), 0);
        for side in &mut self.sides {
            let mut claim = claim.clone();
            claim.revision = op.and_then(|op| side.revision(op));
            let reply = side.store.queue_claim(claim).await;
            if let Ok(claimed) = &reply {
                side.fences.extend(claimed.rows.iter().map(|row| row.fence.clone()));
                claimed_rows = claimed.rows.len();
            }
            seen.push(side.marks.seen(compare::result(&reply)));
        }
        self.met.claimed += claimed_rows;
        two(seen)
    }

    /// Rows and standings of all workflows on both sides.
    async fn rows(&mut self) -> Option<String> {
        let ids: Vec<WorkflowId> = (0..IDS).map(build::id).collect();
        let mut seen = Vec::new();
        for side in &mut self.sides {
            let rows = compare::result(&side.store.workflow_rows(&ids).await);
            let standings = compare::result(&side.store.workflow_standing(&ids).await);
            seen.push(json!({ "rows": rows, "standings": standings }));
        }
        compare::difference("then", &seen[0], &seen[1])
    }

    /// Everything else that can be read, at the end of a list.
    pub(super) async fn ends(&mut self) -> Option<String> {
        let mut seen = Vec::new();
        for side in &mut self.sides {
            let mut all = Vec::new();
            for n in 0..IDS {
                let steps = side.store.workflow_steps(ReadSteps::new(build::id(n)).bytes(u64::MAX)).await;
                all.push(compare::result(&steps));
                all.push(compare::result(&side.store.workflow_input(&build::id(n)).await));
            }
            for n in 0..4 {
                all.push(side.reply(&Op::Audit { executor: n, limit: 100 }).await);
            }
            for n in 0..2 {
                all.push(side.reply(&Op::Lists(n)).await);
            }
            seen.push(side.marks.seen(Value::Array(all)));
        }
        compare::difference("at the end", &seen[0], &seen[1])
    }
}

fn two(mut seen: Vec<Value>) -> [Value; 2] {
    let memory = seen.pop().unwrap_or_default();
    [seen.pop().unwrap_or_default(), memory]
}

/// Whether a unit reaches rows that it does not name.
fn moves_many(op: &UnitOp) -> bool {
    op.effects.iter().any(|effect| {
        matches!(effect, EffectOp::Cancel { children: true, .. } | EffectOp::Delete { children: true, .. })
    })
}

/// The workflows and deduplication keys that a unit writes or asks about.
fn touches(op: &UnitOp, fence: Option<&Fence>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = fence.map(|fence| fence.workflow().as_str().to_owned()).into_iter().collect();
    for effect in &op.effects {
        let ids: Vec<u8> = match effect {
            EffectOp::Submit(submit) => {
                names.extend(submit.dedup.map(|(key, _)| format!("key {key}")));
                vec![submit.id]
            }
            EffectOp::Cancel { ids, .. } | EffectOp::Resume { ids, .. } | EffectOp::Delete { ids, .. } => ids.clone(),
            EffectOp::Fork { source, id, .. } => vec![*source, *id],
            EffectOp::SetDelay { id, .. } | EffectOp::Attributes { id, .. } => vec![*id],
            EffectOp::GiveBack { .. } => Vec::new(),
        };
        names.extend(ids.into_iter().map(|n| build::id(n).as_str().to_owned()));
        // What frees a key meets whoever asks for it.
        let frees = !matches!(effect, EffectOp::Submit(_) | EffectOp::Attributes { .. } | EffectOp::SetDelay { .. });
        names.extend((0..2).filter(|_| frees).map(|key| format!("key {key}")));
    }
    names.extend((0..2).filter(|_| op.outcome.is_some()).map(|key| format!("key {key}")));
    names
}

impl Side {
    /// One of the fences so far, counted from the latest, and round again.
    fn fence(&self, back: Option<u8>) -> Option<&Fence> {
        let back = usize::from(back?).checked_rem(self.fences.len())?;
        self.fences.iter().rev().nth(back)
    }

    fn revision(&self, op: &ClaimOp) -> Option<Revision> {
        let back = match op.revision {
            0..3 => return None,
            3..5 => 1,
            _ => 2,
        };
        let known = self.revisions.get(&build::queue(op.queue))?;
        known.len().checked_sub(back).and_then(|at| known.get(at)).copied()
    }

    async fn commit(&mut self, units: &[Unit]) -> Value {
        let committed = match self.store.commit(units).await {
            Ok(committed) => committed,
            Err(error) => return compare::failure(&error),
        };
        for reply in committed.units.iter().flatten() {
            let UnitReply::Done { effects } = reply else { continue };
            for effect in effects {
                if let EffectReply::Created(created) = effect {
                    self.fences.extend(created.fence.clone());
                }
            }
        }
        let units: Vec<Value> = committed.units.iter().map(compare::result).collect();
        json!({ "now": committed.now, "units": units })
    }

    async fn reply(&mut self, op: &Op) -> Value {
        let store = self.store.clone();
        match op {
            Op::Beat { executor, beat } => compare::result(&store.lease_beat(beat_of(*executor, *beat)).await),
            Op::TakeOver { executor, ahead, limit, fallback } => {
                let leases = store.lease_list(&build::app(0)).await.map(|listed| listed.leases).unwrap_or_default();
                let executor = build::executor(*executor);
                let beat = leases.iter().find(|lease| lease.executor == executor).map_or(1, |lease| lease.beat);
                let mut request = TakeOver::new(executor, beat + u64::from(ahead / 2)).limit((*limit).into());
                if *fallback {
                    request = request.fallback(build::queue(1));
                }
                taken_over(&*store, request).await
            }
            Op::Tick { app, limit, beat, seen } => {
                let mut request = Tick::new(build::app(app / 2)).limit((*limit).into());
                request.beat = beat.map(|(executor, beat)| beat_of(executor, beat));
                request.seen = self.stamp.as_ref().filter(|_| *seen).map(|(stamp, _)| *stamp);
                let reply = store.tick(request.clone()).await;
                let mut told = compare::result(&reply);
                if let (Ok(ticked), Some(told)) = (&reply, told.as_object_mut()) {
                    let fault = self.registry_fault(&request, ticked).await;
                    told.insert("fault".into(), json!(fault));
                    // A set that is again what it was may have its stamp again, and then need not be told.
                    told.remove("stamp");
                    told.retain(|key, _| key != "queues" || request.seen.is_none());
                }
                told
            }
            Op::Collect { app, age, limit } => {
                let age = Duration::from_millis(u64::from(*age) * 10);
                compare::result(&store.collect(Collect::new(build::app(app / 2), age).limit((*limit).into())).await)
            }
            Op::Register { .. } | Op::Update { .. } | Op::Unregister { .. } | Op::Version { .. } => {
                let reply = self.registry(op).await;
                self.note_revisions().await;
                reply
            }
            Op::Probe { app, version, names } => {
                let queues = (0..4).map(build::queue).collect();
                let probe = Probe::new(build::app(*app), build::version(*version)).queues(queues);
                compare::result(&store.queue_probe(probe.names(build::names(*names))).await)
            }
            Op::Audit { executor, limit } => {
                audited(&*store, Audit::new(build::executor(*executor)).limit((*limit).into())).await
            }
            Op::Steps { id, from, bytes } => {
                let request = ReadSteps::new(build::id(*id)).from(i32::from(*from).into()).bytes((*bytes).into());
                compare::result(&store.workflow_steps(request).await)
            }
            Op::Holder { queue, key } => {
                let key = format!("k{key}").into();
                compare::result(&store.workflow_holder(&build::queue(*queue), &key).await)
            }
            Op::Lists(app) => {
                let app = build::app(*app);
                let queues = compare::result(&store.queue_list(&app).await);
                let versions = compare::result(&store.version_list(&app).await);
                json!([queues, versions, compare::result(&store.lease_list(&app).await)])
            }
            Op::Pass(_) | Op::Skew(_) | Op::Commit(_) | Op::Claim(_) | Op::Repeat(_) => Value::Null,
        }
    }

    async fn registry(&self, op: &Op) -> Value {
        let store = &self.store;
        match op {
            Op::Register { queue, app, limits, policy } => {
                let policy = match policy {
                    0 => OnConflict::Keep,
                    1 | 2 => OnConflict::Update,
                    _ => OnConflict::UpdateIfLatest(build::version(1)),
                };
                let request = RegisterQueue::new(build::queue(*queue), build::app(*app));
                let request = request.limits(build::limits(limits)).on_conflict(policy);
                compare::result(&store.queue_register(request).await)
            }
            Op::Update { queue, app, limits, clear } => {
                let request = UpdateQueue::new(build::queue(*queue), build::app(*app), build::change(limits, *clear));
                compare::result(&store.queue_update(request).await)
            }
            Op::Unregister { queue, app } => {
                compare::result(&store.queue_delete(&build::app(*app), &build::queue(*queue)).await)
            }
            Op::Version { app, version, promote } => {
                let (app, version) = (build::app(*app), build::version(*version));
                compare::result(&match promote {
                    true => store.version_promote(&app, &version).await,
                    false => store.version_register(&app, &version).await,
                })
            }
            _ => Value::Null,
        }
    }

    /// What is wrong with a tick's stamp and queues, if anything is.
    async fn registry_fault(&mut self, request: &Tick, ticked: &Ticked) -> Option<&'static str> {
        let mut all = Vec::new();
        for app in 0..3 {
            all.extend(self.store.queue_list(&build::app(app)).await.expect("queues"));
        }
        let own = self.store.queue_list(&request.app).await.expect("queues");
        let before = self.stamp.replace((ticked.stamp, all.clone()));
        let is_told = ticked.queues.is_some();
        if before.is_some_and(|(stamp, known)| stamp == ticked.stamp && known != all) {
            Some("the set has changed, and its stamp has not")
        } else if is_told != (request.seen != Some(ticked.stamp)) {
            Some("the queues are told when their stamp is not the one seen")
        } else if ticked.queues.as_ref().is_some_and(|told| *told != own) {
            Some("the queues that are told are not those that there are")
        } else {
            None
        }
    }

    async fn note_revisions(&mut self) {
        for app in 0..2 {
            for queue in self.store.queue_list(&build::app(app)).await.unwrap_or_default() {
                let known = self.revisions.entry(queue.name).or_default();
                if known.last() != Some(&queue.revision) {
                    known.push(queue.revision);
                }
            }
        }
    }
}

fn beat_of(executor: u8, beat: u8) -> Beat {
    Beat::new(build::executor(executor), build::app(0), u64::from(beat))
}

/// A take-over to its end: how many rows a call brings is a backend's own.
async fn taken_over(store: &dyn Store, request: TakeOver) -> Value {
    let mut all = Vec::new();
    loop {
        match store.lease_take_over(request.clone()).await {
            Ok(TakenOver::Rows { ids, more }) => {
                all.extend(ids);
                if !more {
                    all.sort();
                    return json!(all);
                }
            }
            other => return compare::result(&other),
        }
    }
}

/// An audit to its end: how many rows a page holds is a backend's own.
async fn audited(store: &dyn Store, mut request: Audit) -> Value {
    let mut all = Vec::new();
    loop {
        match store.queue_audit(request.clone()).await {
            Ok(page) => {
                all.extend(page.rows);
                request.after = page.next;
                if request.after.is_none() {
                    return json!({ "now": page.now, "rows": all });
                }
            }
            Err(error) => return compare::failure(&error),
        }
    }
}
