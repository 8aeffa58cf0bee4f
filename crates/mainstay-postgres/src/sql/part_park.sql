-- Parks the rows `spent` (workflow_uuid, reason, unbegun) at `m.now`; `unbegun` attempts are taken off. The reason goes
-- where the row's payloads are, and the other place is cleared: into `workflow_output` where its input is in `workflow_input`, else into the row.
, shaped AS MATERIALIZED (
    SELECT s.workflow_uuid, s.reason, s.unbegun, (
-- if inline
        w.inputs IS NULL AND
-- end
-- if split
        EXISTS (SELECT 1 FROM {s}.workflow_input i WHERE i.workflow_uuid = s.workflow_uuid)
-- else
        false
-- end
-- if !inline
        OR true
-- end
        ) AS split
    FROM spent s CROSS JOIN LATERAL (
        SELECT * FROM {s}.workflow_status w WHERE w.workflow_uuid = s.workflow_uuid OFFSET 0
    ) w
),
parked AS (
    UPDATE {s}.workflow_status w SET
        status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', queue_name = NULL, deduplication_id = NULL,
-- if owner
        owner_xid = NULL,
-- end
-- if inline
        output = NULL, error = (SELECT s.reason FROM shaped s WHERE s.workflow_uuid = w.workflow_uuid AND NOT s.split),
-- end
        recovery_attempts = w.recovery_attempts
            - (SELECT s.unbegun FROM shaped s WHERE s.workflow_uuid = w.workflow_uuid),
        started_at_epoch_ms = NULL, updated_at = greatest(m.now, w.updated_at),
        completed_at = greatest(m.now, w.updated_at)
    FROM m
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM shaped))
    RETURNING w.workflow_uuid, w.priority, w.created_at, w.completed_at
)
-- if split
, reasons AS (
    INSERT INTO {s}.workflow_output (workflow_uuid, output, error, retention_timestamp)
    SELECT p.workflow_uuid, NULL, s.reason, p.completed_at
    FROM parked p JOIN shaped s ON s.workflow_uuid = p.workflow_uuid WHERE s.split
    ON CONFLICT (workflow_uuid) DO UPDATE SET output = NULL, error = excluded.error
),
cleared AS (
    DELETE FROM {s}.workflow_output o
    WHERE o.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM shaped WHERE NOT split))
)
-- end
