//! One process of a whole-system test.

use std::process::ExitCode;

fn main() -> ExitCode {
    mainstay_tests::worker::main()
}
