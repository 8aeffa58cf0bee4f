-- The latest stamp stored, for a store whose clock a test moves. It reads whole tables, which are a test's.
SELECT greatest(
    (SELECT max(updated_at) FROM {s}.workflow_status),
-- if split
    (SELECT max(retention_timestamp) FROM {s}.operation_outputs),
-- else
    (SELECT max(completed_at_epoch_ms) FROM {s}.operation_outputs),
-- end
    (SELECT max(updated_at) FROM {s}.queues),
    (SELECT max(version_timestamp) FROM {s}.application_versions)) AS latest
