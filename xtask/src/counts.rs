//! How many tests passed, failed and were skipped, read from what a test runner printed, and whether that is a success.

use std::fmt;
use std::ops::AddAssign;

/// Tests by result. A test that was ended for taking too long has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    /// Reads the last summary line of cargo-nextest; `None` when it printed none.
    pub(crate) fn of_nextest(output: &str) -> Option<Self> {
        let line = output.lines().rev().find(|line| line.trim_start().starts_with("Summary ["))?;
        let (_, results) = line.split_once(" run: ")?;
        let mut counts = Self::default();
        for part in results.split(',') {
            counts.add(part);
        }
        Some(counts)
    }

    /// Adds up the `test result:` lines of libtest and libtest-mimic; `None` when there are none.
    pub(crate) fn of_libtest(output: &str) -> Option<Self> {
        let mut sum: Option<Self> = None;
        for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            let counts = sum.get_or_insert_default();
            let results = line.split_once(". ").map_or(line, |(_, results)| results);
            for part in results.split(';') {
                counts.add(part);
            }
        }
        sum
    }

    fn add(&mut self, part: &str) {
        let Some((number, kind)) = part.trim().split_once(' ') else { return };
        let Ok(number) = number.parse::<u64>() else { return };
        match kind.split(" (").next() {
            Some("passed") => self.passed += number,
            Some("failed" | "timed out" | "exec failed") => self.failed += number,
            Some("skipped" | "ignored") => self.skipped += number,
            _ => {}
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 { write!(f, ", {} skipped", self.skipped) } else { Ok(()) }
    }
}

/// What a command has to say at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    /// The first error; a run with a failed test has one too.
    pub(crate) error: Option<String>,
}

impl Outcome {
    /// Adds a second run; the first error stays.
    pub(crate) fn and(&mut self, other: Self) {
        self.counts += other.counts;
        self.error = self.error.take().or(other.error);
    }

    /// A run without a single passed test has shown nothing, which is an error.
    pub(crate) fn demand_some(mut self) -> Self {
        if self.error.is_none() && self.counts.passed == 0 {
            self.error = Some("no test was run".into());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(passed: u64, error: Option<&str>) -> Outcome {
        Outcome { counts: Counts { passed, ..Counts::default() }, error: error.map(str::to_owned) }
    }

    #[test]
    fn a_run_without_a_test_is_an_error() {
        assert_eq!(ran(0, None).demand_some().error.as_deref(), Some("no test was run"));
        assert_eq!(ran(0, Some("no build")).demand_some().error.as_deref(), Some("no build"));
        assert_eq!(ran(1, None).demand_some().error, None);
    }

    #[test]
    fn the_first_error_of_two_runs_stays() {
        let mut both = ran(1, Some("first"));
        both.and(ran(2, Some("second")));
        assert_eq!(both, ran(3, Some("first")));
        let mut late = ran(1, None);
        late.and(ran(2, Some("second")));
        assert_eq!(late, ran(3, Some("second")));
    }

    #[test]
    fn the_summary_of_nextest_is_counted() {
        let output =
            "  PASS x\n     Summary [   1.2s] 7 tests run: 4 passed (1 slow), 2 failed, 1 timed out, 3 skipped\nend";
        assert_eq!(Counts::of_nextest(output), Some(Counts { passed: 4, failed: 3, skipped: 3 }));
        assert_eq!(Counts::of_nextest("test result: ok. 1 passed; 0 failed"), None);
    }

    #[test]
    fn the_results_of_libtest_are_added_up() {
        let one = "test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 9 filtered out; finished in 0.1s\n";
        let two = "test result: FAILED. 1 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let both = format!("{one}text\n{two}");
        assert_eq!(Counts::of_libtest(&both), Some(Counts { passed: 4, failed: 4, skipped: 2 }));
        assert_eq!(Counts::of_libtest("nothing"), None);
    }

    #[test]
    fn the_closing_line_names_passed_and_failed() {
        assert_eq!(Counts { passed: 2, failed: 1, skipped: 0 }.to_string(), "2 passed, 1 failed");
    }
}
