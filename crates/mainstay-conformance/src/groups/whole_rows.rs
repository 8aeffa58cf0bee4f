//! Group `workflows`: what a move does not name stays. Every move, on a row that has every field.

use mainstay_store::{
    Caller, Claim, Effect, EffectReply, Fence, Fork, Limits, Outcome, Place, Rate, Registered, Standing, Status,
    StepOutput, StepRow, Submit, Unit, When, WorkflowRow, wire,
};

use crate::desk::{APP, Desk, E1, E2, Q, V1, WORK, ids, ms, success};

cases! { "workflows";
    a_delayed_submit_keeps_every_field;
    a_direct_start_keeps_every_field;
    a_release_keeps_every_other_field;
    a_claim_keeps_every_other_field;
    an_outcome_keeps_every_other_field;
    a_cancel_keeps_every_other_field;
    a_passed_deadline_keeps_every_other_field;
    parking_at_a_claim_keeps_every_other_field;
    a_resume_keeps_every_other_field;
    a_give_back_keeps_every_other_field;
    a_give_back_for_later_keeps_every_other_field;
    a_give_back_of_a_start_keeps_every_other_field;
    a_take_over_keeps_every_other_field;
    a_give_back_with_a_delay_of_0_is_delayed;
    a_change_of_delay_or_attributes_keeps_every_other_field;
    a_claim_keeps_where_a_fork_is_from;
    a_fork_takes_no_other_field;
    a_fork_copies_steps_whole;
    a_fork_is_nobody_s_submit;
    a_cancel_and_a_resume_keep_input_and_steps;
}

const HOUR: u64 = 3_600_000;

/// A submit with every field that goes together with a partition key.
fn every(d: &Desk, id: &str, place: Place) -> Submit {
    let caller = Caller { user: Some("ann".into()), role: Some("r".into()), roles: vec!["r".into(), "s".into()] };
    Submit::new(id, WORK, d.token(), place)
        .app(APP)
        .class("Class")
        .config("config")
        .codec("json")
        .parent("p")
        .schedule("nightly")
        .version(V1)
        .timeout(ms(60_000))
        .deadline(ms(HOUR))
        .attributes("{\"a\":1}")
        .priority(4)
        .caller(caller)
        .input("[1]")
}

fn later(millis: u64) -> Place {
    Place::Queue { name: Q.into(), key: Some("k".into()), delay: Some(ms(millis).into()) }
}

/// The row that [`every`] makes, as far as the place does not decide.
fn made(d: &Desk, id: &str, status: Status) -> WorkflowRow {
    let Submit { caller, attributes, .. } = every(d, id, later(0));
    let mut row = WorkflowRow::new(id, WORK, status, d.now(), d.now())
        .app(APP)
        .class("Class")
        .config("config")
        .codec("json")
        .parent("p")
        .schedule("nightly")
        .version(V1)
        .timeout(ms(60_000))
        .deadline(d.now() + ms(HOUR))
        .priority(4)
        .caller(caller);
    row.attributes = attributes;
    row
}

fn names(max_attempts: u32) -> Vec<Registered> {
    let (class, config) = (Some("Class".into()), Some("config".into()));
    vec![Registered { class, config, max_attempts, ..Registered::new(WORK) }]
}

fn claim(d: &Desk) -> Claim {
    d.claim().names(names(9))
}

/// A delayed row with every field, the source of a fork, on a queue with a rate; it is due in 10 ms.
async fn delayed(d: &Desk, id: &str) -> WorkflowRow {
    let rate = Some(Rate { starts: 100, period: ms(1_000) });
    d.register(Q, Limits { rate, ..Limits::default() }).await;
    d.put(every(d, id, later(10))).await;
    d.done(Unit::new().effect(Fork::new(id, format!("copy of {id}"), 0).queue("aside"))).await;
    d.row(id).await
}

/// The same one, released.
async fn enqueued(d: &Desk, id: &str) -> WorkflowRow {
    delayed(d, id).await;
    d.pass(10);
    d.tick().await;
    d.row(id).await
}

/// The same one, claimed.
async fn running(d: &Desk, id: &str) -> (WorkflowRow, Fence) {
    enqueued(d, id).await;
    d.pass(10);
    let claimed = d.take(claim(d)).await.rows.remove(0);
    (claimed.row, claimed.fence)
}

/// The row as it stands is this one, moved just now.
async fn is(d: &Desk, mut expected: WorkflowRow, status: Status) {
    (expected.status, expected.updated_at) = (status, d.now());
    assert_eq!(d.row(expected.id.as_str()).await, expected);
}

async fn a_delayed_submit_keeps_every_field(d: &Desk) {
    d.put(every(d, "w", later(10))).await;
    let expected = made(d, "w", Status::Delayed).queue(Q).key("k").delay_until(d.now() + ms(10));
    assert_eq!(d.row("w").await, expected);
}

