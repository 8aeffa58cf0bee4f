//! Whole systems: several processes on one file.

mod crash;
mod drain;
mod fresh;
mod process;
