-- The tables of the shared schema at ladder number 125 that the statements of this directory touch, in our own words,
-- and our own schema `mainstay`. Times are epoch milliseconds. Built fresh, so indexes are made without CONCURRENTLY.

CREATE SCHEMA dbos;
CREATE SCHEMA mainstay;

CREATE TABLE dbos.dbos_migrations (version bigint NOT NULL PRIMARY KEY);
INSERT INTO dbos.dbos_migrations VALUES (125);

CREATE TABLE dbos.workflow_status (
    workflow_uuid text NOT NULL PRIMARY KEY,
    status text,
    name text,
    authenticated_user text,
    assumed_role text,
    authenticated_roles text,
    request text,
    output text,
    error text,
    executor_id text,
    created_at bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint,
    updated_at bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint,
    application_version text,
    application_id text,
    class_name varchar(255) DEFAULT NULL,
    config_name varchar(255) DEFAULT NULL,
    recovery_attempts bigint DEFAULT 0,
    queue_name text,
    workflow_timeout_ms bigint,
    workflow_deadline_epoch_ms bigint,
    inputs text,
    started_at_epoch_ms bigint,
    deduplication_id text,
    priority int4 NOT NULL DEFAULT 0,
    queue_partition_key text,
    forked_from text,
    owner_xid text DEFAULT NULL,
    parent_workflow_id text DEFAULT NULL,
    serialization text DEFAULT NULL,
    delay_until_epoch_ms bigint DEFAULT NULL,
    was_forked_from boolean NOT NULL DEFAULT false,
    rate_limited boolean NOT NULL DEFAULT false,
    completed_at bigint,
    attributes jsonb,
    schedule_name text,
    debounce_deadline_epoch_ms bigint DEFAULT NULL,
    is_debounced boolean NOT NULL DEFAULT false,
    application_name text DEFAULT NULL,
    creator_xid text DEFAULT NULL
);
CREATE INDEX workflow_status_created_at_index ON dbos.workflow_status (created_at);
CREATE INDEX idx_workflow_status_delayed ON dbos.workflow_status (delay_until_epoch_ms) WHERE status = 'DELAYED';
CREATE INDEX idx_workflow_status_pending ON dbos.workflow_status (created_at) WHERE status = 'PENDING';
CREATE INDEX idx_workflow_status_failed ON dbos.workflow_status (status, created_at)
    WHERE status IN ('ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED');
CREATE INDEX idx_workflow_status_in_flight_v2 ON dbos.workflow_status (queue_name, status, priority, created_at)
    INCLUDE (application_name) WHERE status IN ('ENQUEUED', 'PENDING');
CREATE INDEX idx_workflow_status_partition_dequeue_v3 ON dbos.workflow_status
    (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid)
    INCLUDE (application_name) WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL;
CREATE INDEX idx_workflow_status_deadline ON dbos.workflow_status (workflow_deadline_epoch_ms)
    WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND workflow_deadline_epoch_ms IS NOT NULL;
CREATE INDEX idx_workflow_status_rate_limited ON dbos.workflow_status (queue_name, started_at_epoch_ms)
    WHERE rate_limited = true;
CREATE INDEX idx_workflow_status_started_at ON dbos.workflow_status (started_at_epoch_ms)
    WHERE started_at_epoch_ms IS NOT NULL;
