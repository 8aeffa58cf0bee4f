//! The kit on a real server: private servers, databases of one test, the client.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "the tests wait for processes of the system, which print what they are asked for"
)]

mod bouncers;
#[cfg(feature = "proxy")]
mod cuts;
mod databases;
#[cfg(feature = "proxy")]
mod lines;
mod servers;
