-- Tail of every claim: whole rows in dispatch order with inputs and recorded steps inline, within the byte budgets.
-- Steps are looked up for every row: attempts do not tell whether a row has any. octet_length reads no TOAST. Where not
-- all fits, `walk` goes over the rows in order: each has `most` bytes, its input before its steps, and what it leaves is
-- the next one's. At most 1,000 steps of a row are inline; `next_step` is the first that is not, the very
-- first of a row that `moved` (see part_pick). One row without an id: none was taken.
, sized AS MATERIALIZED (
    SELECT r.*, s.step_count, s.step_bytes, coalesce(
-- if split
            (SELECT octet_length(i.inputs) FROM {s}.workflow_input i WHERE i.workflow_uuid = r.workflow_uuid),
-- end
-- if inline
            octet_length(r.inputs),
-- end
            NULL) AS input_bytes,
        row_number() OVER (ORDER BY r.priority, r.created_at, r.workflow_uuid COLLATE "C") AS ord
    FROM ran r
    CROSS JOIN LATERAL (
        SELECT count(*)::int AS step_count,
            coalesce(sum(coalesce(octet_length(o.error), octet_length(o.output), 0)), 0)::bigint AS step_bytes
        FROM (
            SELECT o.output, o.error FROM {s}.operation_outputs o WHERE o.workflow_uuid = r.workflow_uuid
            ORDER BY o.function_id LIMIT 1001
        ) o
    ) s
),
whole AS MATERIALIZED (
    SELECT coalesce(bool_and(coalesce(z.input_bytes, 0) + z.step_bytes <= $4::bigint)
        AND sum(coalesce(z.input_bytes, 0) + z.step_bytes) <= $3::bigint, true) AS fits
    FROM sized z
),
walk (ord, left_over, most) AS (
    SELECT 0::bigint, $3::bigint, 0::bigint FROM whole WHERE NOT whole.fits
    UNION ALL
    SELECT z.ord, b.left_over - i.used - coalesce((
            SELECT max(o.upto) FROM (
                SELECT sum(coalesce(octet_length(o.error), octet_length(o.output), 0)) OVER (ORDER BY o.function_id)
                    AS upto
                FROM (
                    SELECT * FROM {s}.operation_outputs o WHERE o.workflow_uuid = z.workflow_uuid
                    ORDER BY o.function_id LIMIT 1000
                ) o
            ) o WHERE o.upto <= b.most - i.used), 0)::bigint, b.most
    FROM (SELECT w.ord, w.left_over, least($4::bigint, w.left_over) AS most FROM walk w) b
    JOIN sized z ON z.ord = b.ord + 1
    CROSS JOIN LATERAL (
        SELECT CASE WHEN z.input_bytes <= b.most THEN z.input_bytes ELSE 0 END AS used
    ) i
),
budgeted AS MATERIALIZED (
    SELECT z.*, CASE WHEN z.input_bytes <= y.most THEN y.most - z.input_bytes ELSE y.most END AS step_room,
        z.input_bytes <= y.most AS input_fits
    FROM sized z CROSS JOIN LATERAL (
        SELECT CASE WHEN whole.fits THEN $4::bigint ELSE (SELECT w.most FROM walk w WHERE w.ord = z.ord) END AS most
        FROM whole
    ) y
)
SELECT m.now, m.state, m.latest, (SELECT count(*) FROM picked) AS picked, p.workflow_uuid AS parked,
-- use: part_columns
, w.fence, w.input_bytes::bigint AS input_bytes,
    CASE WHEN w.input_fits THEN coalesce(
-- if split
        (SELECT i.inputs FROM {s}.workflow_input i WHERE i.workflow_uuid = w.workflow_uuid),
-- end
-- if inline
        w.inputs,
-- end
        NULL)
    END AS input,
    CASE WHEN x.moved THEN NULL ELSE s.steps END AS steps, CASE WHEN x.moved THEN 0 ELSE s.next_step END AS next_step
FROM m
LEFT JOIN (SELECT workflow_uuid, priority, created_at, workflow_uuid IN (SELECT v.workflow_uuid FROM moved v) AS moved
        FROM budgeted
    UNION ALL SELECT workflow_uuid, priority, created_at, false FROM parked) x ON true
LEFT JOIN budgeted w ON w.workflow_uuid = x.workflow_uuid
LEFT JOIN parked p ON p.workflow_uuid = x.workflow_uuid
LEFT JOIN LATERAL (
    SELECT (json_agg(json_build_array(o.function_id, o.function_name,
            o.output, o.error, o.child_workflow_id, o.serialization, o.started_at_epoch_ms, o.completed_at_epoch_ms)
            ORDER BY o.function_id) FILTER (WHERE o.fits))::text AS steps,
        min(o.function_id) FILTER (WHERE NOT o.fits) AS next_step
    FROM (
        SELECT o.*, o.place <= 1000 AND o.upto <= w.step_room AS fits FROM (
            SELECT o.*, row_number() OVER (ORDER BY o.function_id) AS place,
                sum(coalesce(octet_length(o.error), octet_length(o.output), 0)) OVER (ORDER BY o.function_id) AS upto
            FROM (
                SELECT * FROM {s}.operation_outputs o WHERE o.workflow_uuid = w.workflow_uuid
                ORDER BY o.function_id LIMIT 1001
            ) o
        ) o
    ) o
) s ON w.step_count > 0
ORDER BY x.priority, x.created_at, x.workflow_uuid COLLATE "C"
