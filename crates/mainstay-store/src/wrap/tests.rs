//! Tests of the wrappers over a scripted store.
