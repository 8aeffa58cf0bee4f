//! One process of a test of the whole runtime.

use std::process::ExitCode;

fn main() -> ExitCode {
    mainstay_tests::runner::main()
}
