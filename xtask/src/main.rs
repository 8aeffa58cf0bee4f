//! Development commands of the workspace; `cargo xtask help` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a development tool prints its findings, times its stages and reads the pipes of its children on threads"
)]

mod bite;
mod ci;
mod cli;
mod conformance;
mod counts;
mod shell;
mod test;
mod tidy;
mod tools;

use cli::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let command = match cli::parse(&args) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("xtask: {error}\n\n{}", cli::HELP);
            return ExitCode::from(2);
        }
    };
    match dispatch(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<(), String> {
    if command == Command::Help {
        println!("{}", cli::HELP);
        return Ok(());
    }
    let root = shell::root()?;
    match command {
        Command::Help => Ok(()),
        Command::Tidy => tidy::run(&root),
        Command::Deny => ci::deny(&root),
        Command::Test { args } => test::run(&root, &args),
        Command::Conformance { backend, filters } => conformance::run(&root, &backend, &filters),
        Command::Bite { names } => bite::run(&root, &names),
        Command::Ci { full } => ci::run(&root, full),
    }
}
