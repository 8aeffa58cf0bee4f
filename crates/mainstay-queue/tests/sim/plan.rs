//! What a random sequence is made of: the fleet, the queues, and the actions, as data that shrinks.

use mainstay_store::wire::INTERNAL_QUEUE;
use mainstay_store::{AppName, Limits, QueueName, Rate, VersionName, WorkflowName};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::time::Duration;

/// The queues of a sequence; only some are registered at its start.
pub(crate) const QUEUES: [&str; 4] = ["red", "green", "blue", "gray"];
/// The functions; no process ever registers the last one.
pub(crate) const NAMES: [&str; 4] = ["alpha", "beta", "gamma", "nobody"];
/// The versions of the application `shop`.
pub(crate) const VERSIONS: [&str; 2] = ["v1", "v2"];
/// The applications; no process belongs to the last one.
pub(crate) const APPS: [&str; 3] = ["shop", "depot", "absent"];
/// Executions of a row of these functions before a claim parks it.
pub(crate) const MAX_ATTEMPTS: u32 = 4;

/// One random run, whole: the same value runs the same way.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) seed: u64,
    pub(crate) fleet: Vec<Member>,
    pub(crate) queues: Vec<QueuePlan>,
    pub(crate) hints: Hints,
    pub(crate) actions: Vec<Action>,
}

/// What becomes of wakeups, and how often the store is contended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hints {
    /// All arrive, and no claim is contended.
    Kind,
    /// Some are lost, some doubled, and some claims are contended.
    Rough,
    /// None arrives.
    Silent,
}

/// One process.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) app: u8,
    pub(crate) version: u8,
    /// Bits of [`NAMES`]; the last name is never known.
    pub(crate) names: u8,
    pub(crate) max_running: u32,
    /// Share of its store calls, in hundredths, that meet each kind of fault.
    pub(crate) faults: u8,
    /// Whether it starts with the sequence.
    pub(crate) up: bool,
}

impl Member {
    pub(crate) fn app(&self) -> AppName {
        AppName::from(APPS[usize::from(self.app % 2)])
    }

    pub(crate) fn version(&self) -> VersionName {
        // Version names are unique over all applications.
        match self.app % 2 {
            0 => VersionName::from(VERSIONS[usize::from(self.version % 2)]),
            _ => VersionName::from("depot@1"),
        }
    }

    pub(crate) fn knows(&self) -> impl Iterator<Item = WorkflowName> + '_ {
        (0..3).filter(|bit| self.names & (1 << bit) != 0).map(|bit| WorkflowName::from(NAMES[bit]))
    }
}

/// Limits small enough to be met; 0 is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuePlan {
    pub(crate) concurrency: u8,
    pub(crate) worker: u8,
    pub(crate) rate: u8,
    pub(crate) period_ms: u16,
    pub(crate) polling_ms: u16,
}

impl QueuePlan {
    pub(crate) fn limits(&self) -> Limits {
        let set = |limit: u8| (limit > 0).then_some(u32::from(limit));
        let worker = match (set(self.worker), set(self.concurrency)) {
            (Some(worker), Some(fleet)) => Some(worker.min(fleet)),
            (worker, _) => worker,
        };
        let period = Duration::from_millis(u64::from(self.period_ms));
        let rate = set(self.rate).map(|starts| Rate { starts, period });
        Limits { concurrency: set(self.concurrency), worker_concurrency: worker, rate, ..Limits::default() }
    }

    pub(crate) fn polling(&self) -> Duration {
        Duration::from_millis(u64::from(self.polling_ms))
    }
}

/// A workflow to be submitted.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) queue: u8,
    pub(crate) name: u8,
    pub(crate) priority: u8,
    pub(crate) delay_ms: u16,
    pub(crate) version: u8,
    pub(crate) app: u8,
    pub(crate) dedup: u8,
    pub(crate) key: u8,
    pub(crate) timeout_ms: u16,
    pub(crate) body: Body,
}

impl New {
    pub(crate) fn queue(&self) -> QueueName {
        let queue = QUEUES.get(usize::from(self.queue % 5)).copied();
        QueueName::from(queue.unwrap_or(INTERNAL_QUEUE))
    }

    pub(crate) fn name(&self) -> WorkflowName {
        WorkflowName::from(NAMES[usize::from(self.name % 4)])
    }

    pub(crate) fn app(&self) -> Option<AppName> {
        APPS.get(usize::from(self.app % 4)).map(|app| AppName::from(*app))
    }

    /// A version belongs to one application, so that a row of the other one has none.
    pub(crate) fn version(&self) -> Option<VersionName> {
        let version = VERSIONS.get(usize::from(self.version % 4)).map(|version| VersionName::from(*version));
        version.filter(|_| self.app % 4 != 1)
    }
}

/// How an execution goes unless an action interferes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) run_ms: u16,
    pub(crate) end: End,
    /// Waits durably for its time instead of running.
    pub(crate) waits: bool,
}

