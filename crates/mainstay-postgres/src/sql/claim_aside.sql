-- Parks claimed rows that cannot be read, as far as their fences still hold; the attempt that was none is taken off.
-- params: now bigint, ids text[], fences text[], reasons text[]
WITH m AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
asked AS MATERIALIZED (
    SELECT a.id, a.fence, a.reason FROM unnest($2::text[], $3::text[], $4::text[]) AS a (id, fence, reason)
),
locked AS MATERIALIZED (
    SELECT w.workflow_uuid, w.status, {fence w} AS fence FROM {s}.workflow_status w
    WHERE w.workflow_uuid = ANY ($2)
    ORDER BY w.workflow_uuid COLLATE "C" FOR NO KEY UPDATE OF w
),
spent AS MATERIALIZED (
    SELECT l.workflow_uuid, a.reason, 1 AS unbegun FROM locked l JOIN asked a ON a.id = l.workflow_uuid
    WHERE l.status = 'PENDING' AND l.fence = a.fence
)
-- use: part_park
SELECT m.now, p.workflow_uuid FROM m LEFT JOIN parked p ON true
