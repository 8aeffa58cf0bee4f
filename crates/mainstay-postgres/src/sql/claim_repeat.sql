-- The same token again: rows of the queue that it still holds, in order. Linear in the queue's running rows where the token
-- stands in the row, so it is sent only for a repeat, before the claim itself. The status: see claim_counts.
-- params: now bigint, system text, claim_bytes bigint, row_bytes bigint, queue text, executor text, token text
WITH RECURSIVE m AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now, CASE WHEN EXISTS (
            SELECT 1 FROM {m}.leases WHERE system = $2::text AND executor = $6::text AND NOT ended
        ) THEN 'open' ELSE 'unleased' END AS state, NULL::boolean AS latest
),
-- if owner
ran AS MATERIALIZED (
    SELECT w.*, {fence w} AS fence FROM {s}.workflow_status w
    WHERE w.queue_name = $5::text AND w.status IN ('ENQUEUED', 'PENDING') AND w.status = (SELECT 'PENDING')
        AND w.owner_xid = $7::text AND w.executor_id = $6 AND (SELECT state FROM m) = 'open'
    ORDER BY w.priority, w.created_at
),
-- else
noted AS MATERIALIZED (
    SELECT f ->> 0 AS id, f ->> 1 AS fence FROM {m}.claims c CROSS JOIN LATERAL jsonb_array_elements(c.fences) f
    WHERE c.system = $2 AND c.token = $7::text AND (SELECT state FROM m) = 'open'
),
ran AS MATERIALIZED (
    SELECT w.*, n.fence FROM noted n CROSS JOIN LATERAL (
        SELECT * FROM {s}.workflow_status w WHERE w.workflow_uuid = n.id OFFSET 0
    ) w
    WHERE w.status = 'PENDING' AND w.queue_name = $5::text AND w.executor_id = $6 AND n.fence = {fence w}
),
-- end
picked AS MATERIALIZED (SELECT workflow_uuid FROM ran),
moved AS (SELECT workflow_uuid FROM ran WHERE false),
parked AS (SELECT workflow_uuid, priority, created_at FROM ran WHERE false)
-- use: part_rows
