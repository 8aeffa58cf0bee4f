//! The small examples, as a user runs them.

use std::process::Command;

/// Runs a program without arguments to its end, and gives what it printed.
fn output(program: &str) -> String {
    let output = Command::new(program).output().expect("a process");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} failed: {out}{err}");
    out.into_owned()
}

#[test]
fn hello_greets_and_a_second_start_of_its_id_runs_nothing() {
    let hello = "hello, world, HELLO, WORLD!\n";
    assert_eq!(output(env!("CARGO_BIN_EXE_hello")), hello.repeat(2));
}

#[test]
fn fan_out_gathers_the_parts_from_its_queue() {
    let sum: u64 = (0..1_000_u64).map(|number| number * number).sum();
    assert_eq!(output(env!("CARGO_BIN_EXE_fan_out")), format!("the sum of all squares below 1000 is {sum}\n"));
}

#[test]
fn a_request_starts_a_workflow_and_is_answered_with_its_id() {
    let told = output(env!("CARGO_BIN_EXE_axum_handler"));
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("serving on http://127.0.0.1:"), "{told}");
    assert_eq!(lines[1..], ["started order-42", "order-42: paid 995 cents"], "{told}");
}
