//! Whole-system tests: what the processes of a test run, and how what they did is judged.
//!
//! A test starts copies of the program `worker`, which run the queue engine on one SQLite file with bodies that write into a
//! ledger; afterwards the ledger is read and judged.

pub mod ledger;
pub mod load;
pub mod runner;
pub mod warnings;
pub mod worker;
