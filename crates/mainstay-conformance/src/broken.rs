//! Stores that are broken in one place: the suite must notice each of them, by name.
//!
//! Each is memory behind a wrapper that does what a backend with this fault would do: what is one step in the contract is
//! two here, with time for others in between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_memory::Memory;
use mainstay_store::wrap::Method;
use mainstay_store::*;

use crate::case::{Verdict, cases};
use crate::{Backend, Lasting, Subject, Trouble};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// None: the wrapper itself changes nothing.
    Honest,
    /// Running rows and starts are counted before the claim, not inside it.
    StaleCounts,
    /// Rows are selected first and flipped later, whatever they are by then.
    NoSecondLook,
    /// An outcome is written to the row that its fence names, whoever runs it.
    UnfencedOutcome,
    /// A claim that is sent again takes rows like a new one.
    ForgottenToken,
    /// A commit that finds no space leaves its first write behind.
    HalfWithoutSpace,
    /// A claim takes rows although it says that the store is unavailable, and forgets its token.
    TakenUnavailable,
}

#[derive(Debug)]
struct Broken {
    inner: Memory,
    fault: Fault,
    /// Limits that the inner store does not know, and the starts of their queues.
    limits: Mutex<BTreeMap<QueueName, Limits>>,
    starts: Mutex<Vec<(QueueName, Timestamp)>>,
    trouble: Current,
}

/// What a broken store does in trouble that it answers by itself.
type Current = Arc<Mutex<Option<ErrorKind>>>;

impl Fault {
    /// Whether a store with this fault answers this trouble by itself.
    fn answers(self, trouble: Trouble) -> Option<ErrorKind> {
        match (self, trouble) {
            (Self::HalfWithoutSpace, Trouble::Fails(kind @ ErrorKind::Full, Method::Commit))
            | (Self::TakenUnavailable, Trouble::Fails(kind @ ErrorKind::Unavailable, Method::QueueClaim)) => Some(kind),
            _ => None,
        }
    }
}

pass_on! { Broken => inner: WorkflowStore, ExecutorStore, Maintenance }
pass_on! { Broken => inner: SignalStore, ScheduleStore, AdminStore, Store }

impl Broken {
    fn new(inner: Memory, fault: Fault, trouble: Current) -> Self {
        Self { inner, fault, limits: Mutex::default(), starts: Mutex::default(), trouble }
    }

    /// What it is to answer now, after it has done what its fault does.
    fn in_trouble(&self, op: &'static str) -> Option<StoreError> {
        let kind = *self.trouble.lock().expect("no panic while locked");
        kind.map(|kind| StoreError::new(kind, op))
    }

    /// Long enough for another client to come in between.
    async fn meanwhile(&self) {
        self.inner.env().sleep(Duration::from_millis(2)).await;
    }

    fn running(&self, queue: &QueueName) -> u32 {
        let rows = self.inner.rows();
        let pending = rows.iter().filter(|row| row.status == Status::Pending && row.queue.as_ref() == Some(queue));
        u32::try_from(pending.count()).expect("few rows")
    }

    fn started(&self, queue: &QueueName, now: Timestamp, rate: Rate) -> Starts {
        let all = self.starts.lock().expect("no panic while locked");
        let within = |at: Timestamp| at > now - rate.period;
        let mut inside: Vec<Timestamp> =
            all.iter().filter(|(of, at)| of == queue && within(*at)).map(|(_, at)| *at).collect();
        inside.sort_unstable();
        let oldest = inside.iter().rev().take(rate.starts as usize).next_back();
        Starts {
            count: u32::try_from(inside.len()).expect("few starts").min(rate.starts),
            opens_in: oldest.map(|at| (*at + rate.period).since(now)),
        }
    }

