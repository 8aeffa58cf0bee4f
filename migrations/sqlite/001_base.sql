-- The tables of the shared schema at number 125, without a schema prefix, and those that are this project's own.
--
-- Times are milliseconds since the epoch, booleans 0 or 1. Inputs, outputs and errors are written split only: the columns
-- `request`, `inputs`, `output` and `error` of workflow_status are there for the shape. Indexes are this backend's own:
-- one for each question that it asks, with the statuses as literals, and with the id as the last key where an order needs it.

CREATE TABLE dbos_migrations (version INTEGER NOT NULL) STRICT;
INSERT INTO dbos_migrations (version) VALUES (125);

CREATE TABLE workflow_status (
    workflow_uuid TEXT NOT NULL PRIMARY KEY,
    status TEXT NOT NULL,
    name TEXT NOT NULL,
    authenticated_user TEXT,
    assumed_role TEXT,
    authenticated_roles TEXT,
    request TEXT,
    output TEXT,
    error TEXT,
    executor_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    application_version TEXT,
    application_id TEXT,
    class_name TEXT,
    config_name TEXT,
    recovery_attempts INTEGER NOT NULL DEFAULT 0,
    queue_name TEXT,
    workflow_timeout_ms INTEGER,
    workflow_deadline_epoch_ms INTEGER,
    inputs TEXT,
    started_at_epoch_ms INTEGER,
    deduplication_id TEXT,
    priority INTEGER NOT NULL DEFAULT 0,
    queue_partition_key TEXT,
    forked_from TEXT,
    owner_xid TEXT,
    parent_workflow_id TEXT,
    serialization TEXT,
    delay_until_epoch_ms INTEGER,
    was_forked_from INTEGER NOT NULL DEFAULT 0,
    rate_limited INTEGER NOT NULL DEFAULT 0,
    completed_at INTEGER,
    attributes TEXT,
    schedule_name TEXT,
    debounce_deadline_epoch_ms INTEGER,
    is_debounced INTEGER NOT NULL DEFAULT 0,
    application_name TEXT,
    creator_xid TEXT,
    -- Who may claim the row: rows of one queue and one kind are eligible together or not at all.
    kind TEXT NOT NULL GENERATED ALWAYS AS
        (json_array(application_version, application_name, name, class_name, config_name)) VIRTUAL
) STRICT;

-- A claim finds the kinds of a queue by seeking from one to the next, then takes the first rows of each, so that rows
-- which it may not take cost one seek a kind, however many they are.
CREATE INDEX workflow_enqueued ON workflow_status (queue_name, kind, priority, created_at, workflow_uuid)
    WHERE status = 'ENQUEUED';
-- Counts of a fleet limit.
CREATE INDEX workflow_running ON workflow_status (queue_name, application_name) WHERE status = 'PENDING';
-- Audit, take-over and a repeated claim.
CREATE INDEX workflow_held ON workflow_status (executor_id, created_at, workflow_uuid) WHERE status = 'PENDING';
CREATE INDEX workflow_delayed ON workflow_status (application_name, delay_until_epoch_ms, workflow_uuid, queue_name)
    WHERE status = 'DELAYED';
CREATE INDEX workflow_deadline ON workflow_status (application_name, workflow_deadline_epoch_ms, workflow_uuid)
    WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND workflow_deadline_epoch_ms IS NOT NULL;
CREATE INDEX workflow_completed ON workflow_status (application_name, completed_at, workflow_uuid)
    WHERE completed_at IS NOT NULL;
CREATE UNIQUE INDEX workflow_dedup ON workflow_status (queue_name, deduplication_id)
    WHERE deduplication_id IS NOT NULL;
CREATE INDEX workflow_parent ON workflow_status (parent_workflow_id) WHERE parent_workflow_id IS NOT NULL;

