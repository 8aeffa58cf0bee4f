//! Operations as small numbers, so that a list reads well, and how lists of them are drawn.

use std::ops::Range;

use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::strategy::Union;

/// Workflows `w0` … `w11`.
pub(crate) const IDS: u8 = 12;

/// How often each kind of operation is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    pub(crate) time: u32,
    pub(crate) skew: u32,
    pub(crate) submits: u32,
    pub(crate) units: u32,
    pub(crate) batches: u32,
    pub(crate) claims: u32,
    pub(crate) leases: u32,
    pub(crate) ticks: u32,
    pub(crate) registry: u32,
    pub(crate) reads: u32,
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Pass(u16),
    Skew(i16),
    Commit(Vec<UnitOp>),
    Claim(ClaimOp),
    /// Sends an earlier claim again; counted from the latest.
    Repeat(u8),
    Beat {
        executor: u8,
        beat: u8,
    },
    TakeOver {
        executor: u8,
        ahead: u8,
        limit: u8,
        fallback: bool,
    },
    Tick {
        app: u8,
        limit: u8,
        beat: Option<(u8, u8)>,
        seen: bool,
    },
    Collect {
        app: u8,
        age: u8,
        limit: u8,
    },
    Register {
        queue: u8,
        app: u8,
        limits: LimitsOp,
        policy: u8,
    },
    Update {
        queue: u8,
        app: u8,
        limits: LimitsOp,
        clear: bool,
    },
    Unregister {
        queue: u8,
        app: u8,
    },
    Version {
        app: u8,
        version: u8,
        promote: bool,
    },
    Probe {
        app: u8,
        version: u8,
        names: u8,
    },
    Audit {
        executor: u8,
        limit: u8,
    },
    Steps {
        id: u8,
        from: u8,
        bytes: u8,
    },
    Holder {
        queue: u8,
        key: u8,
    },
    Lists(u8),
}

impl Op {
    /// Whether it leaves all rows as they are.
    pub(crate) const fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::Pass(_)
                | Self::Skew(_)
                | Self::Probe { .. }
                | Self::Audit { .. }
                | Self::Steps { .. }
                | Self::Holder { .. }
                | Self::Lists(_)
        )
    }
}

/// Concurrency, worker concurrency, and starts of a rate with its period in tens of milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct LimitsOp {
    pub(crate) fleet: Option<u8>,
    pub(crate) process: Option<u8>,
    pub(crate) rate: Option<(u8, u8)>,
}