/// How an execution ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Succeed,
    Fail,
    /// The task panics and nothing is written.
    Panic,
    /// The task ends and nothing is written.
    Control,
    /// The row goes back to its queue.
    GiveBack,
    /// Runs until it is told to end.
    Never,
}

/// What happens at the moment at which a claim has taken rows that are not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trap {
    Crash,
    Cancel,
    Resume,
    Delete,
    Cut,
}

/// Which call of a process meets a fault next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Claim,
    Tick,
    Commit,
    Probe,
    Audit,
    TakeOver,
}

/// How that call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fail {
    Before,
    LoseAck,
    Delay,
    Hang,
}

/// One thing that happens to the world. An [`Index`] picks among what is there at that time.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Enqueue(New),
    Batch(u8, New),
    Again(Index),
    SetDelay(Index, u16),
    Direct(u8, New),
    Advance(u32),
    End(Index, End),
    Cancel(Index),
    Resume(Index, bool),
    Delete(Index),
    Register(u8, QueuePlan),
    Update(u8, QueuePlan),
    /// A stored limit of 0, of the fleet or of each process: the queue rests.
    Pause(u8, bool),
    DeleteQueue(u8),
    Promote(u8),
    Launch(u8),
    Crash(u8, u8),
    Set(Trap),
    Cut(u8),
    Mend(u8),
    FailNext(u8, Call, Fail),
    FailReads(u8),
    Stall(u8),
    Unstall(u8),
    StopClaiming(u8),
    Shutdown(u8),
}

impl Action {
    /// Its name in the statistics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Enqueue(_) => "action: enqueue",
            Self::Batch(..) => "action: batch",
            Self::Again(_) => "action: enqueue again",
            Self::SetDelay(..) => "action: set delay",
            Self::Direct(..) => "action: direct start",
            Self::Advance(_) => "action: advance",
            Self::End(_, End::Succeed) => "action: finish",
            Self::End(_, End::Fail) => "action: fail",
            Self::End(_, End::Panic) => "action: panic",
            Self::End(_, End::Control | End::Never) => "action: control end",
            Self::End(_, End::GiveBack) => "action: give back",
            Self::Cancel(_) => "action: cancel",
            Self::Resume(_, false) => "action: resume",
            Self::Resume(_, true) => "action: forced resume",
            Self::Delete(_) => "action: delete",
            Self::Register(..) => "action: register queue",
            Self::Update(..) => "action: update queue",
            Self::Pause(..) => "action: pause queue",
            Self::DeleteQueue(_) => "action: delete queue",
            Self::Promote(_) => "action: promote version",
            Self::Launch(_) => "action: launch",
            Self::Crash(..) => "action: crash",
            Self::Set(_) => "action: set a trap",
            Self::Cut(_) => "action: false dead",
            Self::Mend(_) => "action: mend",
            Self::FailNext(..) => "action: fail the next call",
            Self::FailReads(_) => "action: fail reads",
            Self::Stall(_) => "action: stall the launcher",
            Self::Unstall(_) => "action: unstall the launcher",
            Self::StopClaiming(_) => "action: stop claiming",
            Self::Shutdown(_) => "action: shut down",
        }
    }
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        8 => Just(End::Succeed),
        2 => Just(End::Fail),
        1 => Just(End::Panic),
        1 => Just(End::Control),
        1 => Just(End::GiveBack),
        1 => Just(End::Never),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let run_ms = prop_oneof![2 => Just(0u16), 5 => 1..400u16, 3 => 400..4000u16];
    (run_ms, end(), prop::bool::weighted(0.15)).prop_map(|(run_ms, end, waits)| Body { run_ms, end, waits })
}

fn new() -> impl Strategy<Value = New> {
    let name = prop_oneof![14 => 0..3u8, 1 => Just(3u8)];
    let delay_ms = prop_oneof![4 => Just(0u16), 1 => 1..3000u16];
    let version = prop_oneof![2 => 0..2u8, 4 => Just(3u8)];
    // 3 is no application.
    let app = prop_oneof![6 => Just(0u8), 1 => Just(1u8), 3 => Just(3u8), 1 => Just(2u8)];
    let dedup = prop_oneof![5 => Just(0u8), 1 => 1..3u8];
    let key = prop_oneof![2 => Just(0u8), 1 => 1..4u8];
    let timeout_ms = prop_oneof![9 => Just(0u16), 1 => 500..20_000u16];
    let queue = prop_oneof![12 => 0..4u8, 1 => Just(4u8)];
    (queue, name, 0..4u8, delay_ms, version, app, (dedup, key), timeout_ms, body()).prop_map(
        |(queue, name, priority, delay_ms, version, app, (dedup, key), timeout_ms, body)| New {
            queue,
            name,
            priority,
            delay_ms,
            version,
            app,
            dedup,
            key,
            timeout_ms,
            body,
        },
    )
}