CREATE TABLE workflow_input (
    workflow_uuid TEXT NOT NULL PRIMARY KEY,
    inputs TEXT,
    retention_timestamp INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE workflow_output (
    workflow_uuid TEXT NOT NULL PRIMARY KEY,
    output TEXT,
    error TEXT,
    retention_timestamp INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE operation_outputs (
    workflow_uuid TEXT NOT NULL,
    function_id INTEGER NOT NULL,
    function_name TEXT NOT NULL DEFAULT '',
    output TEXT,
    error TEXT,
    child_workflow_id TEXT,
    started_at_epoch_ms INTEGER,
    completed_at_epoch_ms INTEGER,
    serialization TEXT,
    application_name TEXT,
    retention_timestamp INTEGER NOT NULL,
    PRIMARY KEY (workflow_uuid, function_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE notifications (
    destination_uuid TEXT NOT NULL REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
    topic TEXT,
    message TEXT NOT NULL,
    created_at_epoch_ms INTEGER NOT NULL,
    message_uuid TEXT NOT NULL PRIMARY KEY,
    serialization TEXT,
    consumed INTEGER NOT NULL DEFAULT 0,
    consumed_by_function_id INTEGER
) STRICT;
CREATE INDEX notifications_receiver ON notifications (destination_uuid, topic, created_at_epoch_ms, message_uuid);

CREATE TABLE workflow_events (
    workflow_uuid TEXT NOT NULL REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    serialization TEXT,
    PRIMARY KEY (workflow_uuid, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE workflow_events_history (
    workflow_uuid TEXT NOT NULL REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
    function_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    serialization TEXT,
    PRIMARY KEY (workflow_uuid, function_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE streams (
    workflow_uuid TEXT NOT NULL REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    "offset" INTEGER NOT NULL,
    function_id INTEGER NOT NULL DEFAULT 0,
    serialization TEXT,
    PRIMARY KEY (workflow_uuid, key, "offset")
) STRICT, WITHOUT ROWID;

CREATE TABLE workflow_schedules (
    schedule_id TEXT NOT NULL PRIMARY KEY,
    schedule_name TEXT NOT NULL UNIQUE,
    workflow_name TEXT NOT NULL,
    workflow_class_name TEXT,
    schedule TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'ACTIVE',
    context TEXT NOT NULL,
    last_fired_at TEXT,
    automatic_backfill INTEGER NOT NULL DEFAULT 0,
    cron_timezone TEXT,
    queue_name TEXT,
    application_name TEXT
) STRICT;

CREATE TABLE application_versions (
    version_id TEXT NOT NULL PRIMARY KEY,
    version_name TEXT NOT NULL UNIQUE,
    version_timestamp INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    application_name TEXT
) STRICT;
CREATE INDEX versions_latest ON application_versions (application_name, version_timestamp, version_name);

-- `updated_at` is the revision: later than that of every change of a queue before it.
CREATE TABLE queues (
    queue_id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    concurrency INTEGER,
    worker_concurrency INTEGER,
    rate_limit_max INTEGER,
    rate_limit_period_sec REAL,
    priority_enabled INTEGER NOT NULL DEFAULT 0,
    partition_queue INTEGER NOT NULL DEFAULT 0,
    polling_interval_sec REAL NOT NULL DEFAULT 1.0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    application_name TEXT,
    partition_concurrency INTEGER,
    partition_worker_concurrency INTEGER,
    partition_rate_limit_max INTEGER,
    partition_rate_limit_period_sec REAL
) STRICT;

-- One row. `latest` is the greatest stamp that any process has written, behind which no process's clock is believed;
-- `registry` grows with every change of `queues`, whoever makes it, to the revision of the latest one at least.
CREATE TABLE mainstay_state (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    latest INTEGER NOT NULL,
    registry INTEGER NOT NULL
) STRICT;
INSERT INTO mainstay_state (one, latest, registry) VALUES (1, 0, 1);

CREATE TRIGGER queue_created AFTER INSERT ON queues BEGIN
    UPDATE mainstay_state SET registry = max(registry + 1, new.updated_at);
END;
CREATE TRIGGER queue_changed AFTER UPDATE ON queues BEGIN
    UPDATE mainstay_state SET registry = max(registry + 1, new.updated_at);
END;
CREATE TRIGGER queue_deleted AFTER DELETE ON queues BEGIN
    UPDATE mainstay_state SET registry = registry + 1;
END;

-- A lease of an executor; `lock` names the file whose lock the executor's process holds while it lives.
CREATE TABLE mainstay_leases (
    executor TEXT NOT NULL PRIMARY KEY,
    app TEXT NOT NULL,
    beat INTEGER NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0,
    lock TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX mainstay_leases_app ON mainstay_leases (app, executor);

-- Starts on queues with a rate limit, as the claims record them. What becomes of the row later does not matter here.
CREATE TABLE mainstay_starts (
    seq INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    key TEXT,
    started_at INTEGER NOT NULL
) STRICT;
CREATE INDEX mainstay_starts_queue ON mainstay_starts (queue, started_at);

-- Hints for the other processes on the file: a JSON array for each transaction that has any. Only the newest are kept.
CREATE TABLE mainstay_hints (
    seq INTEGER PRIMARY KEY,
    hints TEXT NOT NULL
) STRICT;
