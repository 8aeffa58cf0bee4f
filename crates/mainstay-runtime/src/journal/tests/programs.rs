//! Random programs with joins, branches, spawned parts and dropped calls, polled in any order, that crash and go on.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use mainstay_env::Rng;
use mainstay_store::{Position, RecordedStep};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::super::{Journal, Mismatch, Verdict};
use super::lines::{Op, cases, op};

/// Positions of a spawned part, which begins at so many times the position after its spawn: no thread of a random program has
/// as many calls, and three levels of spawns stay in range.
const BLOCK: i32 = 256;

/// A piece of a program.
#[derive(Clone, Debug)]
enum Node {
    /// Made and awaited.
    Call(Op),
    /// Made together and awaited in any order.
    Join(Vec<Op>),
    /// Made and dropped before it ran.
    Dropped(Op),
    /// It runs and is dropped before its commit.
    Lost(Op),
    /// One of two, by what was read before.
    Branch(Vec<Node>, Vec<Node>),
    /// Runs beside the rest, with positions of its own.
    Spawn(Vec<Node>),
}

fn program() -> impl Strategy<Value = Vec<Node>> {
    let leaf = prop_oneof![
        5 => op().prop_map(Node::Call),
        2 => vec(op(), 2..5).prop_map(Node::Join),
        1 => op().prop_map(Node::Dropped),
        1 => op().prop_map(Node::Lost),
    ];
    let node = leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            (vec(inner.clone(), 0..4), vec(inner.clone(), 0..4)).prop_map(|(yes, no)| Node::Branch(yes, no)),
            vec(inner, 0..4).prop_map(Node::Spawn),
        ]
    });
    vec(node, 1..12)
}

/// One thing that runs in order.
struct Thread {
    todo: VecDeque<Node>,
    pending: Vec<(Position, Op)>,
    next: i32,
    /// What its calls have answered so far, whatever their order.
    read: u64,
}

impl Thread {
    fn new(nodes: Vec<Node>, next: i32) -> Self {
        Self { todo: nodes.into(), pending: Vec::new(), next, read: 0 }
    }

    fn make(&mut self, op: Op) {
        let position = self.take();
        self.pending.push((position, op));
    }

    fn take(&mut self) -> Position {
        self.next += 1;
        Position(self.next - 1)
    }
}

/// How an execution ended.
#[derive(Debug)]
enum End {
    Complete,
    Crashed,
    Stopped(Mismatch),
}

/// One execution over a store.
struct Execution<'a> {
    journal: Journal,
    store: &'a mut BTreeMap<Position, RecordedStep>,
    /// Commits until the process dies.
    commits: usize,
    rng: Rng,
    asked: BTreeMap<Position, Op>,
    replayed: usize,
    last: Option<Position>,
}

impl<'a> Execution<'a> {
    fn new(store: &'a mut BTreeMap<Position, RecordedStep>, commits: usize, seed: u64) -> Self {
        let journal = Journal::new(store.values().cloned().collect());
        let last = store.last_key_value().map(|(position, _)| *position);
        let rng = Rng::seeded(seed);
        Self { journal, store, commits, rng, asked: BTreeMap::new(), replayed: 0, last }
    }

    fn run(&mut self, program: &[Node]) -> End {
        let mut threads = vec![Thread::new(program.to_vec(), 0)];
        while !threads.is_empty() {
            let at = self.rng.index(threads.len());
            let thread = &mut threads[at];
            if thread.pending.is_empty() {
                let Some(node) = thread.todo.pop_front() else {
                    threads.swap_remove(at);
                    continue;
                };
                if let Some(spawned) = self.enter(node, thread) {
                    threads.push(spawned);
                }
                continue;
            }
            let (position, op) = thread.pending.swap_remove(self.rng.index(thread.pending.len()));
            match self.call(position, &op) {
                Ok(Some(row)) => thread.read ^= read(&row),
                Ok(None) => return End::Crashed,
                Err(mismatch) => return End::Stopped(mismatch),
            }
        }
        End::Complete
    }

    fn enter(&mut self, node: Node, thread: &mut Thread) -> Option<Thread> {
        match node {
            Node::Call(op) => thread.make(op),
            Node::Join(ops) => ops.into_iter().for_each(|op| thread.make(op)),
            Node::Dropped(_) => drop(thread.take()),
            Node::Lost(op) => {
                let verdict = op.ask(thread.take(), |expect| self.journal.call(expect));
                assert_eq!(verdict, Verdict::Run, "what never commits is never recorded");
            }
            Node::Branch(yes, no) => {
                let chosen = if thread.read.is_multiple_of(2) { yes } else { no };
                chosen.into_iter().rev().for_each(|node| thread.todo.push_front(node));
            }
            Node::Spawn(nodes) => return Some(Thread::new(nodes, (thread.take().0 + 1) * BLOCK)),
        }
        None
    }

    /// The row that the call answers; `None` when the process dies before its commit.
    fn call(&mut self, position: Position, op: &Op) -> Result<Option<RecordedStep>, Mismatch> {
        let was = self.asked.insert(position, op.clone());
        assert_eq!(was, None, "a position is asked once");
        let verdict = op.ask(position, |expect| self.journal.call(expect));
        let reached = self.asked.last_key_value().map(|(position, _)| *position);
        if self.journal.is_replaying() {
            assert!(self.last > reached, "nothing is recorded above {reached:?}");
        }
        match verdict {
            Verdict::Replay(row) => {
                assert_eq!(self.store.get(&position), Some(&row));
                self.replayed += 1;
                Ok(Some(row))
            }
            Verdict::Mismatch(mismatch) => {
                assert!(self.store.contains_key(&position));
                Err(mismatch)
            }
            Verdict::Run => {
                assert!(!self.store.contains_key(&position), "{op:?} at {position} runs over its own row");
                if self.commits == 0 {
                    return Ok(None);
                }
                self.commits -= 1;
                self.store.insert(position, op.row(position));
                Ok(Some(self.written(position, op)))
            }
        }
    }

