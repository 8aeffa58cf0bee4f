//! The PostgreSQL backend on real servers: its schema, and its store beyond the contract.

mod schema;
mod store;