fn queue_plan() -> impl Strategy<Value = QueuePlan> {
    let limit = || prop_oneof![2 => Just(0u8), 3 => 1..4u8];
    let rate = prop_oneof![3 => Just(0u8), 2 => 1..4u8];
    (limit(), limit(), rate, 50..3000u16, 200..3000u16).prop_map(
        |(concurrency, worker, rate, period_ms, polling_ms)| QueuePlan {
            concurrency,
            worker,
            rate,
            period_ms,
            polling_ms,
        },
    )
}

fn member() -> impl Strategy<Value = Member> {
    let app = prop_oneof![5 => Just(0u8), 1 => Just(1u8)];
    let names = prop_oneof![3 => Just(7u8), 1 => 1..8u8];
    let max_running = prop_oneof![3 => Just(1024u32), 1 => 1..6u32];
    let faults = prop_oneof![3 => Just(0u8), 2 => 1..5u8];
    (app, 0..2u8, names, max_running, faults, prop::bool::weighted(0.8)).prop_map(
        |(app, version, names, max_running, faults, up)| Member { app, version, names, max_running, faults, up },
    )
}

fn trap() -> impl Strategy<Value = Trap> {
    prop_oneof![
        3 => Just(Trap::Crash),
        2 => Just(Trap::Cancel),
        2 => Just(Trap::Resume),
        2 => Just(Trap::Delete),
        1 => Just(Trap::Cut),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => Just(Call::Claim),
        1 => Just(Call::Tick),
        3 => Just(Call::Commit),
        1 => Just(Call::Probe),
        1 => Just(Call::Audit),
        1 => Just(Call::TakeOver),
    ]
}

fn failure() -> impl Strategy<Value = Fail> {
    prop_oneof![2 => Just(Fail::Before), 5 => Just(Fail::LoseAck), 1 => Just(Fail::Delay), 1 => Just(Fail::Hang)]
}

/// One action; those that make work are the most frequent.
pub(crate) fn action() -> impl Strategy<Value = Action> {
    let at = any::<Index>;
    let short = prop_oneof![3 => 0..20u32, 5 => 20..1500u32, 1 => 1500..15_000u32];
    let work = prop_oneof![
        14 => new().prop_map(Action::Enqueue),
        3 => (2..8u8, new()).prop_map(|(count, new)| Action::Batch(count, new)),
        1 => at().prop_map(Action::Again),
        1 => (at(), 0..4000u16).prop_map(|(at, delay)| Action::SetDelay(at, delay)),
        2 => (0..4u8, new()).prop_map(|(process, new)| Action::Direct(process, new)),
    ];
    let runs = prop_oneof![
        3 => (at(), end()).prop_map(|(at, end)| Action::End(at, end)),
        1 => at().prop_map(Action::Cancel),
        2 => (at(), any::<bool>()).prop_map(|(at, forced)| Action::Resume(at, forced)),
        1 => at().prop_map(Action::Delete),
    ];
    let registry = prop_oneof![
        3 => (0..4u8, queue_plan()).prop_map(|(queue, plan)| Action::Register(queue, plan)),
        3 => (0..4u8, queue_plan()).prop_map(|(queue, plan)| Action::Update(queue, plan)),
        1 => (0..4u8, any::<bool>()).prop_map(|(queue, fleet)| Action::Pause(queue, fleet)),
        1 => (0..4u8).prop_map(Action::DeleteQueue),
        1 => (0..2u8).prop_map(Action::Promote),
    ];
    let faults = prop_oneof![
        3 => (0..4u8).prop_map(Action::Launch),
        2 => (0..4u8, 0..40u8).prop_map(|(process, polls)| Action::Crash(process, polls)),
        5 => trap().prop_map(Action::Set),
        1 => (0..4u8).prop_map(Action::Cut),
        2 => (0..4u8).prop_map(Action::Mend),
        5 => (0..4u8, call(), failure()).prop_map(|(process, call, fail)| Action::FailNext(process, call, fail)),
        1 => (0..4u8).prop_map(Action::FailReads),
        1 => (0..4u8).prop_map(Action::Stall),
        2 => (0..4u8).prop_map(Action::Unstall),
        1 => (0..4u8).prop_map(Action::StopClaiming),
        1 => (0..4u8).prop_map(Action::Shutdown),
    ];
    prop_oneof![10 => work, 7 => short.prop_map(Action::Advance), 3 => runs, 2 => registry, 4 => faults]
}

/// Sequences of exactly `length` actions. Shrinking switches actions off first, then makes the rest smaller.
pub(crate) fn sequence(length: usize) -> impl Strategy<Value = Sequence> {
    let hints = prop_oneof![2 => Just(Hints::Kind), 2 => Just(Hints::Rough), 1 => Just(Hints::Silent)];
    let on = vec(prop::bool::weighted(1.0), length);
    let world = (any::<u64>().no_shrink(), vec(member(), 2..=4), vec(queue_plan(), 1..=4), hints);
    (on, world, vec(action(), length)).prop_map(|(on, (seed, fleet, queues, hints), actions)| {
        let actions = on.into_iter().zip(actions).filter_map(|(on, action)| on.then_some(action)).collect();
        Sequence { seed, fleet, queues, hints, actions }
    })
}
