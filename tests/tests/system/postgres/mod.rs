//! Engines on PostgreSQL while the line, the server, a pooler or a clock does what it should not.

mod claims;
mod clocks;
mod costs;
mod deadlocks;
mod failover;
mod limits;
mod names;
mod older;
mod payloads;
mod pooler;
mod recovery;
mod roles;
mod silence;
mod suite;
mod support;

pub(crate) use support::fresh_database;
