//! Tests of mainstay-env through its public surface.

#![allow(
    clippy::disallowed_methods,
    reason = "some cases need a foreign thread or the machine's clock to compare with"
)]

mod ids;
mod rng;
mod sim;
mod sim_clock;
mod support;
mod system;
mod tasks;
mod time;