    /// Counts, lets others in, and takes what was free when it counted.
    async fn claim_by_stale_counts(&self, mut request: Claim) -> Result<Claimed> {
        let limits =
            self.limits.lock().expect("no panic while locked").get(&request.queue).copied().unwrap_or_default();
        let now = self.inner.commit(&[]).await?.now;
        let counts = Counts {
            running: self.running(&request.queue),
            starts: limits.rate.map(|rate| self.started(&request.queue, now, rate)).unwrap_or_default(),
            keys: Vec::new(),
        };
        let allowance = Admission { limits: &limits, local: &request.local, budget: request.budget }.decide(&counts);
        if allowance.total == 0 {
            return Ok(Claimed::new(now, allowance.full));
        }
        self.meanwhile().await;
        request.budget = allowance.total;
        let queue = request.queue.clone();
        let mut claimed = self.inner.queue_claim(request).await?;
        if claimed.rows.len() == allowance.total as usize {
            claimed.stop = allowance.full;
        }
        let mut starts = self.starts.lock().expect("no panic while locked");
        starts.extend(claimed.rows.iter().map(|_| (queue.clone(), claimed.now)));
        drop(starts);
        Ok(claimed)
    }

    /// Selects, lets others in, and flips what it had selected: a row that has moved on is brought back for it.
    async fn claim_without_a_second_look(&self, request: Claim) -> Result<Claimed> {
        let mut selected: Vec<WorkflowRow> = self.inner.rows();
        selected.retain(|row| row.status == Status::Enqueued && row.queue.as_ref() == Some(&request.queue));
        selected.sort_by_key(WorkflowRow::rank);
        selected.truncate(request.budget as usize);
        self.meanwhile().await;
        let ids: Vec<WorkflowId> = selected.into_iter().map(|row| row.id).collect();
        let rows = self.inner.workflow_rows(&ids).await?;
        for row in rows.into_iter().flatten().filter(|row| row.status != Status::Enqueued) {
            self.inner.unit(brought_back(row, &request)).await?;
        }
        self.inner.queue_claim(request).await
    }

    /// Writes an outcome that came late as if it were that of the row's present execution.
    async fn unfenced(&self, unit: &Unit, reply: UnitReply) -> Result<UnitReply> {
        let (Some(fence), Some(_), UnitReply::Superseded { by: Standing::Open(Status::Pending) }) =
            (&unit.fence, &unit.outcome, &reply)
        else {
            return Ok(reply);
        };
        let present = self.inner.fences().into_iter().find(|present| present.workflow() == fence.workflow());
        let mut again = unit.clone();
        again.fence = present;
        self.inner.unit(again).await
    }
}

#[async_trait]
impl WriteStore for Broken {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        if let Some(error) = self.in_trouble("commit").filter(|_| self.fault == Fault::HalfWithoutSpace) {
            let several = units.iter().find(|unit| unit.effects.len() > 1).expect("a unit with several effects");
            self.inner.unit(Unit::new().effect(several.effects[0].clone())).await?;
            return Err(error);
        }
        let mut committed = self.inner.commit(units).await?;
        if self.fault == Fault::UnfencedOutcome {
            for (unit, answer) in units.iter().zip(&mut committed.units) {
                if let Ok(reply) = answer {
                    *answer = self.unfenced(unit, reply.clone()).await;
                }
            }
        }
        Ok(committed)
    }
}

#[async_trait]
impl QueueStore for Broken {
    async fn queue_claim(&self, mut request: Claim) -> Result<Claimed> {
        match self.fault {
            Fault::StaleCounts => self.claim_by_stale_counts(request).await,
            Fault::NoSecondLook if !request.repeat => self.claim_without_a_second_look(request).await,
            Fault::TakenUnavailable => {
                request.repeat = false;
                let claimed = self.inner.queue_claim(request).await?;
                self.in_trouble("queue_claim").map_or(Ok(claimed), Err)
            }
            Fault::ForgottenToken if request.repeat => {
                request.repeat = false;
                self.inner.queue_claim(request).await
            }
            _ => self.inner.queue_claim(request).await,
        }
    }

    async fn queue_probe(&self, request: Probe) -> Result<Probed> {
        self.inner.queue_probe(request).await
    }

    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        self.inner.queue_audit(request).await
    }
}

