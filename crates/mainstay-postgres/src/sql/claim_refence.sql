-- Makes the token the owner of rows that were claimed while no column held it, as far as they still run under the fence
-- that they were given then. Answers those.
-- params: ids text[], fences text[], token text
UPDATE {s}.workflow_status w SET owner_xid = $3::text
FROM unnest($1::text[], $2::text[]) AS a (id, fence)
WHERE w.workflow_uuid = ANY ($1) AND w.workflow_uuid = a.id AND w.status = 'PENDING'
    AND concat_ws('/', w.started_at_epoch_ms, w.recovery_attempts, w.executor_id) = a.fence
RETURNING w.workflow_uuid, {fence w} AS fence
