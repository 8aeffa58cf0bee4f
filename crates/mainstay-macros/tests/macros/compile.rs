//! Functions that do not expand: every error stands where the fault is and says what to do.

/// Named here so that rustfmt and the checks of the tree see them; only trybuild compiles them.
#[cfg(any())]
mod cases {
    #[path = "../ui/step_options.rs"]
    mod step_options;
    #[path = "../ui/step_signature.rs"]
    mod step_signature;
    #[path = "../ui/types.rs"]
    mod types;
    #[path = "../ui/workflow_arguments.rs"]
    mod workflow_arguments;
    #[path = "../ui/workflow_signature.rs"]
    mod workflow_signature;
}

#[test]
fn a_function_that_cannot_be_expanded_is_an_error_that_says_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
