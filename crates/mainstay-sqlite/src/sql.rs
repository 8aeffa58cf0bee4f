//! The statements, in one place, so that a test can ask for the plan of each.
//!
//! Statuses are literals: a partial index is used only where its own words stand in the query.

use rusqlite::{CachedStatement, Connection, Params, Row};

use crate::error;

/// Running the statements of this module, each prepared once a connection.
pub(crate) trait Cached {
    /// The prepared statement.
    fn statement(&self, sql: &'static str) -> rusqlite::Result<CachedStatement<'_>>;

    /// Runs a statement that answers nothing, and says how many rows it changed.
    fn run(&self, sql: &'static str, params: impl Params) -> rusqlite::Result<usize> {
        self.statement(sql)?.execute(params)
    }

    /// The first row, where there is one.
    fn maybe<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        let mut statement = self.statement(sql)?;
        let mut rows = statement.query(params)?;
        let value = rows.next()?.map(read).transpose()?;
        // A statement that writes is through only when it has been asked for all its rows.
        while rows.next()?.is_some() {}
        Ok(value)
    }

    /// The one row that there must be.
    fn exactly<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.maybe(sql, params, read)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// All rows that can be read; `what` says in a warning what the others are.
    fn readable<T>(
        &self,
        what: &'static str,
        sql: &'static str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let found = self.list(sql, params, |row| {
            Ok(match read(row) {
                Err(error) if error::is_unreadable(&error) => {
                    tracing::warn!(what, error = %error::named(row, error), "a row cannot be read");
                    None
                }
                read => Some(read?),
            })
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// All rows.
    fn list<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.statement(sql)?.query_map(params, read)?.collect()
    }
}

