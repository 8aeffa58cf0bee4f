//! The engine over memory with a virtual clock: random sequences of actions and faults, and named properties.

mod backoff;
mod bodies;
mod cases;
mod coverage;
mod crashes;
mod ledger;
mod limits;
mod link;
mod liveness;
mod order;
mod ownership;
mod plan;
mod process;
mod random;
mod recovery;
mod seeds;
mod seen;
mod tools;
mod watch;
mod world;