#[async_trait]
impl Registry for Broken {
    async fn queue_register(&self, mut request: RegisterQueue) -> Result<QueueReply> {
        if self.fault == Fault::StaleCounts {
            let mut limits = self.limits.lock().expect("no panic while locked");
            limits.insert(request.name.clone(), std::mem::take(&mut request.limits));
        }
        self.inner.queue_register(request).await
    }

    async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply> {
        self.inner.queue_update(request).await
    }

    async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool> {
        self.inner.queue_delete(app, name).await
    }

    async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>> {
        self.inner.queue_list(app).await
    }

    async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        self.inner.version_register(app, version).await
    }

    async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        self.inner.version_promote(app, version).await
    }

    async fn version_list(&self, app: &AppName) -> Result<Vec<Version>> {
        self.inner.version_list(app).await
    }
}

/// What makes a row enqueued that has moved on; no single effect does that to one that has ended.
fn brought_back(row: WorkflowRow, request: &Claim) -> Unit {
    let (ids, queue) = (vec![row.id.clone()], request.queue.clone());
    if row.status.after(Move::Resume).is_some() {
        return Unit::new().effect(Effect::Resume { ids, queue: Some(queue), force: true });
    }
    let token = format!("{} again", request.token);
    let mut submit = Submit::new(row.id, row.name, token, Place::queue(queue)).priority(row.priority);
    submit.app = row.app;
    Unit::new().effect(Effect::Delete { ids, children: false }).effect(submit)
}

struct Fresh {
    fault: Fault,
    memory: OnceLock<Memory>,
    trouble: Current,
}

impl Fresh {
    fn new(fault: Fault) -> Self {
        Self { fault, memory: OnceLock::new(), trouble: Current::default() }
    }
}

/// Ends the trouble of a broken store.
struct Until(Current);

impl Drop for Until {
    fn drop(&mut self) {
        self.0.lock().expect("no panic while locked").take();
    }
}

#[async_trait]
impl Backend for Fresh {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(Capability::Shared)
    }

    async fn open(&self, env: Env, clock: StoreClock) -> Result<Arc<dyn Store>> {
        let inner = match self.memory.get() {
            Some(memory) => memory.attach(env),
            None => self.memory.get_or_init(|| Memory::open(env, clock)).clone(),
        };
        Ok(Arc::new(Broken::new(inner, self.fault, self.trouble.clone())))
    }

    fn can_trouble(&self, trouble: Trouble) -> bool {
        matches!(trouble, Trouble::Fails(..))
    }

    async fn trouble(&self, trouble: Trouble) -> Lasting {
        if let Some(kind) = self.fault.answers(trouble) {
            self.trouble.lock().expect("no panic while locked").replace(kind);
            return Box::new(Until(self.trouble.clone()));
        }
        match trouble {
            Trouble::Fails(kind, method) => Box::new(self.memory.get().expect("an open store").fail(method, kind)),
            other => unreachable!("{other} was not offered"),
        }
    }
}

/// What became of these cases on a store with this fault: `None` where they hold.
fn results(fault: Fault, names: &[&str]) -> Vec<Option<String>> {
    let subject = Subject::new("broken", move || Box::new(Fresh::new(fault)));
    let all = cases();
    let result = |name: &&str| {
        let case = all.iter().find(|case| case.name() == *name).unwrap_or_else(|| panic!("there is no case {name}"));
        match case.run(&subject) {
            Ok(Verdict::Passed) => None,
            Ok(Verdict::Skipped(lacking)) => panic!("{name} needs {lacking}"),
            Err(text) => Some(text),
        }
    };
    names.iter().map(result).collect()
}

/// Runs of a case in which a fault has to be met.
const RACES: u32 = 8;

/// Cases that no fault here touches.
const UNTOUCHED: &[&str] = &[
    "workflows::a_direct_start_is_pending_at_once",
    "workflows::a_cancel_ends_what_has_not_ended",
    "units::a_refused_unit_leaves_the_others_done",
    "fence::a_cancel_voids_it",
    "claim::a_claim_makes_a_row_its_executor_s",
    "limits::a_full_fleet_takes_nothing",
    "limits::a_window_leaves_out_its_first_moment",
    "order::within_a_millisecond_the_id_decides",
    "lease::a_take_over_enqueues_the_executor_s_rows",
];

