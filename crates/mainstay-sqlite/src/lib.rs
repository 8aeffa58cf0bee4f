//! The SQLite store of mainstay: one file, several processes, group commit.
//!
//! [`Sqlite`] implements the required traits of `mainstay-store` and passes `mainstay-conformance`. One thread writes: it
//! takes what waits in its queue, runs it in one `BEGIN IMMEDIATE` transaction and answers after the commit. A few threads
//! read. A call is sent to a thread and awaited, so a dropped future leaves an operation whole or unsent.
//!
//! ```no_run
//! use mainstay_sqlite::{Config, Sqlite};
//! use mainstay_store::{Env, StoreClock};
//!
//! # async fn open() -> Result<(), Box<dyn std::error::Error>> {
//! let env = Env::system("mainstay")?;
//! let store = Sqlite::open(&env, Config::new("shop.db"), StoreClock::Server).await?;
//! # drop(store);
//! # Ok(())
//! # }
//! ```

mod call;
mod claim;
mod clock;
mod commit;
mod config;
mod counts;
mod effect;
mod eligible;
mod error;
mod executor;
mod hints;
mod locks;
mod maintenance;
mod migrate;
mod open;
mod pace;
#[cfg(test)]
mod plans;
mod queues;
mod reader;
mod registry;
mod row;
mod sql;
mod steps;
mod store;
mod submit;
mod transition;
mod tx;
mod versions;
mod workflows;
mod writer;

pub use config::{Config, Synchronous};
pub use store::Sqlite;
