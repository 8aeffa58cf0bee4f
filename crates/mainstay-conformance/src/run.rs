//! The command line of a backend's conformance binary: libtest's arguments over the list of cases.

use std::io::{Write, stdout};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::backend::{Backend, Subject};
use crate::case::{Case, Verdict, cases};

/// Runs the suite on the stores that `factory` makes, under the arguments of the process, and prints how many cases
/// passed, failed and were skipped.
///
/// The exit code says whether one failed. `name` is the backend's, for the closing line.
pub fn run(name: &str, factory: impl Fn() -> Box<dyn Backend> + Send + Sync + 'static) -> ExitCode {
    let args = Arguments::from_args();
    let subject = Subject::new(name, factory);
    let backend = subject.backend();
    let mut trials = trials(&subject);
    if args.list {
        // A runner that asks for the list first learns from it what is skipped.
        let lacking = |case: &Case| case.lacks(&*backend).is_some();
        let flags: Vec<bool> = cases().iter().map(lacking).collect();
        trials = trials.into_iter().zip(flags).map(|(trial, skip)| trial.with_ignored_flag(skip)).collect();
    }
    let conclusion = libtest_mimic::run(&args, trials);
    if !args.list {
        let (passed, failed, skipped) = (conclusion.num_passed, conclusion.num_failed, conclusion.num_ignored);
        // Nothing can be said on an output that is closed.
        let _ = writeln!(stdout(), "{name}: {passed} passed, {failed} failed, {skipped} skipped");
    }
    conclusion.exit_code()
}

/// The suite as trials, for a harness of one's own. A case that needs more than the backend can do, or trouble that it
/// cannot be brought into, is ignored with that named.
#[must_use]
pub fn trials(subject: &Subject) -> Vec<Trial> {
    let trial = |case: Case| {
        let subject = subject.clone();
        Trial::ignorable_test(case.name(), move || match case.run(&subject) {
            Ok(Verdict::Passed) => Ok(Completion::Completed),
            Ok(Verdict::Skipped(lacking)) => Ok(Completion::ignored_with(format!("needs {lacking}"))),
            Err(text) => Err(Failed::from(text)),
        })
    };
    cases().into_iter().map(trial).collect()
}