#[derive(Clone, Debug)]
pub(crate) struct ClaimOp {
    pub(crate) queue: u8,
    pub(crate) executor: u8,
    pub(crate) app: u8,
    pub(crate) version: u8,
    pub(crate) names: u8,
    pub(crate) budget: u8,
    pub(crate) running: u8,
    pub(crate) bytes: Option<(u8, u8)>,
    /// None, the present one, or the one before.
    pub(crate) revision: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct UnitOp {
    /// One of the fences so far, counted from the latest; most are a client's.
    pub(crate) fence: Option<u8>,
    pub(crate) steps: Vec<StepOp>,
    pub(crate) effects: Vec<EffectOp>,
    pub(crate) outcome: Option<u8>,
}

#[derive(Clone, Debug)]
pub(crate) struct StepOp {
    pub(crate) at: u8,
    pub(crate) output: u8,
    pub(crate) took: u8,
}

#[derive(Clone, Debug)]
pub(crate) enum EffectOp {
    Submit(SubmitOp),
    Cancel { ids: Vec<u8>, children: bool },
    Resume { ids: Vec<u8>, queue: Option<u8>, force: bool },
    Delete { ids: Vec<u8>, children: bool },
    Fork { source: u8, id: u8, below: u8, queue: Option<u8>, version: Option<u8> },
    GiveBack { delay: Option<u8>, begun: bool },
    SetDelay { id: u8, delay: i8 },
    Attributes { id: u8, clear: bool },
}

#[derive(Clone, Debug)]
pub(crate) struct SubmitOp {
    pub(crate) id: u8,
    pub(crate) function: u8,
    /// Sends the latest submit of this id again, while its row is there.
    pub(crate) again: bool,
    pub(crate) place: PlaceOp,
    pub(crate) priority: u8,
    pub(crate) dedup: Option<(u8, bool)>,
    pub(crate) limits: (Option<u8>, Option<i8>),
    pub(crate) parent: Option<u8>,
    pub(crate) app: u8,
    pub(crate) version: Option<u8>,
    pub(crate) input: Option<u8>,
    pub(crate) refuse: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum PlaceOp {
    Run(u8),
    Queue { queue: u8, delay: Option<i8> },
}

/// Lists of so many operations.
pub(crate) fn lists(weights: Weights, length: Range<usize>) -> impl Strategy<Value = Vec<Op>> {
    vec(op(weights), length)
}

fn op(w: Weights) -> impl Strategy<Value = Op> {
    let one = submit().prop_map(|submit| Op::Commit(vec![client(EffectOp::Submit(submit))]));
    let kinds = [
        (w.time, (0..120_u16).prop_map(Op::Pass).boxed()),
        (w.skew, (-200..200_i16).prop_map(Op::Skew).boxed()),
        (w.submits, one.boxed()),
        (w.units, unit().prop_map(|unit| Op::Commit(vec![unit])).boxed()),
        (w.batches, vec(unit(), 2..5).prop_map(Op::Commit).boxed()),
        (w.claims, claim().prop_map(Op::Claim).boxed()),
        (w.claims / 4, (0..3_u8).prop_map(Op::Repeat).boxed()),
        (w.leases, leases().boxed()),
        (w.ticks, ticks().boxed()),
        (w.registry, registry().boxed()),
        (w.reads, reads().boxed()),
    ];
    Union::new_weighted(kinds.into_iter().filter(|(weight, _)| *weight > 0).collect())
}

fn client(effect: EffectOp) -> UnitOp {
    UnitOp { fence: None, steps: Vec::new(), effects: vec![effect], outcome: None }
}

fn leases() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..4_u8, beat()).prop_map(|(executor, beat)| Op::Beat { executor, beat }),
        1 => (0..4_u8, 0..3_u8, 0..4_u8, any::<bool>())
            .prop_map(|(executor, ahead, limit, fallback)| Op::TakeOver { executor, ahead, limit, fallback }),
    ]
}

/// Mostly 1, so that executors which were taken over come back.
fn beat() -> impl Strategy<Value = u8> {
    prop_oneof![1 => Just(0_u8), 6 => Just(1_u8), 3 => 2..6_u8]
}

/// The first numbers more often than the later ones, so that operations meet.
fn skewed(below: u8) -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0_u8), 2 => 0..2.min(below), 1 => 0..below]
}

fn ticks() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..3_u8, 1..5_u8, weighted(0.2, (0..4_u8, beat())), any::<bool>())
            .prop_map(|(app, limit, beat, seen)| Op::Tick { app, limit, beat, seen }),
        1 => (0..3_u8, 0..20_u8, 0..4_u8).prop_map(|(app, age, limit)| Op::Collect { app, age, limit }),
    ]
}

fn limits() -> impl Strategy<Value = LimitsOp> {
    (of(0..4_u8), of(0..4_u8), of((0..4_u8, 0..30_u8))).prop_map(|(fleet, process, rate)| LimitsOp {
        fleet,
        process,
        rate,
    })
}

fn registry() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (skewed(3), 0..4_u8, limits(), 0..4_u8).prop_map(|(queue, app, limits, policy)| {
            Op::Register { queue, app: app / 3, limits, policy }
        }),
        2 => (skewed(3), 0..4_u8, limits(), any::<bool>()).prop_map(|(queue, app, limits, clear)| {
            Op::Update { queue, app: app / 3, limits, clear }
        }),
        1 => (0..3_u8, 0..2_u8).prop_map(|(queue, app)| Op::Unregister { queue, app }),
        1 => (0..2_u8, skewed(3), any::<bool>()).prop_map(|(app, version, promote)| Op::Version { app, version, promote }),
    ]
}

