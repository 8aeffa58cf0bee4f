//! Counts the words of every file of a folder, each file a durable workflow: killed at any moment and run again, it goes
//! on where it was.
//!
//! ```text
//! cargo run --release -p mainstay --example ingest -- FOLDER [--out DIR] [--store URL] [--workers N]
//! ```
//!
//! The store is a SQLite file in the folder of the results, or what `--store postgres://user@host/database` names. With
//! PostgreSQL, what a killed process had in its hands goes on after the lease of a process, about 10 seconds; with SQLite at once.
//!
//! `args`, `places` and `scan` say what there is to do, `plan` which workflows that makes, `work` holds the workflows, and
//! `run` brings them together.

mod args;
mod figures;
mod ledger;
mod output;
mod path;
mod places;
mod plan;
mod progress;
mod run;
mod scan;
mod summary;
mod words;
mod work;

use std::process::ExitCode;

use clap::Parser;

use crate::run::Ending;

#[tokio::main]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    let ending = run::run(&args).await;
    ExitCode::from(match ending {
        Ok(Ending::Complete) => 0,
        Ok(Ending::Incomplete) => 1,
        // What a shell tells of a program that was interrupted.
        Ok(Ending::Interrupted) => 130,
        Err(error) => {
            progress::say(&format!("ingest: {error}"));
            2
        }
    })
}
