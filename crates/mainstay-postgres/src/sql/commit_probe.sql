-- After the lock, so that nothing is stale: what the rows of void fences are, and what is recorded already at the
-- positions of the others, which narrows the good ones.
-- params: fence_ords int[], fence_ids text[], step_ords int[], step_ids text[], positions int[]
WITH t AS MATERIALIZED (
    SELECT current_setting('mainstay.good')::int[] AS good
),
f AS MATERIALIZED (
    SELECT f.ord, f.id FROM unnest($1, $2) AS f (ord, id) WHERE f.ord <> ALL ((SELECT t.good FROM t)::int[])
),
s AS MATERIALIZED (
    SELECT s.ord, s.id, s.position FROM unnest($3, $4, $5) AS s (ord, id, position)
    WHERE s.ord = ANY ((SELECT t.good FROM t)::int[])
),
bad AS MATERIALIZED (
    SELECT s.ord, o.* FROM s CROSS JOIN LATERAL (
        SELECT o.function_id, o.function_name, o.output, o.error, o.child_workflow_id, o.serialization,
            o.started_at_epoch_ms, o.completed_at_epoch_ms
        FROM {s}.operation_outputs o WHERE o.workflow_uuid = s.id AND o.function_id = s.position OFFSET 0) o
),
good AS MATERIALIZED (
    SELECT set_config('mainstay.good', (SELECT coalesce(array_agg(g.ord), '{}')::text
        FROM unnest((SELECT t.good FROM t)) AS g (ord) WHERE g.ord NOT IN (SELECT bad.ord FROM bad)), true) AS kept
)
SELECT f.ord, 'superseded' AS why, w.status, w.output, w.error, NULL::int AS function_id, NULL AS function_name,
    NULL AS child_workflow_id, NULL AS serialization, NULL::bigint AS started_at_epoch_ms,
    NULL::bigint AS completed_at_epoch_ms
FROM good CROSS JOIN f LEFT JOIN LATERAL (
    SELECT w.status,
-- use: part_ended
    FROM {s}.workflow_status w WHERE w.workflow_uuid = f.id OFFSET 0) w ON true
UNION ALL
SELECT bad.ord, 'recorded', NULL, bad.output, bad.error, bad.function_id, bad.function_name, bad.child_workflow_id,
    bad.serialization, bad.started_at_epoch_ms, bad.completed_at_epoch_ms
FROM good CROSS JOIN bad
