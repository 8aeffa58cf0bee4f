-- From the checkpoints again, on a queue. Judged and locked already.
-- params: now bigint, ids text[], queue text
-- use: part_now
, c AS MATERIALIZED (
    SELECT i.id, w.status = 'PENDING' AS pending, w.queue_name AS queue FROM unnest($2) AS i (id) CROSS JOIN LATERAL (
        SELECT w.status, w.queue_name FROM {s}.workflow_status w WHERE w.workflow_uuid = i.id OFFSET 0) w
),
u AS (
    UPDATE {s}.workflow_status w SET
        status = 'ENQUEUED', queue_name = $3, recovery_attempts = 0, workflow_deadline_epoch_ms = NULL,
        deduplication_id = NULL, started_at_epoch_ms = NULL, completed_at = NULL,
-- if owner
        owner_xid = NULL,
-- end
-- if inline
        output = NULL, error = NULL,
-- end
        updated_at = greatest(t.now, w.updated_at)
    FROM c, t WHERE w.workflow_uuid = c.id
    RETURNING w.workflow_uuid AS id, c.pending, c.queue
)
-- if split
, x AS (
    DELETE FROM {s}.workflow_output x WHERE x.workflow_uuid = ANY ($2)
)
-- end
SELECT ARRAY(SELECT u.id FROM u WHERE u.pending) AS taken,
-- use: part_rooms
