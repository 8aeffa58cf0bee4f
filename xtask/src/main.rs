//! Development commands of the workspace; `cargo xtask help` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a development tool prints its findings, times its stages and reads the pipes of its children on threads"
)]

mod bite;
mod cases;
mod ci;
mod cli;
mod conformance;
mod counts;
mod interop;
mod migrate_check;
mod pg;
mod shell;
mod test;
mod tidy;
mod tools;

use cli::Command;
use counts::{Counts, Outcome};
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
    let outcome = dispatch(command).unwrap_or_else(|error| Outcome { error: Some(error), ..Outcome::default() });
    if let Some(error) = &outcome.error {
        eprintln!("xtask: {error}");
    }
    // Last, so that the end of the output says how many tests passed and failed, whatever else went wrong.
    if outcome.counts != Counts::default() {
        println!("{}", outcome.counts);
    }
    if outcome.error.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn dispatch(command: Command) -> Result<Outcome, String> {
    let root = shell::root()?;
    match command {
        Command::Help => {
            println!("{}", cli::HELP);
            Ok(Outcome::default())
        }
        Command::Tidy => tidy::run(&root).map(|()| Outcome::default()),
        Command::Deny => ci::deny(&root).map(|()| Outcome::default()),
        Command::Test { version, args } => test::run(&root, version, &args),
        Command::Conformance { backend, filters, version, layout } => {
            conformance::run(&root, &backend, &filters, version, layout)
        }
        Command::ConformanceList => cases::list(&root).map(|()| Outcome::default()),
        Command::MigrateCheck { version } => migrate_check::run(&root, version),
        Command::Pg { version, words } => pg::run(&root, version, &words),
        Command::Bite { names } => bite::run(&root, &names, &pg::Postgres::demanded(&root, None)?),
        Command::Interop { smoke, filters } => interop::run(&root, smoke, &filters),
        Command::Ci { full } => Ok(ci::run(&root, full)),
    }
}
