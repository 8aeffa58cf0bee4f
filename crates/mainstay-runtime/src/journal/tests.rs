//! The journal: rules as cases, and random programs that crash and replay.
