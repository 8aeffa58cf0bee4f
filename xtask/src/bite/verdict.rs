//! What a run of the tests says, and what a patch is worth by it.

use std::fmt;

/// The exit code of cargo-nextest when a test failed, from its documented list.
const TESTS_FAILED: i32 = 100;
/// The exit code of cargo-nextest when a filter matches no test.
const NO_TESTS: i32 = 4;

/// One run of the tests that a patch names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Green,
    Red,
    NotBuilt,
    NoTests,
    /// The runner itself failed.
    Broken,
}

impl Run {
    /// The run whose build ended with this code, which is not 0.
    pub(crate) const fn of_build(code: Option<i32>) -> Self {
        match code {
            Some(_) => Self::NotBuilt,
            None => Self::Broken,
        }
    }

    /// The run whose tests, once built, ended with this code.
    pub(crate) const fn of_tests(code: Option<i32>) -> Self {
        match code {
            Some(0) => Self::Green,
            Some(TESTS_FAILED) => Self::Red,
            Some(NO_TESTS) => Self::NoTests,
            _ => Self::Broken,
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Green => "green",
            Self::Red => "red",
            Self::NotBuilt => "not built",
            Self::NoTests => "without a test",
            Self::Broken => "ended by the runner",
        })
    }
}

/// What a patch showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every run that the patch names turned red.
    Bitten,
    /// The broken code passed its tests.
    NotNoticed,
    /// The patch does not apply to the tree any more.
    NotApplied,
    /// The patched tree does not compile, which no test had to notice.
    NotBuilt,
    /// The named tests do not exist, or the runner failed.
    NotRun,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bitten => "bitten",
            Self::NotNoticed => "NOT NOTICED: the tests stay green",
            Self::NotApplied => "DOES NOT APPLY any more",
            Self::NotBuilt => "DOES NOT BUILD: a compiler error is no bite",
            Self::NotRun => "NOT RUN: the named tests are not there, or the runner failed",
        })
    }
}

/// The verdict on a patch by its runs; the worst run counts, and no run at all proves nothing.
pub(crate) fn of(runs: &[Run]) -> Verdict {
    let any = |kind: Run| runs.contains(&kind);
    if any(Run::NotBuilt) {
        Verdict::NotBuilt
    } else if runs.is_empty() || any(Run::NoTests) || any(Run::Broken) {
        Verdict::NotRun
    } else if any(Run::Green) {
        Verdict::NotNoticed
    } else {
        Verdict::Bitten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_red_test_is_a_bite() {
        for (runs, verdict) in [
            (vec![Run::Red], Verdict::Bitten),
            (vec![Run::Red, Run::Red], Verdict::Bitten),
            (vec![Run::Red, Run::Green], Verdict::NotNoticed),
            (vec![Run::Green], Verdict::NotNoticed),
            (vec![Run::NotBuilt], Verdict::NotBuilt),
            (vec![Run::Red, Run::NotBuilt], Verdict::NotBuilt),
            (vec![Run::NoTests], Verdict::NotRun),
            (vec![Run::Red, Run::Broken], Verdict::NotRun),
            (vec![], Verdict::NotRun),
        ] {
            assert_eq!(of(&runs), verdict, "{runs:?}");
        }
    }

    #[test]
    fn exit_codes_are_told_apart() {
        assert_eq!(Run::of_tests(Some(0)), Run::Green);
        assert_eq!(Run::of_tests(Some(100)), Run::Red);
        assert_eq!(Run::of_tests(Some(4)), Run::NoTests);
        assert_eq!(Run::of_tests(Some(101)), Run::Broken);
        assert_eq!(Run::of_tests(None), Run::Broken);
        assert_eq!(Run::of_build(Some(101)), Run::NotBuilt);
        assert_eq!(Run::of_build(None), Run::Broken);
    }
}
