//! What the macros write: forms that compile without a warning, errors, and runs on a store in memory.

mod compile;
mod forms;
mod run;
