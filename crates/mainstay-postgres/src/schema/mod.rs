//! Bringing the shared schema up to date.
