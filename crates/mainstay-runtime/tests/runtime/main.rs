//! Tests of the workflow runtime in simulation: engines of several processes over one store, under a virtual clock.

mod first;
mod support;
