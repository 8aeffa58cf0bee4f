//! Whole systems: several processes on one file.

mod crash;
mod drain;
mod examples;
mod fresh;
mod ingest;
mod process;
mod runtime_cases;
