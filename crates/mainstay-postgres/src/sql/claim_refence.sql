-- Makes the token the owner of rows that were claimed while no column held it, as far as they still run under the fence
-- that they were given then. Answers those. The locked rows are judged: a status in the update's own condition would let it
-- read every pending row.
-- params: ids text[], fences text[], token text
WITH asked AS MATERIALIZED (
    SELECT a.id, a.fence FROM unnest($1::text[], $2::text[]) AS a (id, fence)
),
locked AS MATERIALIZED (
    SELECT w.workflow_uuid, w.status,
        concat_ws('/', w.started_at_epoch_ms, w.recovery_attempts, w.executor_id) AS fence
    FROM {s}.workflow_status w
    WHERE w.workflow_uuid = ANY ($1)
    ORDER BY w.workflow_uuid COLLATE "C" FOR NO KEY UPDATE OF w
)
UPDATE {s}.workflow_status w SET owner_xid = $3::text
WHERE w.workflow_uuid = ANY (ARRAY(
    SELECT l.workflow_uuid FROM locked l JOIN asked a ON a.id = l.workflow_uuid
    WHERE l.status = 'PENDING' AND l.fence = a.fence))
RETURNING w.workflow_uuid, {fence w} AS fence
