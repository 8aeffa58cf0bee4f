//! The engine's tasks over the memory store, in a simulation.

mod shell;
mod support;
