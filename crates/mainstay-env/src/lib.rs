//! Clock, randomness, tasks and simulation: everything that is not a function of its inputs, behind one value.
//!
//! The other crates never name the system clock, a random source, a thread or a spawn function. They take an [`Env`] and
//! so run the same on the real machine ([`Env::system`]) and in a seeded simulation ([`Sim`]).
//!
//! ```
//! use mainstay_env::Sim;
//! use std::time::Duration;
//!
//! let sim = Sim::new(7);
//! let env = sim.env("shop");
//! let task = env.tasks().spawn("nap", {
//!     let env = env.clone();
//!     async move { env.sleep(Duration::from_secs(3600)).await }
//! });
//! assert!(sim.block_on(task).is_ok(), "an hour of virtual time passes at once");
//! ```

#![allow(clippy::disallowed_methods, reason = "this crate is the one place that may name clock, threads and spawn")]

mod block;
mod clock;
mod env;
mod ids;
mod listen;
mod rng;
mod runtime;
mod sim;
mod sim_clock;
mod sync;
mod task;
mod tasks;
mod time;

pub use block::{YieldNow, block_on, yield_now};
pub use clock::{BoxFuture, Clock, SystemClock};
pub use env::{Elapsed, Env};
pub use ids::Ids;
pub use listen::{Listen, LogLine, logged};
pub use rng::{Rng, Uniform};
pub use sim::Sim;
pub use sim_clock::SimClock;
pub use task::{Task, TaskError};
pub use tasks::Tasks;
pub use time::{Monotonic, Timestamp};
