//! Programs: workflows as data, drawn from a seed, so that one function runs all of them.

use std::time::Duration;

use mainstay_env::Rng;
use serde::{Deserialize, Serialize};

/// How long what never ends by itself sleeps: longer than any run.
pub(crate) const FOREVER: Duration = Duration::from_secs(36_000);

/// A workflow: what it does, and how it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    /// Ends with an error.
    pub(crate) fails: bool,
}

/// One thing that a body does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Op {
    Step(Work),
    /// The first attempts fail, or hang until their limit.
    Retry {
        failures: u32,
        retries: u32,
        hangs: bool,
        value: i64,
    },
    /// A step whose value has so many bytes: a few of them are more than a claim brings along.
    Big(usize),
    /// Milliseconds.
    Sleep(u64),
    Child(Child),
    /// A child whose result is awaited by the same call.
    Run(Program),
    Branch {
        ops: Vec<Op>,
        /// Awaited at once, not at the end of the body.
        now: bool,
    },
    /// Steps that are polled together, in another order at every poll.
    Join(Vec<Work>),
    Race(Wins),
    Dropped(Dropped),
    /// A step that makes calls.
    Nested {
        value: i64,
        inner: Option<Program>,
    },
    /// A child that would sleep for ever, and what ends it.
    Stopped(Stopper),
}

/// The body of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) value: i64,
    /// How often it lets others run.
    pub(crate) yields: u8,
    /// How long it takes, in milliseconds.
    pub(crate) naps: u64,
    pub(crate) fails: bool,
}

