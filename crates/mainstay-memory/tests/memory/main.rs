//! What the conformance suite cannot see of the store in memory: its trouble, its processes, its clock and its tools.

mod attach;
mod clock;
mod support;
mod tools;
mod trouble;
