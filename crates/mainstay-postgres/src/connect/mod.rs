//! Connecting as libpq does.
