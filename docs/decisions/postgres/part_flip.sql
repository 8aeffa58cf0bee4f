-- Flips picked rows to this executor, and parks those that have had their attempts. By id array and not by a join with
-- `picked`: a LIMIT that is no constant is guessed as a tenth of the table, which makes a merge of whole keys look
-- cheap.
-- name: part_flip
, ran AS (
    UPDATE dbos.workflow_status w SET
        status = 'PENDING', executor_id = $6, owner_xid = $9::text, application_version = $8,
        application_name = coalesce(w.application_name, $7), recovery_attempts = w.recovery_attempts + 1,
        started_at_epoch_ms = greatest(m.now, w.updated_at + 1), updated_at = greatest(m.now, w.updated_at + 1),
        rate_limited = m.window_sec > 0,
        workflow_deadline_epoch_ms = coalesce(w.workflow_deadline_epoch_ms,
            greatest(m.now, w.updated_at + 1) + w.workflow_timeout_ms)
    FROM m
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM picked WHERE NOT over))
    RETURNING w.*
),
parked AS (
    UPDATE dbos.workflow_status w SET
        status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', queue_name = NULL, deduplication_id = NULL, owner_xid = NULL,
        started_at_epoch_ms = NULL, updated_at = greatest(m.now, w.updated_at), completed_at = greatest(m.now, w.updated_at),
        output = NULL, error = CASE WHEN w.inputs IS NOT NULL THEN $16::text END
    FROM m
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM picked WHERE over))
    RETURNING w.workflow_uuid, w.priority, w.created_at, w.completed_at, w.inputs IS NULL AS split
),
reasons AS (
    INSERT INTO dbos.workflow_output (workflow_uuid, output, error, retention_timestamp)
    SELECT p.workflow_uuid, NULL, $16, p.completed_at FROM parked p WHERE p.split
    ON CONFLICT (workflow_uuid) DO UPDATE SET output = NULL, error = excluded.error
)
