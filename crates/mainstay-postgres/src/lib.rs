//! The PostgreSQL store of mainstay, on the system-database schema that the DBOS SDKs share.
#![allow(dead_code, reason = "parts of a store that is being put together")]

mod config;
mod connect;
mod error;
mod identifier;
mod layout;
mod schema;