/// On a store with this fault each of these cases fails, and the untouched ones hold; without a fault all hold.
fn is_noticed_by(fault: Fault, names: &[&str]) {
    for name in names {
        // A busy machine may keep a race from being met, in one run of its case or in two.
        let noticed = (0..RACES).any(|_| results(fault, &[name])[0].is_some());
        assert!(noticed, "{fault:?} is not noticed by {name}");
    }
    for (name, result) in UNTOUCHED.iter().zip(results(fault, UNTOUCHED)) {
        assert_eq!(result, None, "{fault:?} breaks {name}, which is not about it");
    }
    for (name, result) in names.iter().zip(results(Fault::Honest, names)) {
        assert_eq!(result, None, "{name} fails without a fault");
    }
}

#[test]
fn stale_counts_are_noticed() {
    let names = [
        "seeds::seed_s1_two_claims_at_once_overfill_no_fleet",
        "seeds::seed_s4_two_claims_at_once_exceed_no_rate",
        "isolation::a_random_history_keeps_to_its_fleet",
        "isolation::a_random_history_keeps_to_its_rate",
        "isolation::a_random_history_of_two_processes_keeps_to_its_fleet",
    ];
    is_noticed_by(Fault::StaleCounts, &names);
}

#[test]
fn a_flip_without_a_second_look_is_noticed() {
    let names = [
        "isolation::no_row_is_claimed_twice",
        "isolation::no_row_of_two_processes_is_claimed_twice",
        "isolation::a_cancel_at_the_side_of_a_claim_is_not_undone",
        "isolation::a_random_history_has_an_order",
    ];
    is_noticed_by(Fault::NoSecondLook, &names);
}

#[test]
fn an_outcome_without_a_fence_is_noticed() {
    let names = [
        "fence::a_late_outcome_does_not_touch_the_next_execution",
        "fence::a_resumed_row_does_not_go_back_to_an_earlier_one",
        "fence::a_repeat_that_takes_its_row_again_has_another_one",
        "fence::an_invented_one_is_void",
        "seeds::seed_s8_a_resume_of_a_running_row_leaves_one_execution",
    ];
    is_noticed_by(Fault::UnfencedOutcome, &names);
}

#[test]
fn a_claim_that_forgets_its_token_is_noticed() {
    let names = [
        "claim::a_repeat_answers_the_same_rows",
        "claim::a_repeat_takes_no_others",
        "claim::a_repeat_brings_inputs_and_steps",
        "claim::a_repeat_is_answered_on_a_full_queue",
        "limits::a_repeat_is_no_start",
        "order::a_repeat_is_in_order",
        "drops::a_dropped_claim_can_be_repeated",
        "seeds::seed_s6_a_claim_whose_answer_was_lost_is_found_again",
    ];
    is_noticed_by(Fault::ForgottenToken, &names);
}

#[test]
fn a_half_written_commit_without_space_is_noticed() {
    is_noticed_by(Fault::HalfWithoutSpace, &["errors::a_commit_without_space_writes_nothing"]);
}

#[test]
fn a_claim_that_takes_rows_while_unavailable_and_forgets_them_is_noticed() {
    let names = ["errors::an_unavailable_claim_is_whole_or_nothing", "claim::a_repeat_answers_the_same_rows"];
    is_noticed_by(Fault::TakenUnavailable, &names);
}

#[test]
fn the_comparison_with_memory_notices_them_too() {
    let cases = ["random::claims_agree_with_memory", "random::units_of_executions_agree_with_memory"];
    assert!(results(Fault::ForgottenToken, &cases[..1])[0].is_some());
    let found = results(Fault::UnfencedOutcome, &cases[1..])[0].clone().expect("a difference");
    assert!(found.contains("replay: MAINSTAY_SEED="), "{found}");
    assert_eq!(results(Fault::Honest, &cases), [None, None]);
}
