//! How a database is opened.

use std::fmt;
use std::time::Duration;

use crate::connect::Secret;

/// Schema of an installation that names none, as in the other SDKs.
const SCHEMA: &str = "dbos";

/// Connections of a process that says nothing: the recorder's lane, a tick, a probe and claims of several queues.
const POOL: u32 = 10;

/// Largest payload that is stored: 16 MiB, far under the server's 1 GiB, so that one row never fills a claim's memory.
const PAYLOAD_BYTES: u64 = 16 * 1024 * 1024;

/// Longest a call waits for its answer before its connection is dropped.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the payloads of new rows are written, on a database that has both places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PayloadLayout {
    /// In tables of their own, as newer SDKs do; a database that lacks them is written inline.
    #[default]
    Split,
    /// In columns of the workflow's row, for a fleet in which older SDKs still read.
    Inline,
}

/// How a database is opened: where it is, and what may be done to it.
///
/// Nothing is checked here; opening names the part that is wrong. `Debug` shows neither the address nor a password.
///
/// ```
/// use mainstay_postgres::Config;
/// use std::time::Duration;
///
/// let config = Config::new("postgres://app@db.example/shop?sslmode=verify-full")
///     .schema("dbos")
///     .pool(4)
///     .call_timeout(Duration::from_secs(10));
/// assert!(!format!("{config:?}").contains("db.example"));
/// ```
#[derive(Clone)]
pub struct Config {
    url: Secret,
    schema: String,
    pool: u32,
    pooler: bool,
    hold_at_108: bool,
    verify_only: bool,
    payload_layout: PayloadLayout,
    payload_bytes: u64,
    call_timeout: Duration,
    create_database: bool,
    application_name: Option<String>,
    silent: bool,
}

impl Config {
    /// A database by its URL (`postgres://…`) or `key=value` text, as libpq reads them; see `docs/postgres/connecting.md`.
    ///
    /// What is not said comes from `PG*` variables and a password file, as with libpq. An empty text is all defaults.
    #[must_use]
    pub fn new(url_or_dsn: impl Into<String>) -> Self {
        Self {
            url: Secret::new(url_or_dsn.into()),
            schema: SCHEMA.into(),
            pool: POOL,
            pooler: false,
            hold_at_108: false,
            verify_only: false,
            payload_layout: PayloadLayout::default(),
            payload_bytes: PAYLOAD_BYTES,
            call_timeout: CALL_TIMEOUT,
            create_database: true,
            application_name: None,
            silent: false,
        }
    }

    /// Name of the schema that holds the tables; `dbos` unless said.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Most connections of this process beside the one that listens; 10 unless said, at least one is used.
    #[must_use]
    pub fn pool(mut self, connections: u32) -> Self {
        self.pool = connections;
        self
    }

    /// Whether a pooler in transaction mode, such as PgBouncer, is between; false unless said.
    ///
    /// Nothing that lives in a session is used then: no named statements, no settings at connecting.
    #[must_use]
    pub fn pooler(mut self, is_between: bool) -> Self {
        self.pooler = is_between;
        self
    }

    /// Leaves the schema at number 108, for a fleet whose older SDKs must go on working.
    #[must_use]
    pub fn hold_at_108(mut self) -> Self {
        self.hold_at_108 = true;
        self
    }

    /// Changes no schema: opening fails, naming both numbers, when it is not the one wanted.
    #[must_use]
    pub fn verify_only(mut self) -> Self {
        self.verify_only = true;
        self
    }

    /// Where payloads of new rows go; [`PayloadLayout::Split`] unless said.
    #[must_use]
    pub fn payload_layout(mut self, layout: PayloadLayout) -> Self {
        self.payload_layout = layout;
        self
    }

    /// Most bytes of one payload that this store takes; 16 MiB unless said.
    ///
    /// An engine has a cap of its own, `Builder::max_payload`, 16 MiB too: for larger payloads both are to be raised.
    #[must_use]
    pub fn payload_bytes(mut self, most: u64) -> Self {
        self.payload_bytes = most;
        self
    }

    /// Longest a call waits for its answer; 30 s unless said, and zero is refused when the store is opened. Its connection is
    /// dropped then, and so are those that have not answered since.
    ///
    /// An engine waits 30 s for a call, whatever is said here: a longer limit only lets the call end after it was given up.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = limit;
        self
    }

    /// Whether a database that does not exist is created; true unless said, never with [`Config::verify_only`].
    #[must_use]
    pub fn create_database(mut self, allowed: bool) -> Self {
        self.create_database = allowed;
        self
    }

    /// Name that the server shows for these connections, before that of the URL and of `PGAPPNAME`.
    #[must_use]
    pub fn application_name(mut self, name: impl Into<String>) -> Self {
        self.application_name = Some(name.into());
        self
    }

    /// Sends and hears no notifications, and so holds no connection for them: what other processes do is found by polling.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    pub(crate) fn url(&self) -> &Secret {
        &self.url
    }

    pub(crate) fn schema_name(&self) -> &str {
        &self.schema
    }

    pub(crate) fn pool_size(&self) -> u32 {
        self.pool.max(1)
    }

    pub(crate) fn is_pooled(&self) -> bool {
        self.pooler
    }

    pub(crate) fn holds_at_108(&self) -> bool {
        self.hold_at_108
    }

    pub(crate) fn only_verifies(&self) -> bool {
        self.verify_only
    }

    pub(crate) fn payloads(&self) -> PayloadLayout {
        self.payload_layout
    }

    pub(crate) fn most_payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    pub(crate) fn call_limit(&self) -> Duration {
        self.call_timeout
    }

    pub(crate) fn may_create_database(&self) -> bool {
        self.create_database && !self.verify_only
    }

    pub(crate) fn application(&self) -> Option<&str> {
        self.application_name.as_deref()
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }
}

impl From<&str> for Config {
    fn from(url_or_dsn: &str) -> Self {
        Self::new(url_or_dsn)
    }
}

impl From<String> for Config {
    fn from(url_or_dsn: String) -> Self {
        Self::new(url_or_dsn)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("url", &self.url)
            .field("schema", &self.schema)
            .field("pool", &self.pool)
            .field("pooler", &self.pooler)
            .field("hold_at_108", &self.hold_at_108)
            .field("verify_only", &self.verify_only)
            .field("payload_layout", &self.payload_layout)
            .field("payload_bytes", &self.payload_bytes)
            .field("call_timeout", &self.call_timeout)
            .field("create_database", &self.create_database)
            .field("application_name", &self.application_name)
            .field("silent", &self.silent)
            .finish()
    }
}
