//! How the properties are run: random words decoded into steps, counted, with a floor on the count.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};

/// Runs `check` on so many sequences of up to 400 words and asserts that at least `floor` words were taken in all.
pub(super) fn sequences(cases: u32, floor: u64, check: impl Fn(&[u32])) {
    let steps = AtomicU64::new(0);
    let full = u32::from(std::env::var_os("MAINSTAY_FULL").is_some_and(|full| full == "1")) * 9 + 1;
    let config = Config { cases: cases * full, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&vec(0_u32.., 1..400), |words| {
        steps.fetch_add(words.len() as u64, Ordering::Relaxed);
        check(&words);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let steps = steps.into_inner();
    assert!(steps >= floor, "{steps} steps, at least {floor} were to be taken");
}

/// Takes numbers out of one word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word(pub(super) u32);

impl Word {
    /// A number under `n`.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        let drawn = self.0 % n;
        // Multiplying spreads what is left, so that several draws of one word are not the same number.
        self.0 = (self.0 / n).wrapping_mul(0x9e37_79b1) >> 3;
        drawn
    }

    /// A number in [0, 1).
    pub(super) fn draw(&mut self) -> f64 {
        f64::from(self.below(1000)) / 1000.0
    }
}
