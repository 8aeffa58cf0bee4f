-- Releases due rows and cancels those past their deadline, at most `limit` of each, passing over what is held. A row of
-- both counts as released and is written as cancelled: one statement writes a row once. A deduplication id belongs to the
-- queue that it was given on. Before number 122 there is no index by deadline: the indexes of open rows are walked instead.
-- params: now bigint, app text, internal text, limit int
-- use: part_now
, due AS MATERIALIZED (
    SELECT w.workflow_uuid, coalesce(nullif(w.queue_name, ''), $3) AS queue_name FROM {s}.workflow_status w
    WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms <= (SELECT now FROM t)
        AND (w.application_name = $2 OR w.application_name IS NULL)
    ORDER BY w.delay_until_epoch_ms, w.workflow_uuid COLLATE "C" LIMIT $4
    FOR NO KEY UPDATE OF w SKIP LOCKED
),
-- if owner
late AS MATERIALIZED (
    SELECT w.workflow_uuid, w.status, w.queue_name FROM {s}.workflow_status w
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms <= (SELECT now FROM t)
        AND (w.application_name = $2 OR w.application_name IS NULL)
    ORDER BY w.workflow_deadline_epoch_ms, w.workflow_uuid COLLATE "C" LIMIT $4
    FOR NO KEY UPDATE OF w SKIP LOCKED
),
-- else
open_late AS MATERIALIZED (
    SELECT o.workflow_uuid FROM (
        SELECT w.workflow_uuid, w.workflow_deadline_epoch_ms AS at, w.application_name FROM {s}.workflow_status w
            WHERE w.status = 'PENDING' AND w.workflow_deadline_epoch_ms <= (SELECT now FROM t)
        UNION ALL
        SELECT w.workflow_uuid, w.workflow_deadline_epoch_ms, w.application_name FROM {s}.workflow_status w
            WHERE w.status = 'ENQUEUED' AND w.workflow_deadline_epoch_ms <= (SELECT now FROM t)
        UNION ALL
        SELECT w.workflow_uuid, w.workflow_deadline_epoch_ms, w.application_name FROM {s}.workflow_status w
            WHERE w.status = 'DELAYED' AND w.workflow_deadline_epoch_ms <= (SELECT now FROM t)
    ) o
    WHERE o.application_name = $2 OR o.application_name IS NULL
    ORDER BY o.at, o.workflow_uuid COLLATE "C" LIMIT $4
),
late AS MATERIALIZED (
    SELECT w.workflow_uuid, w.status, w.queue_name FROM {s}.workflow_status w
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM open_late))
        AND w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms <= (SELECT now FROM t)
    FOR NO KEY UPDATE OF w SKIP LOCKED
),
-- end
released AS (
    UPDATE {s}.workflow_status w SET
        status = 'ENQUEUED', updated_at = greatest(t.now, w.updated_at),
        queue_name = coalesce(nullif(w.queue_name, ''), $3),
        deduplication_id = CASE WHEN NOT w.is_debounced AND w.queue_name <> '' THEN w.deduplication_id END
    FROM t WHERE w.workflow_uuid = ANY (ARRAY(SELECT d.workflow_uuid FROM due d
        WHERE NOT EXISTS (SELECT 1 FROM late l WHERE l.workflow_uuid = d.workflow_uuid)))
),
ended AS (
    UPDATE {s}.workflow_status w SET
        status = 'CANCELLED', queue_name = NULL, deduplication_id = NULL, started_at_epoch_ms = NULL,
-- if owner
        owner_xid = NULL,
-- end
        updated_at = greatest(t.now, w.updated_at), completed_at = greatest(t.now, w.updated_at)
    FROM t WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM late))
    RETURNING w.workflow_uuid
)
SELECT NULL AS workflow_uuid, queue_name FROM due
UNION ALL
SELECT e.workflow_uuid, (SELECT q.name FROM {s}.queues q
    WHERE l.status = 'PENDING' AND q.name = l.queue_name AND q.concurrency IS NOT NULL)
FROM ended e JOIN late l ON l.workflow_uuid = e.workflow_uuid
