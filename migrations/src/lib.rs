//! Database migrations as data.
