//! Functions that do not expand: every error stands where the fault is and says what to do.

// Only trybuild compiles the cases. They are named here for rustfmt, and so that none is forgotten.
#[cfg(any())]
#[path = "../ui/step_options.rs"]
mod step_options;
#[cfg(any())]
#[path = "../ui/step_signature.rs"]
mod step_signature;
#[cfg(any())]
#[path = "../ui/types.rs"]
mod types;
#[cfg(any())]
#[path = "../ui/workflow_arguments.rs"]
mod workflow_arguments;
#[cfg(any())]
#[path = "../ui/workflow_signature.rs"]
mod workflow_signature;

#[test]
fn a_function_that_cannot_be_expanded_is_an_error_that_says_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