impl Cached for Connection {
    fn statement(&self, sql: &'static str) -> rusqlite::Result<CachedStatement<'_>> {
        self.prepare_cached(sql)
    }
}

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        $($(#[$doc])* pub(crate) const $name: &str = $sql;)*
        /// All of them, by name.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, &str)] = &[$((stringify!($name), $name),)*];
    };
}

/// What `row::workflow` reads, in its order.
macro_rules! row {
    () => {
        "workflow_uuid, status, name, created_at, updated_at, class_name, config_name, queue_name, queue_partition_key, \
        deduplication_id, executor_id, application_name, application_version, serialization, parent_workflow_id, \
        forked_from, schedule_name, started_at_epoch_ms, completed_at, delay_until_epoch_ms, \
        workflow_deadline_epoch_ms, workflow_timeout_ms, attributes, priority, recovery_attempts, rate_limited, \
        was_forked_from, authenticated_user, assumed_role, authenticated_roles"
    };
}

/// What `row::step` reads, in its order.
macro_rules! step {
    () => {
        "function_id, function_name, output, error, child_workflow_id, serialization, started_at_epoch_ms, \
        completed_at_epoch_ms"
    };
}

/// What `queues::read` reads, in its order.
macro_rules! queue {
    () => {
        "name, updated_at, application_name, concurrency, worker_concurrency, rate_limit_max, rate_limit_period_sec, \
        partition_concurrency, partition_worker_concurrency, partition_rate_limit_max, \
        partition_rate_limit_period_sec, partition_queue, polling_interval_sec, created_at"
    };
}

statements! {
    // Transactions.
    BEGIN_WRITE = "BEGIN IMMEDIATE";
    BEGIN_READ = "BEGIN";
    COMMIT = "COMMIT";
    ROLLBACK = "ROLLBACK";
    SAVEPOINT = "SAVEPOINT unit";
    UNDO = "ROLLBACK TO unit";
    RELEASE = "RELEASE unit";
    DATA_VERSION = "PRAGMA data_version";
    LATEST = "SELECT latest FROM mainstay_state";
    SET_LATEST = "UPDATE mainstay_state SET latest = ?1 WHERE latest < ?1";
    STAMP = "SELECT registry FROM mainstay_state";
    CATALOG = "SELECT max(version) FROM dbos_migrations";

    // Hints for other processes.
    HINTS_LAST = "SELECT seq FROM mainstay_hints ORDER BY seq DESC LIMIT 1";
    HINTS_SINCE = "SELECT seq, hints FROM mainstay_hints WHERE seq > ?1 ORDER BY seq";
    HINTS_ADD = "INSERT INTO mainstay_hints (hints) VALUES (?1) RETURNING seq";
    HINTS_TRIM = "DELETE FROM mainstay_hints WHERE seq <= ?1";

    // One workflow.
    ROW = concat!("SELECT ", row!(), " FROM workflow_status WHERE workflow_uuid = ?1");
    STATUS = "SELECT status FROM workflow_status WHERE workflow_uuid = ?1";
    STANDING = "SELECT s.status, o.output, o.error FROM workflow_status s \
        LEFT JOIN workflow_output o ON o.workflow_uuid = s.workflow_uuid WHERE s.workflow_uuid = ?1";
    INPUT = "SELECT inputs FROM workflow_input WHERE workflow_uuid = ?1";
    /// The size of an input, and the input itself where it is within a budget.
    INPUT_WITHIN = "SELECT octet_length(inputs), CASE WHEN octet_length(inputs) <= ?2 THEN inputs END AS inputs \
        FROM workflow_input WHERE workflow_uuid = ?1";
    STEPS = concat!("SELECT ", step!(), " FROM operation_outputs WHERE workflow_uuid = ?1 AND function_id >= ?2 \
        ORDER BY function_id");
    STEP = concat!("SELECT ", step!(), " FROM operation_outputs WHERE workflow_uuid = ?1 AND function_id = ?2");
    HOLDER = "SELECT workflow_uuid FROM workflow_status WHERE queue_name = ?1 AND deduplication_id = ?2";
    CHILDREN = "SELECT workflow_uuid FROM workflow_status WHERE parent_workflow_id = ?1";
    /// What a fence is judged by, and what the moves of its row need.
    EXECUTION = "SELECT status, owner_xid, started_at_epoch_ms, queue_name, application_name FROM workflow_status \
        WHERE workflow_uuid = ?1";
    /// What a submit compares when its id is taken.
    TAKEN = "SELECT name, class_name, config_name, creator_xid, created_at, status, owner_xid, started_at_epoch_ms, \
        forked_from, workflow_deadline_epoch_ms FROM workflow_status WHERE workflow_uuid = ?1";

    // Writes of one workflow.
    INSERT = "INSERT INTO workflow_status (workflow_uuid, status, name, authenticated_user, assumed_role, \
        authenticated_roles, executor_id, created_at, updated_at, application_version, class_name, config_name, \
        recovery_attempts, queue_name, workflow_timeout_ms, workflow_deadline_epoch_ms, started_at_epoch_ms, \
        deduplication_id, priority, queue_partition_key, owner_xid, parent_workflow_id, serialization, \
        delay_until_epoch_ms, attributes, schedule_name, application_name, creator_xid) VALUES (?1, ?2, ?3, ?4, ?5, ?6, \
        ?7, ?8, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)";
    INSERT_INPUT = "INSERT INTO workflow_input (workflow_uuid, inputs, retention_timestamp) VALUES (?1, ?2, ?3)";
    INSERT_STEP = "INSERT INTO operation_outputs (workflow_uuid, function_id, function_name, output, error, \
        child_workflow_id, started_at_epoch_ms, completed_at_epoch_ms, serialization, application_name, \
        retention_timestamp) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    /// By a value or an error: the row stays on its queue.
    END = "UPDATE workflow_status SET status = ?2, deduplication_id = NULL, owner_xid = NULL, \
        updated_at = max(?3, updated_at), completed_at = max(?3, updated_at) WHERE workflow_uuid = ?1";
    /// Cancelled or parked: the row leaves its queue.
    END_OFF = "UPDATE workflow_status SET status = ?2, deduplication_id = NULL, owner_xid = NULL, queue_name = NULL, \
        started_at_epoch_ms = NULL, updated_at = max(?3, updated_at), completed_at = max(?3, updated_at) \
        WHERE workflow_uuid = ?1";
    SET_OUTPUT = "INSERT INTO workflow_output (workflow_uuid, output, error, retention_timestamp) VALUES (?1, ?2, ?3, ?4) \
        ON CONFLICT (workflow_uuid) DO UPDATE SET output = excluded.output, error = excluded.error";
    CLEAR_OUTPUT = "DELETE FROM workflow_output WHERE workflow_uuid = ?1";
    /// Given back or taken over.
    RETURN = "UPDATE workflow_status SET status = ?2, queue_name = coalesce(queue_name, ?3), \
        delay_until_epoch_ms = coalesce(?4, delay_until_epoch_ms), started_at_epoch_ms = NULL, owner_xid = NULL, \
        updated_at = max(?5, updated_at) WHERE workflow_uuid = ?1";
    UNCOUNT = "UPDATE workflow_status SET recovery_attempts = max(0, recovery_attempts - 1) WHERE workflow_uuid = ?1";
    RESUME = "UPDATE workflow_status SET status = 'ENQUEUED', queue_name = ?2, recovery_attempts = 0, \
        workflow_deadline_epoch_ms = NULL, deduplication_id = NULL, started_at_epoch_ms = NULL, completed_at = NULL, \
        owner_xid = NULL, updated_at = max(?3, updated_at) WHERE workflow_uuid = ?1";
    /// A deduplication id belongs to the queue it was given on.
    RELEASE_DUE = "UPDATE workflow_status SET status = 'ENQUEUED', queue_name = ?3, \
        deduplication_id = CASE WHEN queue_name IS NOT NULL THEN deduplication_id END, \
        updated_at = max(?2, updated_at) WHERE workflow_uuid = ?1";
    SET_DELAY = "UPDATE workflow_status SET delay_until_epoch_ms = ?2 WHERE workflow_uuid = ?1 AND status = 'DELAYED'";
    SET_ATTRIBUTES = "UPDATE workflow_status SET attributes = ?2 WHERE workflow_uuid = ?1";
    FORK_ROW = "INSERT INTO workflow_status (workflow_uuid, status, name, authenticated_user, assumed_role, \
        authenticated_roles, created_at, updated_at, application_version, class_name, config_name, queue_name, \
        queue_partition_key, forked_from, serialization, attributes, application_name) \
        SELECT ?2, 'ENQUEUED', name, authenticated_user, assumed_role, authenticated_roles, ?3, ?3, \
        coalesce(?4, application_version), class_name, config_name, ?5, ?6, workflow_uuid, serialization, attributes, \
        application_name FROM workflow_status WHERE workflow_uuid = ?1";
    FORK_INPUT = "INSERT INTO workflow_input (workflow_uuid, inputs, retention_timestamp) \
        SELECT ?2, inputs, ?3 FROM workflow_input WHERE workflow_uuid = ?1";
    FORK_STEPS = "INSERT INTO operation_outputs (workflow_uuid, function_id, function_name, output, error, \
        child_workflow_id, started_at_epoch_ms, completed_at_epoch_ms, serialization, application_name, \
        retention_timestamp) SELECT ?2, function_id, function_name, output, error, child_workflow_id, \
        started_at_epoch_ms, completed_at_epoch_ms, serialization, application_name, ?3 FROM operation_outputs \
        WHERE workflow_uuid = ?1 AND function_id < ?4";
    FORK_MARK = "UPDATE workflow_status SET was_forked_from = 1 WHERE workflow_uuid = ?1";
    DELETE = "DELETE FROM workflow_status WHERE workflow_uuid = ?1";
    DELETE_INPUT = "DELETE FROM workflow_input WHERE workflow_uuid = ?1";
    DELETE_STEPS = "DELETE FROM operation_outputs WHERE workflow_uuid = ?1";

    // Claims.
    KIND_AFTER = "SELECT kind FROM workflow_status WHERE status = 'ENQUEUED' AND queue_name = ?1 AND kind > ?2 \
        ORDER BY kind LIMIT 1";
    KIND_ROWS = "SELECT priority, created_at, workflow_uuid FROM workflow_status WHERE status = 'ENQUEUED' \
        AND queue_name = ?1 AND kind = ?2 ORDER BY priority, created_at, workflow_uuid LIMIT ?3";
    ATTEMPTS = "SELECT recovery_attempts FROM workflow_status WHERE workflow_uuid = ?1";
    RUNNING = "SELECT count(*) FROM (SELECT 1 FROM workflow_status WHERE status = 'PENDING' AND queue_name = ?1 \
        AND application_name IS ?2 LIMIT ?3)";
    STARTS = "SELECT count(*), min(started_at) FROM (SELECT started_at FROM mainstay_starts WHERE queue = ?1 \
        AND started_at > ?2 ORDER BY started_at DESC LIMIT ?3)";
    ADD_START = "INSERT INTO mainstay_starts (queue, key, started_at) VALUES (?1, ?2, ?3)";
    PRUNE_STARTS = "DELETE FROM mainstay_starts WHERE seq IN (SELECT seq FROM mainstay_starts WHERE queue = ?1 \
        AND started_at <= ?2 ORDER BY started_at LIMIT ?3)";
    /// Flips one row for an executor.
    CLAIM = concat!("UPDATE workflow_status SET status = 'PENDING', recovery_attempts = recovery_attempts + 1, \
        executor_id = ?2, application_version = ?3, application_name = coalesce(application_name, ?4), owner_xid = ?5, \
        rate_limited = ?6, started_at_epoch_ms = max(?7, updated_at + 1), updated_at = max(?7, updated_at + 1), \
        workflow_deadline_epoch_ms = coalesce(workflow_deadline_epoch_ms, \
        CASE WHEN workflow_timeout_ms > 9223372036854775807 - ?7 THEN 9223372036854775807 \
        ELSE ?7 + workflow_timeout_ms END) \
        WHERE workflow_uuid = ?1 AND status = 'ENQUEUED' AND recovery_attempts < ?8 RETURNING ", row!());
    /// What a token still holds.
    CLAIMED = concat!("SELECT ", row!(), " FROM workflow_status WHERE status = 'PENDING' AND executor_id = ?1 \
        AND owner_xid = ?2 AND +queue_name = ?3 ORDER BY priority, created_at, workflow_uuid");
    HELD = "SELECT workflow_uuid, created_at, queue_name, owner_xid, started_at_epoch_ms FROM workflow_status \
        WHERE status = 'PENDING' AND executor_id = ?1 AND (created_at, workflow_uuid) > (?2, ?3) \
        ORDER BY created_at, workflow_uuid LIMIT ?4";

    // Leases.
    LEASE = "SELECT beat, ended, lock FROM mainstay_leases WHERE executor = ?1";
    LEASES = "SELECT executor, app, beat, ended, lock FROM mainstay_leases WHERE app = ?1 ORDER BY executor";
    LEASE_OPEN = "INSERT INTO mainstay_leases (executor, app, beat, lock) VALUES (?1, ?2, 1, ?3)";
    LEASE_BEAT = "UPDATE mainstay_leases SET beat = ?2 WHERE executor = ?1 AND beat < ?2";
    LEASE_LOCK = "UPDATE mainstay_leases SET lock = ?2 WHERE executor = ?1";
    LEASE_END = "UPDATE mainstay_leases SET ended = 1 WHERE executor = ?1";
    LEASE_REMOVE = "DELETE FROM mainstay_leases WHERE executor = ?1";
    LOCK_NAMED = "SELECT 1 FROM mainstay_leases WHERE lock = ?1";
    TAKE = "SELECT workflow_uuid, queue_name FROM workflow_status WHERE status = 'PENDING' AND executor_id = ?1 \
        ORDER BY workflow_uuid LIMIT ?2";

    // Upkeep.
    DUE = "SELECT delay_until_epoch_ms, workflow_uuid, queue_name FROM workflow_status WHERE status = 'DELAYED' \
        AND application_name IS ?1 AND delay_until_epoch_ms <= ?2 ORDER BY delay_until_epoch_ms, workflow_uuid LIMIT ?3";
    LATE = "SELECT workflow_deadline_epoch_ms, workflow_uuid FROM workflow_status \
        WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND application_name IS ?1 \
        AND workflow_deadline_epoch_ms <= ?2 ORDER BY workflow_deadline_epoch_ms, workflow_uuid LIMIT ?3";
    NEXT_DELAY = "SELECT delay_until_epoch_ms FROM workflow_status WHERE status = 'DELAYED' AND application_name IS ?1 \
        AND delay_until_epoch_ms IS NOT NULL ORDER BY delay_until_epoch_ms LIMIT 1";
    NEXT_DEADLINE = "SELECT workflow_deadline_epoch_ms FROM workflow_status \
        WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND application_name IS ?1 \
        AND workflow_deadline_epoch_ms IS NOT NULL ORDER BY workflow_deadline_epoch_ms LIMIT 1";
    OLD = "SELECT completed_at, workflow_uuid FROM workflow_status WHERE application_name IS ?1 AND completed_at <= ?2 \
        ORDER BY completed_at, workflow_uuid LIMIT ?3";

    // Queues and versions.
    QUEUE = concat!("SELECT ", queue!(), " FROM queues WHERE name = ?1");
    QUEUES = concat!("SELECT ", queue!(), " FROM queues WHERE application_name = ?1 OR application_name IS NULL \
        ORDER BY name");
    QUEUE_KNOWN = "SELECT 1 FROM queues WHERE name = ?1";
    QUEUE_LIMITED = "SELECT 1 FROM queues WHERE name = ?1 AND concurrency IS NOT NULL";
    QUEUE_INSERT = "INSERT INTO queues (queue_id, name, updated_at, application_name, concurrency, worker_concurrency, \
        rate_limit_max, rate_limit_period_sec, partition_concurrency, partition_worker_concurrency, \
        partition_rate_limit_max, partition_rate_limit_period_sec, partition_queue, polling_interval_sec, created_at) \
        VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    QUEUE_UPDATE = "UPDATE queues SET updated_at = ?2, application_name = ?3, concurrency = ?4, \
        worker_concurrency = ?5, rate_limit_max = ?6, rate_limit_period_sec = ?7, partition_concurrency = ?8, \
        partition_worker_concurrency = ?9, partition_rate_limit_max = ?10, partition_rate_limit_period_sec = ?11, \
        partition_queue = ?12, polling_interval_sec = ?13, created_at = ?14 WHERE name = ?1";
    QUEUE_DELETE = "DELETE FROM queues WHERE name = ?1 AND (application_name = ?2 OR application_name IS NULL)";
    VERSION = "SELECT application_name FROM application_versions WHERE version_name = ?1";
    VERSION_LATEST = "SELECT version_timestamp, version_name FROM application_versions WHERE application_name IS ?1 \
        ORDER BY version_timestamp DESC, version_name DESC LIMIT 1";
    VERSION_NEWEST = "SELECT max(version_timestamp) FROM application_versions";
    VERSIONS = "SELECT version_name, version_timestamp, application_name FROM application_versions \
        WHERE application_name = ?1 OR application_name IS NULL ORDER BY version_timestamp DESC, version_name DESC";
    VERSION_INSERT = "INSERT INTO application_versions (version_id, version_name, version_timestamp, created_at, \
        application_name) VALUES (?1, ?1, ?2, ?3, ?4)";
    VERSION_PROMOTE = "UPDATE application_versions SET version_timestamp = ?2 WHERE version_name = ?1";
}
