//! The recorder over memory in the simulation: batches, order, outages and the ways to end.

mod batches;
mod ending;
mod order;
mod outages;
mod rates;
mod world;
