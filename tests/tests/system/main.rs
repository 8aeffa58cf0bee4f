//! Whole systems: several processes on one file or database.

mod crash;
mod drain;
mod examples;
mod fresh;
mod ingest;
mod postgres;
mod process;
mod runtime_cases;
