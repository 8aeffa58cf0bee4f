//! The queue and dispatch engine of mainstay: a supervisor, and a worker for each queue.

mod config;
mod dispatch;
mod launcher;
mod slot;
mod stats;
mod tally;

pub use config::Config;
pub use dispatch::{Begun, Dispatch, Drained};
pub use launcher::{Launcher, Work};
pub use slot::Slot;
pub use stats::Stats;
pub use tally::{Body, Count, Room, Tally, Wakes};
