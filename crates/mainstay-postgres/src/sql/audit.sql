-- One page of what an executor owns, by the pending index; there is none by executor. `limit` bounds the rows looked at: a
-- page may hold none of the executor's and still have a `next`. Where no column holds a claim's token, claims have noted it:
-- the notes are read once for a page, and those of its rows are looked up in an object: a join may be planned as a loop that
-- reads all of them for each row. No two notes are of one id and fence.
-- params: now bigint, system text, executor text, after_created bigint, after_id text, limit int
WITH page AS MATERIALIZED (
    SELECT w.workflow_uuid, w.created_at, w.executor_id, w.owner_xid, w.queue_name, {fence w} AS fence
    FROM {s}.workflow_status w
    WHERE w.status = 'PENDING' AND w.created_at >= $4::bigint
        AND (w.created_at, w.workflow_uuid COLLATE "C") > ($4, $5::text)
    ORDER BY w.created_at, w.workflow_uuid COLLATE "C"
    LIMIT $6::int
),
-- if !owner
noted AS MATERIALIZED (
    SELECT jsonb_object_agg(f::text, c.token) AS tokens
    FROM {m}.claims c CROSS JOIN LATERAL jsonb_array_elements(c.fences) f
    WHERE c.system = $2::text AND ((f ->> 0) IN (
        SELECT p.workflow_uuid FROM page p WHERE p.executor_id = $3::text AND p.queue_name IS NOT NULL)) IS TRUE
),
-- end
last AS MATERIALIZED (
    SELECT p.created_at, p.workflow_uuid FROM page p
    WHERE (SELECT count(*) FROM page) = $6
    ORDER BY p.created_at DESC, p.workflow_uuid COLLATE "C" DESC LIMIT 1
)
SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now,
    (SELECT created_at FROM last) AS next_created, (SELECT workflow_uuid FROM last) AS next_id,
    p.workflow_uuid, p.created_at, p.queue_name, p.fence,
-- if owner
    p.owner_xid AS token
-- else
    CASE WHEN p.queue_name IS NULL THEN p.owner_xid
        ELSE (SELECT n.tokens ->> jsonb_build_array(p.workflow_uuid, p.fence)::text FROM noted n) END AS token
-- end
FROM (SELECT 1) one LEFT JOIN page p ON p.executor_id = $3::text
ORDER BY p.created_at, p.workflow_uuid COLLATE "C"