/// A child, and what its parent wants of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Child {
    pub(crate) program: Program,
    pub(crate) place: Place,
    pub(crate) wait: Wait,
    /// Its status is asked for once it is started, and once it has ended.
    pub(crate) asks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Place {
    /// In this process, if there is room.
    Here,
    /// On a queue without limits.
    Jobs,
    /// The same, later by so many milliseconds.
    Delayed(u64),
    /// On a queue that runs few at once.
    Narrow,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Wait {
    Now,
    Later,
    Never,
}

/// Who wins a race of a step and a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Wins {
    /// The sleep would last for ever.
    Step(Work),
    /// The step would last for ever; milliseconds.
    Sleep(u64),
    /// Whichever is first.
    Either { naps: u64, sleeps: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Dropped {
    Step,
    Sleep,
    Start,
    /// A step that was polled, and is in its body.
    StepInside,
    /// A sleep that was polled: its moment of waking may be recorded.
    SleepInside,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stopper {
    Cancel(Place),
    /// Its deadline, in milliseconds.
    Deadline(u64),
    /// A wait that is limited to so many milliseconds, then a cancellation.
    Impatience(u64),
}

/// What a program may still use.
struct Budget {
    workflows: u32,
}

impl Program {
    /// Draws a program of at most a dozen workflows.
    pub(crate) fn draw(rng: &Rng) -> Self {
        let mut budget = Budget { workflows: rng.between(1, 11) as u32 };
        let count = rng.between(2, 8) as usize;
        let ops = draw_ops(rng, &mut budget, 0, count);
        Self { ops, fails: rng.chance(0.15) }
    }

    /// Whether a step of it waits for a workflow while it holds a place of its process.
    pub(crate) fn waits_inside(&self) -> bool {
        self.any(&|op| matches!(op, Op::Nested { inner: Some(_), .. }))
    }

    fn is_leaf(&self) -> bool {
        let starts =
            |op: &Op| matches!(op, Op::Child(_) | Op::Run(_) | Op::Stopped(_) | Op::Nested { inner: Some(_), .. });
        !self.any(&starts)
    }

    fn any(&self, wanted: &dyn Fn(&Op) -> bool) -> bool {
        any(&self.ops, wanted)
    }

    /// The same with one thing less, in every way.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        let mut found: Vec<Self> = smaller(&self.ops).into_iter().map(|ops| Self { ops, fails: self.fails }).collect();
        if self.fails {
            found.push(Self { ops: self.ops.clone(), fails: false });
        }
        found
    }
}

fn any(ops: &[Op], wanted: &dyn Fn(&Op) -> bool) -> bool {
    ops.iter().any(|op| {
        wanted(op)
            || match op {
                Op::Child(Child { program, .. }) | Op::Run(program) => program.any(wanted),
                Op::Nested { inner: Some(program), .. } => program.any(wanted),
                Op::Branch { ops, .. } => any(ops, wanted),
                _ => false,
            }
    })
}

fn smaller(ops: &[Op]) -> Vec<Vec<Op>> {
    let mut found = Vec::new();
    for at in 0..ops.len() {
        let mut without = ops.to_vec();
        without.remove(at);
        found.push(without);
    }
    for (at, op) in ops.iter().enumerate() {
        let inner: Vec<Op> = match op {
            Op::Child(child) => child
                .program
                .smaller()
                .into_iter()
                .map(|program| Op::Child(Child { program, ..child.clone() }))
                .collect(),
            Op::Run(program) => program.smaller().into_iter().map(Op::Run).collect(),
            Op::Branch { ops, now } => smaller(ops).into_iter().map(|ops| Op::Branch { ops, now: *now }).collect(),
            Op::Nested { value, inner: Some(_) } => vec![Op::Nested { value: *value, inner: None }],
            _ => Vec::new(),
        };
        for op in inner {
            let mut changed = ops.to_vec();
            changed[at] = op;
            found.push(changed);
        }
    }
    found
}

fn draw_ops(rng: &Rng, budget: &mut Budget, depth: u32, count: usize) -> Vec<Op> {
    (0..count).map(|_| draw_op(rng, budget, depth)).collect()
}

fn draw_op(rng: &Rng, budget: &mut Budget, depth: u32) -> Op {
    match rng.below(20) {
        0..=2 => Op::Step(draw_work(rng)),
        3 => match rng.below(3) {
            0 => Op::Big(rng.between(100_000, 300_000) as usize),
            _ => Op::Step(draw_work(rng)),
        },
        4 => Op::Retry {
            failures: rng.below(4) as u32,
            retries: rng.below(4) as u32,
            hangs: rng.chance(0.3),
            value: rng.below(1000) as i64,
        },
        5 | 6 => Op::Sleep(draw_sleep(rng)),
        7..=9 => draw_child(rng, budget, depth),
        10 => draw_program(rng, budget, depth).map_or_else(|| Op::Sleep(1), Op::Run),
        11 | 12 if depth < 2 => {
            let count = rng.between(1, 4) as usize;
            Op::Branch { ops: draw_ops(rng, budget, depth + 1, count), now: rng.chance(0.3) }
        }
        13 | 14 => Op::Race(match rng.below(3) {
            0 => Wins::Step(Work { fails: false, ..draw_work(rng) }),
            1 => Wins::Sleep(rng.between(1, 300)),
            _ => Wins::Either { naps: rng.between(1, 40), sleeps: rng.between(1, 40) },
        }),
        15 => Op::Dropped(match rng.below(5) {
            0 => Dropped::Step,
            1 => Dropped::Sleep,
            2 => Dropped::Start,
            3 => Dropped::StepInside,
            _ => Dropped::SleepInside,
        }),
        16 => Op::Nested {
            value: rng.below(1000) as i64,
            inner: rng.chance(0.5).then(|| draw_program(rng, budget, depth)).flatten(),
        },
        17 if budget.workflows > 0 => {
            budget.workflows -= 1;
            Op::Stopped(match rng.below(4) {
                0 => Stopper::Deadline(rng.between(1, 4000)),
                1 => Stopper::Impatience(rng.between(1, 2000)),
                2 => Stopper::Cancel(Place::Jobs),
                _ => Stopper::Cancel(Place::Here),
            })
        }
        _ => Op::Join((0..rng.between(2, 5)).map(|_| draw_work(rng)).collect()),
    }
}

fn draw_child(rng: &Rng, budget: &mut Budget, depth: u32) -> Op {
    let Some(program) = draw_program(rng, budget, depth) else { return Op::Step(draw_work(rng)) };
    let place = match rng.below(8) {
        0..=2 => Place::Here,
        3 => Place::Delayed(rng.between(1, 2000)),
        4 | 5 if program.is_leaf() => Place::Narrow,
        _ => Place::Jobs,
    };
    let wait = match rng.below(4) {
        0 | 1 => Wait::Now,
        2 => Wait::Later,
        _ => Wait::Never,
    };
    Op::Child(Child { program, place, wait, asks: rng.chance(0.3) })
}

fn draw_program(rng: &Rng, budget: &mut Budget, depth: u32) -> Option<Program> {
    if budget.workflows == 0 || depth >= 3 {
        return None;
    }
    budget.workflows -= 1;
    let count = rng.between(1, 4) as usize;
    Some(Program { ops: draw_ops(rng, budget, depth + 1, count), fails: rng.chance(0.2) })
}

fn draw_work(rng: &Rng) -> Work {
    let naps = match rng.below(4) {
        0 => rng.between(1, 50),
        1 => rng.between(50, 3000),
        _ => 0,
    };
    Work { value: rng.below(1000) as i64, yields: rng.below(4) as u8, naps, fails: rng.chance(0.2) }
}

fn draw_sleep(rng: &Rng) -> u64 {
    match rng.below(4) {
        0 => rng.between(1, 20),
        1 => rng.between(2_000, 20_000),
        _ => rng.between(20, 2_000),
    }
}
