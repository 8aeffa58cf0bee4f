//! Properties of the pure cores, and the engine's tasks over the memory store in a simulation.

mod audit;
mod config;
mod lane;
mod lane_cases;
mod lane_model;
mod lease;
mod logging;
mod property;
mod pulse;
mod queue_set;
mod returns;
mod shell;
mod support;
mod tally;
mod watch;