async fn a_direct_start_keeps_every_field(d: &Desk) {
    d.put(every(d, "w", Place::Run(E1.into()))).await;
    let expected = made(d, "w", Status::Pending).executor(E1).started_at(d.now()).attempts(1);
    assert_eq!(d.row("w").await, expected);
    assert_eq!(d.store().workflow_input(&"w".into()).await.expect("read"), Some("[1]".into()));
}

async fn a_release_keeps_every_other_field(d: &Desk) {
    let before = delayed(d, "w").await;
    assert!(before.was_forked, "{before:?}");
    d.pass(500);
    d.tick().await;
    is(d, before, Status::Enqueued).await;
}

async fn a_claim_keeps_every_other_field(d: &Desk) {
    let mut expected = enqueued(d, "w").await;
    d.pass(500);
    d.take(claim(d)).await;
    (expected.executor, expected.attempts) = (Some(E1.into()), 1);
    (expected.started_at, expected.rate_limited) = (Some(d.now()), true);
    is(d, expected, Status::Pending).await;
}

async fn an_outcome_keeps_every_other_field(d: &Desk) {
    for outcome in [success("end"), Outcome::Error("\"end\"".into()), Outcome::Parked("\"end\"".into())] {
        let status = outcome.status();
        let (mut expected, fence) = running(d, status.as_str()).await;
        d.pass(500);
        d.settle(&fence, outcome).await;
        expected.completed_at = Some(d.now());
        if status == Status::Parked {
            (expected.queue, expected.started_at) = (None, None);
        }
        is(d, expected, status).await;
    }
}

/// The row as it was, set aside just now.
async fn is_set_aside(d: &Desk, mut expected: WorkflowRow, status: Status) {
    (expected.queue, expected.started_at, expected.completed_at) = (None, None, Some(d.now()));
    is(d, expected, status).await;
}

async fn a_cancel_keeps_every_other_field(d: &Desk) {
    let (_, fence) = running(d, "parked").await;
    d.settle(&fence, Outcome::Parked("\"end\"".into())).await;
    let parked = d.row("parked").await;
    let running = running(d, "running").await.0;
    let enqueued = enqueued(d, "enqueued").await;
    let delayed = delayed(d, "delayed").await;
    d.pass(500);
    for before in [parked, running, enqueued, delayed] {
        let id = before.id.as_str().to_owned();
        assert_eq!(d.cancel(&id).await, [id]);
        is_set_aside(d, before, Status::Cancelled).await;
    }
}

async fn a_passed_deadline_keeps_every_other_field(d: &Desk) {
    let before = [running(d, "running").await.0, enqueued(d, "enqueued").await];
    d.pass(HOUR);
    assert_eq!(d.tick().await.cancelled, ids(&["enqueued", "running"]));
    for row in before {
        is_set_aside(d, row, Status::Cancelled).await;
    }
}

async fn parking_at_a_claim_keeps_every_other_field(d: &Desk) {
    let (_, fence) = running(d, "w").await;
    d.give_back(&fence).await;
    let before = d.row("w").await;
    d.pass(500);
    assert_eq!(d.take(d.claim_by(E2).names(names(1))).await.parked, ids(&["w"]));
    is_set_aside(d, before, Status::Parked).await;
}

async fn a_resume_keeps_every_other_field(d: &Desk) {
    let mut rows = Vec::new();
    for outcome in [Outcome::Cancelled, Outcome::Parked("\"end\"".into())] {
        let id = outcome.status().as_str();
        let (_, fence) = running(d, id).await;
        d.settle(&fence, outcome).await;
        rows.push(d.row(id).await);
    }
    rows.push(running(d, "running").await.0);
    rows.push(enqueued(d, "enqueued").await);
    rows.push(delayed(d, "delayed").await);
    d.pass(500);
    for mut expected in rows {
        let id = expected.id.as_str().to_owned();
        let resume = Effect::Resume { ids: ids(&[&id]), queue: Some("other".into()), force: true };
        assert_eq!(d.moved(resume).await, [id]);
        (expected.queue, expected.attempts, expected.deadline) = (Some("other".into()), 0, None);
        (expected.started_at, expected.completed_at) = (None, None);
        is(d, expected, Status::Enqueued).await;
    }
}

/// A row is on its queue again, and nothing but its start is gone.
async fn is_back(d: &Desk, mut expected: WorkflowRow) {
    expected.started_at = None;
    is(d, expected, Status::Enqueued).await;
}

async fn a_give_back_keeps_every_other_field(d: &Desk) {
    let (expected, fence) = running(d, "w").await;
    d.pass(500);
    d.give_back(&fence).await;
    is_back(d, expected).await;
}

async fn a_give_back_for_later_keeps_every_other_field(d: &Desk) {
    let (mut expected, fence) = running(d, "w").await;
    d.pass(500);
    d.done(Unit::by(&fence).effect(Effect::GiveBack { delay: Some(ms(70)), begun: true })).await;
    (expected.started_at, expected.delay_until) = (None, Some(d.now() + ms(70)));
    is(d, expected.clone(), Status::Delayed).await;
    d.pass(70);
    d.tick().await;
    is(d, expected, Status::Enqueued).await;
}

