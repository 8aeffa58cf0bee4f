//! PostgreSQL for tests: a private server from local binaries, databases of one test, a small client, PgBouncer, and a
//! proxy that cuts the line where a test says.
//!
//! A test that needs a server begins with
//! `let Some(server) = mainstay_pgkit::server() else { return };`, or with `own_server(options)` where it must be its own.
#![allow(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "servers, poolers and sockets live on the real clock and on threads of their own, and a skip is printed"
)]

mod binaries;
mod bouncer;
mod client;
mod database;
mod error;
mod options;
mod process;
#[cfg(feature = "proxy")]
pub mod proxy;
mod server;
mod shared;
mod template;

pub use binaries::{Binaries, PROGRAMS_VARIABLE, reachable};
pub use bouncer::PgBouncer;
pub use client::{Client, Row};
pub use database::{Build, Database, Template, template_key};
pub use error::{Error, shown};
pub use options::Options;
#[cfg(feature = "proxy")]
pub use proxy::Proxy;
pub use server::Server;
pub use shared::{REQUIRE_VARIABLE, URL_VARIABLE, own_server, server};
