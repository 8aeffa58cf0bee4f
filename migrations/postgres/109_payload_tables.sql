-- No foreign keys: a payload may outlive its workflow until a sweep takes it.
CREATE TABLE IF NOT EXISTS {{schema}}.workflow_input (
    workflow_uuid text NOT NULL PRIMARY KEY,
    inputs text,
    retention_timestamp bigint NOT NULL DEFAULT pg_catalog.floor(extract(epoch FROM pg_catalog.now()) * 1000)::bigint
);
CREATE INDEX IF NOT EXISTS idx_workflow_input_retention ON {{schema}}.workflow_input (retention_timestamp);
CREATE TABLE IF NOT EXISTS {{schema}}.workflow_output (
    workflow_uuid text NOT NULL PRIMARY KEY,
    output text,
    error text,
    retention_timestamp bigint NOT NULL DEFAULT pg_catalog.floor(extract(epoch FROM pg_catalog.now()) * 1000)::bigint
);
CREATE INDEX IF NOT EXISTS idx_workflow_output_retention ON {{schema}}.workflow_output (retention_timestamp);