CREATE INDEX idx_workflow_status_completed_at ON dbos.workflow_status (completed_at) WHERE completed_at IS NOT NULL;
CREATE INDEX idx_workflow_status_forked_from ON dbos.workflow_status (forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX idx_workflow_status_parent_workflow_id ON dbos.workflow_status (parent_workflow_id)
    WHERE parent_workflow_id IS NOT NULL;
CREATE INDEX idx_workflow_status_schedule_name ON dbos.workflow_status (schedule_name) WHERE schedule_name IS NOT NULL;
CREATE INDEX idx_workflow_status_attributes ON dbos.workflow_status USING gin (attributes) WHERE attributes IS NOT NULL;
CREATE UNIQUE INDEX uq_workflow_status_dedup_id ON dbos.workflow_status (queue_name, deduplication_id)
    WHERE deduplication_id IS NOT NULL;

CREATE TABLE dbos.workflow_input (
    workflow_uuid text NOT NULL PRIMARY KEY,
    inputs text,
    retention_timestamp bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint
);
CREATE INDEX idx_workflow_input_retention ON dbos.workflow_input (retention_timestamp);

CREATE TABLE dbos.workflow_output (
    workflow_uuid text NOT NULL PRIMARY KEY,
    output text,
    error text,
    retention_timestamp bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint
);
CREATE INDEX idx_workflow_output_retention ON dbos.workflow_output (retention_timestamp);

CREATE TABLE dbos.operation_outputs (
    workflow_uuid text NOT NULL,
    function_id int4 NOT NULL,
    function_name text NOT NULL DEFAULT '',
    output text,
    error text,
    child_workflow_id text,
    started_at_epoch_ms bigint,
    completed_at_epoch_ms bigint,
    serialization text DEFAULT NULL,
    application_name text DEFAULT NULL,
    retention_timestamp bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint,
    PRIMARY KEY (workflow_uuid, function_id)
);
CREATE INDEX idx_operation_outputs_completed_at_function_name_v2 ON dbos.operation_outputs
    (completed_at_epoch_ms, function_name) INCLUDE (application_name);
CREATE INDEX idx_operation_outputs_retention ON dbos.operation_outputs (retention_timestamp);

CREATE TABLE dbos.notifications (
    message_uuid text NOT NULL DEFAULT gen_random_uuid()::text PRIMARY KEY,
    destination_uuid text NOT NULL REFERENCES dbos.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
    topic text,
    message text NOT NULL,
    created_at_epoch_ms bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint,
    serialization text DEFAULT NULL,
    consumed boolean NOT NULL DEFAULT false,
    consumed_by_function_id int4
);
CREATE INDEX idx_workflow_topic ON dbos.notifications (destination_uuid, topic);

CREATE TABLE dbos.queues (
    queue_id text NOT NULL DEFAULT gen_random_uuid()::text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    concurrency int4,
    worker_concurrency int4,
    rate_limit_max int4,
    rate_limit_period_sec double precision,
    priority_enabled boolean NOT NULL DEFAULT false,
    partition_queue boolean NOT NULL DEFAULT false,
    polling_interval_sec double precision NOT NULL DEFAULT 1.0,
    created_at bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint,
    updated_at bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint,
    application_name text DEFAULT NULL,
    partition_concurrency int4 DEFAULT NULL,
    partition_worker_concurrency int4 DEFAULT NULL,
    partition_rate_limit_max int4 DEFAULT NULL,
    partition_rate_limit_period_sec double precision DEFAULT NULL
);

CREATE TABLE dbos.application_versions (
    version_id text NOT NULL PRIMARY KEY,
    version_name text NOT NULL UNIQUE,
    version_timestamp bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint,
    created_at bigint NOT NULL DEFAULT floor(extract(epoch FROM now()) * 1000)::bigint,
    application_name text DEFAULT NULL
);
CREATE UNIQUE INDEX uq_application_versions_owner_version ON dbos.application_versions (application_name, version_name)
    WHERE application_name IS NOT NULL;
CREATE UNIQUE INDEX uq_application_versions_unclaimed_version ON dbos.application_versions (version_name)
    WHERE application_name IS NULL;
CREATE INDEX idx_application_versions_timestamp ON dbos.application_versions (version_timestamp DESC);
CREATE INDEX idx_application_versions_owner_timestamp ON dbos.application_versions
    (application_name, version_timestamp DESC);

-- Ours. `system` is the name of the system schema, so that installations share a database.

-- A beat counter for each living executor. `walked_*` is how far a take-over has walked the pending index.
CREATE TABLE mainstay.leases (
    system text NOT NULL,
    executor text NOT NULL,
    app text NOT NULL,
    beat bigint NOT NULL,
    ended boolean NOT NULL DEFAULT false,
    walked_created bigint NOT NULL DEFAULT '-9223372036854775808',
    walked_id text NOT NULL DEFAULT '',
    PRIMARY KEY (system, executor)
) WITH (fillfactor = 50);

-- Starts inside the rate windows of limited queues: one row for each claim and key; '' is a row without a key.
CREATE TABLE mainstay.starts (
    system text NOT NULL,
    queue text NOT NULL,
    key text NOT NULL,
    at bigint NOT NULL,
    token text NOT NULL,
    n int4 NOT NULL,
    PRIMARY KEY (system, queue, key, at, token)
);
CREATE INDEX starts_by_queue ON mainstay.starts (system, queue, at);

-- Only for a database held at 108, where no column holds a claim's token: what the claim answered, for its repeat.
CREATE TABLE mainstay.claims (
    system text NOT NULL,
    token text NOT NULL,
    at bigint NOT NULL,
    fences jsonb NOT NULL,
    PRIMARY KEY (system, token)
);
