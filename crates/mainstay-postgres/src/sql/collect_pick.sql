-- Locks payloads and steps whose workflow is gone, as deletions of older peers leave them. `place` is where in the order of
-- age the look begins, in thousandths; it goes on around, and no more than `limit` rows of a table are looked at. One round
-- at a time over all peers. What is locked here is judged again by the next statement, which sees who came meanwhile.
-- params: now bigint, age bigint, limit int, place int, key bigint
-- use: part_now
, turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock($5) AS ours
),
c AS MATERIALIZED (
    SELECT t.now - $2 AS cutoff FROM t, turn WHERE turn.ours
),
f AS MATERIALIZED (
    SELECT
        (SELECT a.first + (greatest(c.cutoff - a.first, 0) / 1000) * $4 FROM c,
            (SELECT min(retention_timestamp) AS first FROM {s}.workflow_input) a) AS input,
        (SELECT a.first + (greatest(c.cutoff - a.first, 0) / 1000) * $4 FROM c,
            (SELECT min(retention_timestamp) AS first FROM {s}.workflow_output) a) AS output,
        (SELECT a.first + (greatest(c.cutoff - a.first, 0) / 1000) * $4 FROM c,
            (SELECT min(retention_timestamp) AS first FROM {s}.operation_outputs) a) AS step
),
input AS MATERIALIZED (
    SELECT workflow_uuid FROM (
        (SELECT x.workflow_uuid FROM {s}.workflow_input x
            WHERE x.retention_timestamp >= (SELECT input FROM f) AND x.retention_timestamp < (SELECT cutoff FROM c)
            ORDER BY x.retention_timestamp LIMIT $3)
        UNION ALL
        (SELECT x.workflow_uuid FROM {s}.workflow_input x
            WHERE x.retention_timestamp < (SELECT input FROM f) AND x.retention_timestamp < (SELECT cutoff FROM c)
            ORDER BY x.retention_timestamp LIMIT $3)
        LIMIT $3
    ) seen
    WHERE NOT EXISTS (SELECT 1 FROM {s}.workflow_status w WHERE w.workflow_uuid = seen.workflow_uuid)
),
output AS MATERIALIZED (
    SELECT workflow_uuid FROM (
        (SELECT x.workflow_uuid FROM {s}.workflow_output x
            WHERE x.retention_timestamp >= (SELECT output FROM f) AND x.retention_timestamp < (SELECT cutoff FROM c)
            ORDER BY x.retention_timestamp LIMIT $3)
        UNION ALL
        (SELECT x.workflow_uuid FROM {s}.workflow_output x
            WHERE x.retention_timestamp < (SELECT output FROM f) AND x.retention_timestamp < (SELECT cutoff FROM c)
            ORDER BY x.retention_timestamp LIMIT $3)
        LIMIT $3
    ) seen
    WHERE NOT EXISTS (SELECT 1 FROM {s}.workflow_status w WHERE w.workflow_uuid = seen.workflow_uuid)
),
step AS MATERIALIZED (
    SELECT workflow_uuid, function_id FROM (
        (SELECT x.workflow_uuid, x.function_id FROM {s}.operation_outputs x
            WHERE x.retention_timestamp >= (SELECT step FROM f) AND x.retention_timestamp < (SELECT cutoff FROM c)
            ORDER BY x.retention_timestamp LIMIT $3)
        UNION ALL
        (SELECT x.workflow_uuid, x.function_id FROM {s}.operation_outputs x
            WHERE x.retention_timestamp < (SELECT step FROM f) AND x.retention_timestamp < (SELECT cutoff FROM c)
            ORDER BY x.retention_timestamp LIMIT $3)
        LIMIT $3
    ) seen
    WHERE NOT EXISTS (SELECT 1 FROM {s}.workflow_status w WHERE w.workflow_uuid = seen.workflow_uuid)
),
held_input AS (
    SELECT x.workflow_uuid FROM {s}.workflow_input x
    WHERE x.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM input)) FOR UPDATE SKIP LOCKED
),
held_output AS (
    SELECT x.workflow_uuid FROM {s}.workflow_output x
    WHERE x.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM output)) FOR UPDATE SKIP LOCKED
),
held_step AS (
    SELECT x.workflow_uuid, x.function_id FROM {s}.operation_outputs x
    WHERE (x.workflow_uuid, x.function_id) IN (SELECT workflow_uuid, function_id FROM step) FOR UPDATE SKIP LOCKED
)
SELECT set_config('mainstay.orphans', json_build_object(
    'input', (SELECT coalesce(json_agg(workflow_uuid), '[]') FROM held_input),
    'output', (SELECT coalesce(json_agg(workflow_uuid), '[]') FROM held_output),
    'step', (SELECT coalesce(json_agg(json_build_object('id', workflow_uuid, 'n', function_id)), '[]') FROM held_step)
)::text, true) IS NOT NULL AS picked