    /// What a first run hands back: now and then its write is answered as one that was made before.
    fn written(&mut self, position: Position, op: &Op) -> RecordedStep {
        let row = op.row(position);
        if self.rng.chance(0.2) {
            let verdict = op.ask(position, |expect| self.journal.written(expect, vec![row.clone()]));
            assert_eq!(verdict, Verdict::Replay(row.clone()));
        }
        row
    }
}

/// What a body reads out of a row.
fn read(row: &RecordedStep) -> u64 {
    let text = row.result.payload().map_or("", |payload| payload.as_str());
    text.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))) >> 3
}

fn complete(program: &[Node], store: &mut BTreeMap<Position, RecordedStep>, seed: u64) -> BTreeMap<Position, Op> {
    let before = store.len();
    let mut execution = Execution::new(store, usize::MAX, seed);
    let end = execution.run(program);
    assert!(matches!(end, End::Complete), "{end:?}");
    assert_eq!(execution.replayed, before, "all that was recorded is replayed");
    assert_eq!((execution.journal.unasked(), execution.journal.is_replaying()), (Vec::new(), false));
    execution.asked
}

fn check_crashes(program: &[Node], seed: u64, crashes: &[usize]) -> u64 {
    let mut whole = BTreeMap::new();
    let asked = complete(program, &mut whole, seed);
    let mut store = BTreeMap::new();
    for (at, commits) in crashes.iter().enumerate() {
        let mut execution = Execution::new(&mut store, *commits, seed ^ (at as u64 + 1));
        let end = execution.run(program);
        assert!(!matches!(end, End::Stopped(_)), "{end:?}");
    }
    assert_eq!(complete(program, &mut store, !seed), asked, "another order asks the same");
    assert_eq!(store, whole);
    // Every prefix of commits in one order: a crash may fall on each.
    for commits in 0..whole.len().min(12) {
        let mut store = BTreeMap::new();
        Execution::new(&mut store, commits, seed).run(program);
        assert_eq!(store.len(), commits);
        assert_eq!(complete(program, &mut store, !seed), asked);
    }
    whole.len() as u64
}

#[test]
fn a_program_that_crashes_anywhere_replays_what_it_recorded_and_asks_the_same() {
    let programs = (program(), any::<u64>(), vec(0..6_usize, 0..5));
    let calls = Cell::new(0);
    let outcome = TestRunner::new(cases(3_000)).run(&programs, |(program, seed, crashes)| {
        calls.set(calls.get() + check_crashes(&program, seed, &crashes));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    assert!(calls.get() > 20_000, "{} calls", calls.get());
}

/// Replaces the call at `wanted`, counted over the whole program, by `by`; answers what stood there.
fn replace(nodes: &mut [Node], wanted: &mut usize, by: &Op) -> Option<Op> {
    for node in nodes {
        let ops: Vec<&mut Op> = match node {
            Node::Call(op) | Node::Dropped(op) | Node::Lost(op) => vec![op],
            Node::Join(ops) => ops.iter_mut().collect(),
            Node::Branch(yes, no) => match replace(yes, wanted, by).or_else(|| replace(no, wanted, by)) {
                Some(found) => return Some(found),
                None => continue,
            },
            Node::Spawn(nodes) => match replace(nodes, wanted, by) {
                Some(found) => return Some(found),
                None => continue,
            },
        };
        for op in ops {
            if *wanted == 0 {
                return Some(std::mem::replace(op, by.clone()));
            }
            *wanted -= 1;
        }
    }
    None
}

/// Plays a program whose one call has changed over the record of the old one; answers whether that was noticed.
fn check_change(program: &[Node], mut wanted: usize, by: &Op, seed: u64) -> bool {
    let mut store = BTreeMap::new();
    let asked = complete(program, &mut store, seed);
    let mut changed = program.to_vec();
    if replace(&mut changed, &mut wanted, by).is_none() {
        return false;
    }
    let recorded = store.clone();
    let mut execution = Execution::new(&mut store, usize::MAX, !seed);
    let end = execution.run(&changed);
    let differing: Vec<_> = execution.asked.iter().filter(|(at, op)| asked.get(at) != Some(op)).collect();
    match &end {
        // No other call has changed, and nothing was done before this one was asked for.
        End::Stopped(mismatch) => assert_eq!(differing, [(&mismatch.position, by)], "{mismatch}"),
        End::Complete => assert!(differing.is_empty(), "{differing:?} went by"),
        End::Crashed => panic!("it has all the commits that it wants"),
    }
    assert_eq!(store, recorded, "nothing is written over the record");
    matches!(end, End::Stopped(_))
}

#[test]
fn a_changed_call_is_reported_at_its_own_position_in_any_poll_order() {
    let programs = (program(), 0..30_usize, op(), any::<u64>());
    let noticed = Cell::new(0);
    let outcome = TestRunner::new(cases(6_000)).run(&programs, |(program, wanted, by, seed)| {
        noticed.set(noticed.get() + u32::from(check_change(&program, wanted, &by, seed)));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    assert!(noticed.get() > 1_000, "{} changes noticed", noticed.get());
}
