-- One page of what an executor owns, by the pending index; there is none by executor. `limit` bounds the rows looked
-- at: a page may hold none of the executor's and still have a `next`.
-- name: queue_audit
-- params: now executor after_created after_id limit
WITH page AS MATERIALIZED (
    SELECT w.workflow_uuid, w.created_at, w.executor_id, w.owner_xid, w.queue_name
    FROM dbos.workflow_status w
    WHERE w.status = 'PENDING' AND w.created_at >= $3::bigint
        AND (w.created_at, w.workflow_uuid COLLATE "C") > ($3, $4::text)
    ORDER BY w.created_at, w.workflow_uuid COLLATE "C"
    LIMIT $5::int
),
m AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now,
        CASE WHEN (SELECT count(*) FROM page) = $5 THEN (SELECT json_build_array(p.created_at, p.workflow_uuid) FROM page p
            ORDER BY p.created_at DESC, p.workflow_uuid COLLATE "C" DESC LIMIT 1) END AS next
)
SELECT m.now, m.next, p.workflow_uuid AS id, p.created_at, p.owner_xid, p.queue_name
FROM m LEFT JOIN page p ON p.executor_id = $2::text
ORDER BY p.created_at, p.workflow_uuid COLLATE "C"
