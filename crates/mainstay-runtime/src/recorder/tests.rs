//! The recorder over memory in the simulation.
