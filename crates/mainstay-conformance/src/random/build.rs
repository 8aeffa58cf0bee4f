//! From numbers to requests.

use std::time::Duration;

use mainstay_store::{
    AppName, Change, Claim, Effect, ExecutorId, Fork, Joining, Limits, Local, OnExisting, OnHeld, Outcome, Payload,
    Place, QueueChange, QueueName, Rate, Registered, StepOutput, StepRow, Submit, Token, VersionName, When, WorkflowId,
    wire,
};

use super::ops::{ClaimOp, EffectOp, IDS, LimitsOp, PlaceOp, StepOp, SubmitOp};

/// `w0` …, and one that nobody makes.
pub(crate) fn id(n: u8) -> WorkflowId {
    if n < IDS { format!("w{n}").into() } else { "nobody".into() }
}

/// Two registered ones and more, the internal one last.
pub(crate) fn queue(n: u8) -> QueueName {
    if n == 3 { wire::INTERNAL_QUEUE.into() } else { format!("q{n}").into() }
}

pub(crate) fn app(n: u8) -> AppName {
    format!("a{n}").into()
}

/// `e3` has no lease at first.
pub(crate) fn executor(n: u8) -> ExecutorId {
    format!("e{n}~1").into()
}

pub(crate) fn version(n: u8) -> VersionName {
    format!("v{n}").into()
}

/// Tens of milliseconds.
fn tens(n: u8) -> Duration {
    Duration::from_millis(u64::from(n) * 10)
}

/// Odd numbers are relative; even ones, and all below zero, a stamp near the clock.
fn when(n: i8, now: mainstay_store::Timestamp) -> When {
    match u8::try_from(n) {
        Ok(n) if n % 2 == 1 => When::In(tens(n)),
        Ok(n) => When::At(now + tens(n)),
        Err(_) => When::At(now - tens(n.unsigned_abs())),
    }
}

pub(crate) fn limits(op: &LimitsOp) -> Limits {
    let rate = op.rate.map(|(starts, period)| Rate { starts: starts.into(), period: tens(period) });
    Limits {
        concurrency: op.fleet.map(u32::from),
        worker_concurrency: op.process.map(u32::from),
        rate,
        ..Limits::default()
    }
}

pub(crate) fn change(op: &LimitsOp, clear: bool) -> QueueChange {
    fn of<T>(value: Option<T>, clear: bool) -> Change<T> {
        value.map_or(if clear { Change::Clear } else { Change::Keep }, Change::Set)
    }
    let limits = limits(op);
    QueueChange {
        concurrency: of(limits.concurrency, clear),
        worker_concurrency: of(limits.worker_concurrency, clear),
        rate: of(limits.rate, clear),
        ..QueueChange::default()
    }
}

pub(crate) fn names(n: u8) -> Vec<Registered> {
    let both = vec![Registered::new("f0"), Registered { max_attempts: 2, ..Registered::new("f1") }];
    match n {
        0 => vec![Registered::new("f0")],
        1 => vec![Registered { max_attempts: 1, ..Registered::new("f0") }, Registered::new("f1")],
        2 => Vec::new(),
        _ => both,
    }
}

pub(crate) fn claim(op: &ClaimOp, token: Token) -> Claim {
    let local = Local { running: op.running.saturating_sub(1).into(), ..Local::default() };
    let (claim_bytes, row_bytes) = op.bytes.map_or((4 << 20, 256 << 10), |(claim, row)| (claim.into(), row.into()));
    Claim::new(queue(op.queue), executor(op.executor), app(op.app), version(op.version), token)
        .names(names(op.names))
        .budget(op.budget.into())
        .local(local)
        .claim_bytes(claim_bytes)
        .row_bytes(row_bytes)
}

pub(crate) fn step(op: &StepOp, effects: usize) -> StepRow {
    let text = |len: u8| Payload::from("x".repeat(len.into()));
    let output = match op.output {
        0 => StepOutput::Nothing,
        1 => StepOutput::Failure(text(9)),
        2 => StepOutput::WakeIn(tens(op.took)),
        3 if effects > 0 => StepOutput::Answer(effects - 1),
        n => StepOutput::Value(text(n)),
    };
    let row = StepRow::new(i32::from(op.at), format!("s{}", op.output), output).took(tens(op.took));
    if op.output == 4 { row.child("w0").codec("json") } else { row }
}

pub(crate) fn outcome(n: u8) -> Outcome {
    match n {
        0 => Outcome::Success("0".into()),
        1 => Outcome::Error("\"e\"".into()),
        2 => Outcome::Parked("\"p\"".into()),
        _ => Outcome::Cancelled,
    }
}

pub(crate) fn submit(op: &SubmitOp, token: Token, now: mainstay_store::Timestamp) -> Submit {
    let place = match &op.place {
        PlaceOp::Run(n) => Place::Run(executor(*n)),
        PlaceOp::Queue { queue: n, delay } => {
            Place::Queue { name: queue(*n), key: None, delay: delay.map(|delay| when(delay, now)) }
        }
    };
    let mut submit = Submit::new(id(op.id), format!("f{}", op.function), token, place).priority(op.priority.into());
    submit.dedup = op.dedup.map(|(key, join)| Joining {
        key: format!("k{key}").into(),
        on_held: if join { OnHeld::Join } else { OnHeld::Reject },
    });
    submit.timeout = op.limits.0.map(tens);
    submit.deadline = op.limits.1.map(|deadline| when(deadline, now));
    submit.parent = op.parent.map(id);
    submit.app = match op.app {
        0 => None,
        1 => Some(app(1)),
        _ => Some(app(0)),
    };
    submit.version = op.version.map(version);
    submit.input = op.input.map(|len| "x".repeat(len.into()).into());
    submit.on_existing = if op.refuse { OnExisting::Refuse } else { OnExisting::Return };
    submit
}

/// Every effect but a submit.
pub(crate) fn effect(op: &EffectOp, now: mainstay_store::Timestamp) -> Option<Effect> {
    let ids = |ids: &[u8]| ids.iter().map(|n| id(*n)).collect();
    Some(match op {
        EffectOp::Submit(_) => return None,
        EffectOp::Cancel { ids: some, children } => Effect::Cancel { ids: ids(some), children: *children },
        EffectOp::Resume { ids: some, queue: n, force } => {
            Effect::Resume { ids: ids(some), queue: n.map(queue), force: *force }
        }
        EffectOp::Delete { ids: some, children } => Effect::Delete { ids: ids(some), children: *children },
        EffectOp::Fork { source, id: copy, below, queue: n, version: v } => {
            let mut fork = Fork::new(id(*source), id(*copy), i32::from(*below));
            (fork.queue, fork.version) = (n.map(queue), v.map(version));
            fork.into()
        }
        EffectOp::GiveBack { delay, begun } => Effect::GiveBack { delay: delay.map(tens), begun: *begun },
        EffectOp::SetDelay { id: n, delay } => Effect::SetDelay { id: id(*n), delay: when(*delay, now) },
        EffectOp::Attributes { id: n, clear } => {
            Effect::Attributes { id: id(*n), json: (!clear).then(|| "{\"a\":1}".into()) }
        }
    })
}
