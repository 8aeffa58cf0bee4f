-- Removes the workflows that ended first, with all that hangs on them; the keys of the other tables cascade. One row more
-- than the limit is looked for, which says whether more is left. What another call holds is left to the next collection.
-- params: now bigint, app text, age bigint, limit int
-- use: part_now
, old AS MATERIALIZED (
    SELECT w.workflow_uuid, w.completed_at FROM {s}.workflow_status w
    WHERE w.completed_at <= (SELECT now - $3 FROM t)
        AND w.status IN ('SUCCESS', 'ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
        AND (w.application_name = $2 OR w.application_name IS NULL)
    ORDER BY w.completed_at, w.workflow_uuid COLLATE "C" LIMIT $4::bigint + 1
    FOR UPDATE OF w SKIP LOCKED
),
first AS MATERIALIZED (
    SELECT workflow_uuid FROM old ORDER BY completed_at, workflow_uuid COLLATE "C" LIMIT $4
),
-- if split
inputs AS (
    DELETE FROM {s}.workflow_input x WHERE x.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM first))
),
outputs AS (
    DELETE FROM {s}.workflow_output x WHERE x.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM first))
),
-- end
steps AS (
    DELETE FROM {s}.operation_outputs x WHERE x.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM first))
),
removed AS (
    DELETE FROM {s}.workflow_status w WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM first))
    RETURNING w.workflow_uuid
)
SELECT t.now, (SELECT count(*) FROM old) > $4 AS more, r.workflow_uuid
FROM t LEFT JOIN removed r ON true