async fn a_give_back_of_a_start_keeps_every_other_field(d: &Desk) {
    let fence = d.put(every(d, "w", Place::Run(E1.into()))).await.fence.expect("a fence");
    let expected = d.row("w").await.queue(wire::INTERNAL_QUEUE);
    d.pass(500);
    d.give_back(&fence).await;
    is_back(d, expected).await;
}

async fn a_take_over_keeps_every_other_field(d: &Desk) {
    let (expected, _) = running(d, "w").await;
    d.pass(500);
    assert_eq!(d.take_over(E1).await, ["w"]);
    is_back(d, expected).await;
}

async fn a_give_back_with_a_delay_of_0_is_delayed(d: &Desk) {
    let fence = d.claimed("w").await;
    d.pass(500);
    d.done(Unit::by(&fence).effect(Effect::GiveBack { delay: Some(ms(0)), begun: true })).await;
    let row = d.row("w").await;
    assert_eq!((row.status, row.delay_until, d.take_ids(d.claim()).await), (Status::Delayed, Some(d.now()), vec![]));
    assert_eq!(d.tick().await.released, [Q]);
}

/// Neither is a move, so the time of the last move stays too.
async fn a_change_of_delay_or_attributes_keeps_every_other_field(d: &Desk) {
    let mut expected = delayed(d, "w").await;
    d.pass(5);
    let (id, delay) = ("w".into(), When::In(ms(70)));
    let attributes = Effect::Attributes { id: "w".into(), json: None };
    d.done(Unit::new().effect(Effect::SetDelay { id, delay }).effect(attributes)).await;
    (expected.delay_until, expected.attributes) = (Some(d.now() + ms(70)), None);
    assert_eq!(d.row("w").await, expected);
}

async fn a_claim_keeps_where_a_fork_is_from(d: &Desk) {
    d.enqueue("source").await;
    d.done(Unit::new().effect(Fork::new("source", "copy", 0).queue("other"))).await;
    d.register("other", Limits::default()).await;
    let fence = d.take(d.claim_on("other")).await.rows.remove(0).fence;
    assert_eq!(d.row("copy").await.forked_from, Some("source".into()));
    d.settle(&fence, success("end")).await;
    assert_eq!(d.row("copy").await.forked_from, Some("source".into()));
}

/// Of a source that has every field, and was forked before.
async fn a_fork_takes_no_other_field(d: &Desk) {
    let (source, _) = running(d, "w").await;
    assert!(source.was_forked && source.rate_limited && source.delay_until.is_some(), "{source:?}");
    d.pass(500);
    d.done(Unit::new().effect(Fork::new("w", "copy", 0))).await;
    let mut expected = WorkflowRow::new("copy", WORK, Status::Enqueued, d.now(), d.now())
        .queue(wire::INTERNAL_QUEUE)
        .forked_from("w")
        .app(APP)
        .class("Class")
        .config("config")
        .codec("json")
        .version(V1)
        .caller(source.caller);
    expected.attributes = source.attributes;
    assert_eq!(d.row("copy").await, expected);
}

async fn a_fork_copies_steps_whole(d: &Desk) {
    let fence = d.start("w").await;
    let outputs = [
        StepOutput::Value("1".into()),
        StepOutput::Failure("2".into()),
        StepOutput::Nothing,
        StepOutput::WakeIn(ms(60_000)),
    ];
    for (at, output) in (0_i32..).zip(outputs) {
        d.pass(100);
        let row = StepRow::new(at, format!("step {at}"), output).child(format!("child {at}")).codec("json");
        d.done(Unit::by(&fence).step(row.took(ms(30)))).await;
    }
    d.pass(500);
    d.done(Unit::new().effect(Fork::new("w", "copy", 4))).await;
    let steps = d.steps("w").await;
    assert_eq!((d.steps("copy").await, steps.len()), (steps, 4));
}

/// The token of the source made another row than this one.
async fn a_fork_is_nobody_s_submit(d: &Desk) {
    let submit = d.job("w");
    d.put(submit.clone()).await;
    d.done(Unit::new().effect(Fork::new("w", "copy", 0))).await;
    let mut again = submit;
    again.id = "copy".into();
    let existing = EffectReply::Existing(Standing::Open(Status::Enqueued));
    assert_eq!(d.done(Unit::new().effect(again)).await, [existing]);
}

async fn a_cancel_and_a_resume_keep_input_and_steps(d: &Desk) {
    let (_, fence) = running(d, "w").await;
    d.record(&fence, 0, "kept").await;
    d.cancel("w").await;
    for _ in 0..2 {
        assert_eq!(d.values("w").await, [(0, "kept".to_owned())]);
        assert_eq!(d.store().workflow_input(&"w".into()).await.expect("read"), Some("[1]".into()));
        d.resume("w").await;
    }
}
