//! Strings and numbers of the shared schema, spelled once.

/// The queue that every application polls: never a row, never limited, target of what has no queue of its own.
pub const INTERNAL_QUEUE: &str = "_dbos_internal_queue";

/// The codec that every language of the shared schema reads: plain JSON text.
pub const PORTABLE_JSON: &str = "portable_json";

/// Highest number of the shared migration ladder that this code knows.
pub const CATALOG: u32 = 125;

/// Prefix of the names that the runtime gives to its own steps.
pub const RESERVED_PREFIX: &str = "DBOS.";

/// Most executions of a row between two resumes, unless its registration says otherwise.
pub const MAX_ATTEMPTS: u32 = 100;

/// Interval at which a queue is polled, unless its row says otherwise, in milliseconds.
pub const POLL_MILLIS: u64 = 1_000;
