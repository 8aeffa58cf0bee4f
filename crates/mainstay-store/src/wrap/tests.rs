//! Tests of the wrappers over a scripted store, in virtual time.

mod double;

use std::sync::Arc;
use std::time::Duration;

use mainstay_env::Sim;

use super::call::Layer;
use super::wrapped::Wrapped;
use super::*;
use crate::contract::*;
use crate::error::{ErrorKind, Result, StoreError};
use crate::model::{Outcome, Position};
use crate::unit::{Effect, Submit, Unit, UnitReply};
use crate::{Fence, Place, Timestamp};
use double::Double;

fn tick() -> Tick {
    Tick::new("shop")
}

fn claim() -> Claim {
    Claim::new("q", "a~1", "shop", "v1", "token")
}

fn repeatable(id: &str) -> Unit {
    Unit::new().effect(Submit::new(id, "work", "token", Place::queue("q")))
}

fn unrepeatable() -> Unit {
    Unit::new().effect(Effect::Rewind { id: "w".into(), below: Position(0) })
}

fn kind<T>(answer: Result<T>) -> Option<ErrorKind> {
    answer.err().map(|error| error.kind())
}

#[test]
fn a_lost_answer_is_asked_for_three_times_within_two_seconds() {
    for failures in 0..6u32 {
        let sim = Sim::new(u64::from(failures));
        let double = Double::failing(&sim, failures, ErrorKind::Unavailable);
        let store = WithRetry::new(double.clone());
        let begun = sim.clock().clone();
        let before = mainstay_env::Clock::monotonic(&begun);
        let answer = sim.block_on(async move { store.tick(tick()).await });
        let took = mainstay_env::Clock::monotonic(&begun).since(before);
        assert_eq!(answer.is_ok(), failures <= 3, "{failures} failures");
        assert_eq!(double.calls("tick"), (failures + 1).min(4));
        assert!(took <= Duration::from_secs(2), "{took:?}");
    }
}

#[test]
fn no_repeat_begins_two_seconds_after_the_first_failure() {
    // How long a failure takes, and how many calls that leaves: one repeat at least, as a lost connection needs.
    for (millis, calls) in [(0, 4), (50, 4), (1_000, 3), (1_900, 2), (25_000, 2)] {
        let sim = Sim::new(millis);
        let by = Duration::from_millis(millis);
        let double = Double::patient(&sim, by);
        let store = WithRetry::new(double.clone());
        let clock = sim.clock().clone();
        let before = mainstay_env::Clock::monotonic(&clock);
        let answer = sim.block_on(async move { store.tick(tick()).await });
        assert_eq!((kind(answer), double.calls("tick")), (Some(ErrorKind::Unavailable), calls), "{by:?}");
        let took = mainstay_env::Clock::monotonic(&clock).since(before);
        assert!(took <= 2 * by + Duration::from_secs(2), "{by:?} took {took:?}");
    }
}

#[test]
fn no_other_failure_is_repeated() {
    let kinds = [ErrorKind::Contended, ErrorKind::Timeout, ErrorKind::Denied, ErrorKind::Invalid, ErrorKind::Bug];
    for wanted in kinds {
        let sim = Sim::new(1);
        let double = Double::failing(&sim, 1, wanted);
        let store = WithRetry::new(double.clone());
        assert_eq!(kind(sim.block_on(async move { store.tick(tick()).await })), Some(wanted));
        assert_eq!(double.calls("tick"), 1, "{wanted}");
    }
}

#[test]
fn a_claim_sent_again_says_so() {
    let sim = Sim::new(1);
    let double = Double::failing(&sim, 2, ErrorKind::Unavailable);
    let store = WithRetry::new(double.clone());
    sim.block_on(async move { store.queue_claim(claim()).await }).expect("claimed");
    assert_eq!(double.repeats(), [false, true, true]);
}

#[test]
fn of_a_batch_only_repeatable_units_are_sent_again() {
    let sim = Sim::new(1);
    let double = Double::failing(&sim, 1, ErrorKind::Unavailable);
    let store = WithRetry::new(double.clone());
    let batch = [repeatable("a"), unrepeatable(), repeatable("b")];
    let sent = batch.clone();
    let units = sim.block_on(async move { store.commit(&sent).await }).expect("committed").units;
    let replies: Vec<UnitReply> = units.into_iter().map(|unit| unit.expect("answered")).collect();
    assert_eq!(replies, [UnitReply::done(), UnitReply::Unknown, UnitReply::done()]);
    assert_eq!(double.batches(), [batch.to_vec(), vec![repeatable("a"), repeatable("b")]]);
}

