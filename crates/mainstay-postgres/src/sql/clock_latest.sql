-- The latest stamp stored, for a store whose clock a test moves. It reads whole tables, which are a test's. Where steps
-- have no stamp of their recording, that is their completion, but for sleeps, which complete at the moment that they return.
SELECT greatest(
    (SELECT max(updated_at) FROM {s}.workflow_status),
-- if split
    (SELECT max(retention_timestamp) FROM {s}.operation_outputs),
-- else
    (SELECT max(CASE WHEN o.output = o.completed_at_epoch_ms::text THEN o.started_at_epoch_ms
        ELSE o.completed_at_epoch_ms END) FROM {s}.operation_outputs o),
-- end
    (SELECT max(updated_at) FROM {s}.queues),
    (SELECT max(version_timestamp) FROM {s}.application_versions)) AS latest
