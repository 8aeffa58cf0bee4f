//! Random operation lists, run on the backend and on memory side by side: every reply and every row must agree.

mod build;
mod compare;
mod ops;
mod pair;

use std::cell::RefCell;
use std::env;

use mainstay_env::{Rng, block_on};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::desk::Desk;
use ops::Op;
use pair::{Met, Pair};

pub(crate) use ops::Weights;

/// Lists of one case, and operations of one list.
const LISTS: u32 = 30;
const LENGTH: std::ops::Range<usize> = 40..60;

/// With `MAINSTAY_FULL=1`: so many times the lists, from a new seed.
const FULL: u32 = 20;

/// Runs that shrinking a list may take: it halves what it leaves out, so a list of 60 needs a few times 60.
const SHRINKS: u32 = 600;

/// Replays a run.
const SEED: &str = "MAINSTAY_SEED";

/// Runs lists of these weights; panics with a short list that does not agree, and the command that replays it.
pub(crate) fn agrees(d: &Desk, case: &str, weights: Weights) {
    let full = env::var("MAINSTAY_FULL").is_ok_and(|full| full == "1");
    let given = env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| if full { Rng::from_entropy().seed() } else { 1 });
    let cases = if full { LISTS * FULL } else { LISTS };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, rng(seed, case));
    let all = RefCell::new(Met::default());
    let result = runner.run(&ops::lists(weights, LENGTH), |list| {
        let (difference, met) = differs(d, &list);
        let mut all = all.borrow_mut();
        all.done += met.done;
        all.refused += met.refused;
        all.claimed += met.claimed;
        difference.map_or(Ok(()), |text| Err(TestCaseError::fail(text)))
    });
    match result {
        Ok(()) => {
            let (met, lists) = (all.into_inner(), cases as usize);
            let enough = met.done >= 3 * lists && met.refused >= lists && met.claimed >= lists / 2;
            assert!(enough, "{lists} lists have met too little: {met:?}");
        }
        Err(TestError::Fail(_, list)) => {
            let list = shrunk(list, |list| differs(d, list).0.is_some());
            let why = differs(d, &list).0.unwrap_or_else(|| "it differs at times only".to_owned());
            let shown: String = list.iter().map(|op| format!("\n  {op:?}")).collect();
            let more = if full { "MAINSTAY_FULL=1 " } else { "" };
            let command = format!("{SEED}={seed} {more}cargo xtask conformance --backend {} {case}", d.subject());
            panic!("{why}\nafter:{shown}\nreplay: {command}");
        }
        Err(TestError::Abort(why)) => panic!("no list could be made: {why}"),
    }
}

/// 32 bytes for the generator, from the seed and the name of the case.
fn rng(seed: u64, case: &str) -> TestRng {
    let source = Rng::seeded(seed).child(case);
    let bytes: Vec<u8> = (0..4).flat_map(|_| source.u64().to_le_bytes()).collect();
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

/// Leaves out of a failing list what it does not need to fail: large pieces first, then single operations. The
/// generator's own shrinking would keep its least length.
fn shrunk<T: Clone>(mut list: Vec<T>, fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    let mut runs = 0;
    let mut piece = list.len().div_ceil(2);
    while piece > 0 && runs < SHRINKS {
        let (mut at, mut removed) = (0, false);
        while at < list.len() && runs < SHRINKS {
            let mut without = list.clone();
            without.drain(at..(at + piece).min(list.len()));
            runs += 1;
            if fails(&without) {
                (list, removed) = (without, true);
            } else {
                at += piece;
            }
        }
        piece = if removed { piece.min(list.len()) } else { piece / 2 };
    }
    list
}

/// Runs one list on fresh stores; what differs first, and what the list has met.
fn differs(d: &Desk, list: &[Op]) -> (Option<String>, Met) {
    block_on(async {
        let mut pair = Pair::open(d).await;
        for (at, op) in list.iter().enumerate() {
            if let Some(text) = pair.run(op).await {
                return (Some(format!("operation {at}, {op:?}: {text}")), pair.met);
            }
        }
        (pair.ends().await, pair.met)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::strategy::{Strategy, ValueTree};

    #[test]
    fn a_list_is_shrunk_to_what_it_fails_by() {
        for len in [2_u32, 7, 60] {
            let fails = |list: &[u32]| list.contains(&1) && list.contains(&(len - 1));
            let expected = if len == 2 { vec![1] } else { vec![1, len - 1] };
            assert_eq!(shrunk((0..len).collect(), fails), expected);
        }
        assert_eq!(shrunk(vec![1, 2, 3], |_| true), Vec::<u32>::new());
    }

    #[test]
    fn a_seed_draws_the_same_lists_again() {
        let even = Weights {
            time: 1,
            skew: 1,
            submits: 1,
            units: 1,
            batches: 1,
            claims: 4,
            leases: 1,
            ticks: 1,
            registry: 1,
            reads: 1,
        };
        let draw = |seed, case| {
            let mut runner = TestRunner::new_with_rng(Config::default(), rng(seed, case));
            let tree = ops::lists(even, LENGTH).new_tree(&mut runner).expect("a list is drawn");
            format!("{:?}", tree.current())
        };
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert!(draw(1, "a") != draw(2, "a") && draw(1, "a") != draw(1, "b"));
    }
}
