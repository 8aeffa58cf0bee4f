//! The one table from codes of the server and faults of the transport to kinds of failure.
