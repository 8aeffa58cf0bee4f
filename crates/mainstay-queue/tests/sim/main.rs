//! The engine over memory with a virtual clock: random sequences of actions and faults, and named properties.

mod bodies;
mod coverage;
mod ledger;
mod limits;
mod link;
mod liveness;
mod order;
mod plan;
mod process;
mod random;
mod seen;
mod tools;
mod watch;
mod world;