fn reads() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..2_u8, 0..3_u8, 0..4_u8).prop_map(|(app, version, names)| Op::Probe { app, version, names }),
        (0..4_u8, 0..4_u8).prop_map(|(executor, limit)| Op::Audit { executor, limit }),
        (0..IDS, 0..5_u8, 0..40_u8).prop_map(|(id, from, bytes)| Op::Steps { id, from, bytes }),
        (0..3_u8, 0..2_u8).prop_map(|(queue, key)| Op::Holder { queue, key }),
        (0..2_u8).prop_map(Op::Lists),
    ]
}

fn claim() -> impl Strategy<Value = ClaimOp> {
    let who = (skewed(4), skewed(4), 0..8_u8, skewed(3));
    let what = (0..9_u8, 1..5_u8, 0..3_u8, of((0..80_u8, 0..50_u8)), 0..6_u8);
    (who, what).prop_map(|((queue, executor, app, version), (names, budget, running, bytes, revision))| ClaimOp {
        queue,
        executor,
        app: app / 7,
        version,
        names,
        budget,
        running,
        bytes,
        revision,
    })
}

fn unit() -> impl Strategy<Value = UnitOp> {
    let fenced = (0..9_u8, vec(step(), 0..3), vec(effect(), 0..2), of(0..4_u8))
        .prop_map(|(fence, steps, effects, outcome)| UnitOp { fence: Some(fence), steps, effects, outcome });
    let free = (vec(effect(), 1..3), 0..20_u8).prop_map(|(effects, odd)| UnitOp {
        fence: None,
        steps: Vec::new(),
        effects,
        outcome: (odd == 0).then_some(0),
    });
    let given = (0..18_u8, of(0..20_u8)).prop_map(|(n, delay)| UnitOp {
        fence: Some(n / 2),
        ..client(EffectOp::GiveBack { delay, begun: n % 2 == 0 })
    });
    prop_oneof![6 => fenced, 3 => free, 3 => given]
}

fn step() -> impl Strategy<Value = StepOp> {
    (0..6_u8, 0..12_u8, 0..50_u8).prop_map(|(at, output, took)| StepOp { at, output, took })
}

fn some_ids() -> impl Strategy<Value = Vec<u8>> {
    vec(0..=IDS, 1..3)
}

fn effect() -> impl Strategy<Value = EffectOp> {
    prop_oneof![
        6 => submit().prop_map(EffectOp::Submit),
        2 => (some_ids(), any::<bool>()).prop_map(|(ids, children)| EffectOp::Cancel { ids, children }),
        2 => (some_ids(), of(0..3_u8), any::<bool>())
            .prop_map(|(ids, queue, force)| EffectOp::Resume { ids, queue, force }),
        1 => (some_ids(), any::<bool>()).prop_map(|(ids, children)| EffectOp::Delete { ids, children }),
        2 => (0..IDS, 0..IDS, 0..4_u8, of(0..3_u8), of(0..3_u8))
            .prop_map(|(source, id, below, queue, version)| EffectOp::Fork { source, id, below, queue, version }),
        1 => (0..IDS, -20..40_i8).prop_map(|(id, delay)| EffectOp::SetDelay { id, delay }),
        1 => (0..IDS, any::<bool>()).prop_map(|(id, clear)| EffectOp::Attributes { id, clear }),
    ]
}

fn submit() -> impl Strategy<Value = SubmitOp> {
    let place = prop_oneof![
        1 => skewed(4).prop_map(PlaceOp::Run),
        4 => (skewed(4), weighted(0.2, -10..40_i8)).prop_map(|(queue, delay)| PlaceOp::Queue { queue, delay }),
    ];
    let first = (0..IDS, 0..8_u8, 0..5_u8, place, 0..3_u8, weighted(0.3, (0..2_u8, any::<bool>())));
    let limits = (weighted(0.2, 1..60_u8), weighted(0.15, -5..90_i8));
    let second = (limits, of(0..IDS), 0..8_u8, weighted(0.2, 0..3_u8), of(0..60_u8), 0..6_u8);
    (first, second).prop_map(|((id, function, again, place, priority, dedup), rest)| {
        let (limits, parent, app, version, input, refuse) = rest;
        SubmitOp {
            id,
            function: function / 7,
            again: again == 0,
            place,
            priority,
            dedup,
            limits,
            parent,
            app,
            version,
            input,
            refuse: refuse == 0,
        }
    })
}
