//! How a database is opened.