#[test]
fn a_batch_of_unrepeatable_units_is_sent_once() {
    let sim = Sim::new(1);
    let double = Double::failing(&sim, 1, ErrorKind::Unavailable);
    let store = WithRetry::new(double.clone());
    let answer = sim.block_on(async move { store.commit(&[unrepeatable()]).await });
    assert_eq!((kind(answer), double.calls("commit")), (Some(ErrorKind::Unavailable), 1));
}

#[test]
fn a_call_past_its_deadline_fails_and_runs_on() {
    let sim = Sim::new(1);
    let double = Double::slow(&sim, Duration::from_secs(45));
    let store = WithDeadline::new(double.clone());
    let answer = sim.block_on(async move { store.tick(tick()).await });
    assert_eq!((kind(answer), double.calls("tick")), (Some(ErrorKind::Timeout), 0));
    sim.advance(Duration::from_secs(16));
    assert_eq!(double.calls("tick"), 1);
}

#[test]
fn a_call_within_its_deadline_is_answered() {
    let sim = Sim::new(1);
    let store = WithDeadline::new(Double::slow(&sim, Duration::from_secs(29)));
    assert!(sim.block_on(async move { store.tick(tick()).await }).is_ok());
}

#[test]
fn a_caller_that_goes_away_leaves_a_whole_call() {
    let sim = Sim::new(1);
    let double = Double::slow(&sim, Duration::from_secs(5));
    let store = WithDeadline::new(double.clone());
    let env = sim.env("caller");
    let gone = sim.block_on(async move { env.timeout(Duration::from_secs(1), store.tick(tick())).await.is_err() });
    assert!(gone);
    sim.advance(Duration::from_secs(5));
    assert_eq!(double.calls("tick"), 1);
}

#[test]
fn each_fault_does_what_it_says() {
    let cases = [
        (Fault::Before, 0, Some(ErrorKind::Unavailable)),
        (Fault::After, 1, Some(ErrorKind::Unavailable)),
        (Fault::Delay, 1, None),
    ];
    for (fault, executed, failure) in cases {
        let sim = Sim::new(1);
        let double = Double::failing(&sim, 0, ErrorKind::Bug);
        let (store, faults) = WithFaults::new(double.clone(), FaultPlan::new(1));
        faults.next(Method::Tick, fault);
        let twice = store.clone();
        assert_eq!(kind(sim.block_on(async move { store.tick(tick()).await })), failure, "{fault:?}");
        assert_eq!((double.calls("tick"), faults.count(Method::Tick, fault)), (executed, 1), "{fault:?}");
        assert!(sim.block_on(async move { twice.tick(tick()).await }).is_ok(), "the next call is spared");
    }
}

#[test]
fn a_hanging_call_is_ended_by_the_deadline_alone() {
    let sim = Sim::new(1);
    let double = Double::failing(&sim, 0, ErrorKind::Bug);
    let (store, faults) = with_faults(double, FaultPlan::new(1));
    faults.next(Method::Tick, Fault::Hang);
    assert_eq!(kind(sim.block_on(async move { store.tick(tick()).await })), Some(ErrorKind::Timeout));
    assert_eq!(faults.total(Fault::Hang), 1);
}

#[test]
fn faults_come_at_their_rates_and_by_their_seed() {
    let run = |seed: u64, on: bool| {
        let sim = Sim::new(9);
        let plan = FaultPlan::new(seed).on(Method::Tick, Rates { before: 0.2, after: 0.1, ..Rates::default() });
        let (store, faults) = WithFaults::new(Double::failing(&sim, 0, ErrorKind::Bug), plan);
        if !on {
            faults.stop();
        }
        let answers: Vec<bool> = sim.block_on(async move {
            let mut answers = Vec::new();
            for _ in 0..2000 {
                answers.push(store.tick(tick()).await.is_ok());
                assert!(store.lease_list(&"shop".into()).await.is_ok(), "another method is spared");
            }
            answers
        });
        (answers, faults.total(Fault::Before), faults.total(Fault::After))
    };
    let (answers, before, after) = run(7, true);
    assert!((300..500).contains(&before) && (120..280).contains(&after), "{before} {after}");
    assert_eq!(run(7, true).0, answers);
    assert_ne!(run(8, true).0, answers);
    assert_eq!((run(7, false).1, run(7, false).2), (0, 0));
}

