//! The PostgreSQL store of mainstay, on the system-database schema that the DBOS SDKs share.
//!
//! [`Postgres`] implements the required traits of `mainstay-store` and passes `mainstay-conformance`. A batch of units is one
//! transaction and one trip; a claim is one statement, and two trips under the lock of a queue with a fleet limit. What each
//! costs is in `docs/decisions/0003`, how it is built in 0010. Times are the server's.
//!
//! ```no_run
//! use mainstay_postgres::{Config, Postgres};
//! use mainstay_store::{Env, StoreClock};
//!
//! # async fn open() -> Result<(), Box<dyn std::error::Error>> {
//! let env = Env::system("mainstay")?;
//! let config = Config::new("postgres://app@db.example/shop?sslmode=verify-full").pool(20);
//! let store = Postgres::open(&env, config, StoreClock::Server).await?;
//! # drop(store);
//! # Ok(())
//! # }
//! ```

mod claim;
mod clock;
mod commit;
mod config;
mod connect;
mod error;
mod executor;
mod fault;
mod hints;
mod identifier;
mod layout;
mod maintenance;
mod plain;
#[cfg(test)]
mod plans;
mod pool;
mod queues;
mod queues_read;
mod registry;
mod row;
mod schema;
mod session;
mod store;
mod text;
#[cfg(test)]
mod upkeep_plans;
mod workflows;

pub use config::{Config, PayloadLayout};
#[doc(hidden)]
pub use schema::testing as schema_testing;
pub use store::Postgres;
