//! Tests of the workflow runtime in simulation: engines of several processes over one store, under a virtual clock.

#![allow(clippy::unit_arg, reason = "a step that only notes something is shortest as `Ok(log.note(..))`")]

mod cancel;
mod cases;
mod children;
mod codecs;
mod context;
mod deadlines;
mod ends;
mod first;
mod handles;
mod ids;
mod lifecycle;
mod logs;
mod misplaced;
mod outcomes;
mod races;
mod random;
mod recovery;
mod registration;
mod retries;
mod rights;
mod starting;
mod starts_again;
mod steps;
mod strict;
mod support;
mod tools;
mod waits;
mod watching;