/// A layer that only notes what passes.
#[derive(Debug, Default)]
struct Note(std::sync::Mutex<Vec<Method>>);

#[async_trait::async_trait]
impl Layer for Note {
    async fn around<T: Send + 'static>(&self, call: super::call::Call<T>) -> Result<T> {
        self.0.lock().expect("notes").push(call.method);
        call.first().await
    }
}

async fn call_all(s: &dyn Store) -> Vec<StoreError> {
    let (app, queue, version, id) = ("shop".into(), "q".into(), "v1".into(), "w".into());
    let change = crate::QueueChange::default();
    let ids = [crate::WorkflowId::from("w")];
    let calls = [
        s.commit(&[Unit::new()]).await.err(),
        s.workflow_standing(&ids).await.err(),
        s.workflow_rows(&ids).await.err(),
        s.workflow_steps(ReadSteps::new("w")).await.err(),
        s.workflow_input(&id).await.err(),
        s.workflow_holder(&queue, &"d".into()).await.err(),
        s.queue_claim(claim()).await.err(),
        s.queue_probe(Probe::new("shop", "v1")).await.err(),
        s.queue_audit(Audit::new("a~1")).await.err(),
        s.queue_register(RegisterQueue::new("q", "shop")).await.err(),
        s.queue_update(UpdateQueue::new("q", "shop", change)).await.err(),
        s.queue_delete(&app, &queue).await.err(),
        s.queue_list(&app).await.err(),
        s.version_register(&app, &version).await.err(),
        s.version_promote(&app, &version).await.err(),
        s.version_list(&app).await.err(),
        s.lease_beat(Beat::new("a~1", "shop", 1u64)).await.err(),
        s.lease_list(&app).await.err(),
        s.lease_take_over(TakeOver::new("a~1", 1u64)).await.err(),
        s.tick(tick()).await.err(),
        s.collect(Collect::new("shop", Duration::ZERO)).await.err(),
        s.message_peek(&id, None).await.err(),
        s.event_get(&id, &"k".into()).await.err(),
        s.stream_read(&id, &"k".into(), 0).await.err(),
        s.schedule_get(&"s".into()).await.err(),
        s.schedule_list(&app).await.err(),
        s.workflow_list(WorkflowFilter::new()).await.err(),
        s.workflow_aggregate(Aggregate::new(WorkflowFilter::new())).await.err(),
        s.workflow_export(&ids).await.err(),
        s.workflow_import(&[]).await.err(),
    ];
    calls.into_iter().map(|error| error.expect("the double refuses")).collect()
}

#[test]
fn every_method_passes_through_the_layer_to_its_own_method() {
    let sim = Sim::new(1);
    let store = Arc::new(Wrapped { inner: Double::refusing(&sim), layer: Note::default() });
    let seen = store.clone();
    let errors = sim.block_on(async move { call_all(&*store).await });
    let noted = seen.layer.0.lock().expect("notes").clone();
    assert_eq!(noted, Method::ALL);
    let names: Vec<&str> = errors.iter().map(StoreError::op).collect();
    assert_eq!(names, Method::ALL.iter().map(|method| method.name()).collect::<Vec<_>>());
}

#[test]
fn every_method_past_its_deadline_times_out_by_its_own_name() {
    let sim = Sim::new(1);
    let store = WithDeadline::new(Double::slow(&sim, Duration::from_secs(45)));
    let errors = sim.block_on(async move { call_all(&*store).await });
    let found: Vec<_> = errors.iter().map(|error| (error.kind(), error.op())).collect();
    assert_eq!(found, Method::ALL.iter().map(|method| (ErrorKind::Timeout, method.name())).collect::<Vec<_>>());
}

#[test]
fn the_standard_stack_survives_a_lost_answer() {
    let sim = Sim::new(1);
    let double = Double::failing(&sim, 0, ErrorKind::Bug);
    let (store, faults) = with_faults(double.clone(), FaultPlan::new(1));
    faults.next(Method::Commit, Fault::After);
    let unit = Unit::by(&Fence::issue("w".into(), "t")).outcome(Outcome::Cancelled);
    let units = sim.block_on(async move { store.commit(&[unit]).await }).expect("committed").units;
    assert_eq!((units.len(), double.calls("commit")), (1, 2));
}

fn now() -> Timestamp {
    Timestamp::from_millis(1)
}
