-- Tail of every claim: whole rows in dispatch order with inputs and recorded steps inline, within the byte budgets.
-- Steps are looked up for every row: attempts do not tell whether a row has any. octet_length reads no TOAST. A row
-- behind a full claim budget comes with sizes alone; at most 1,000 steps of a row are inline. `step_count` is exact up
-- to 1,001: fewer steps inline than counted means that the row's steps are partial. One row without an id: none was
-- taken.
-- name: part_rows
, sized AS MATERIALIZED (
    SELECT r.*, s.step_count, s.step_bytes,
        coalesce((SELECT octet_length(i.inputs) FROM dbos.workflow_input i WHERE i.workflow_uuid = r.workflow_uuid),
            octet_length(r.inputs)) AS input_bytes
    FROM ran r
    CROSS JOIN LATERAL (
        SELECT count(*)::int AS step_count,
            coalesce(sum(coalesce(octet_length(o.output), 0) + coalesce(octet_length(o.error), 0)), 0)::bigint AS step_bytes
        FROM (
            SELECT o.output, o.error FROM dbos.operation_outputs o WHERE o.workflow_uuid = r.workflow_uuid
            ORDER BY o.function_id LIMIT 1001
        ) o
    ) s
),
budgeted AS MATERIALIZED (
    SELECT z.*, coalesce(z.input_bytes, 0) <= $4::bigint AS input_fits,
        sum(least(coalesce(z.input_bytes, 0) + z.step_bytes, $4))
            OVER (ORDER BY z.priority, z.created_at, z.workflow_uuid COLLATE "C") <= $3::bigint AS fits
    FROM sized z
)
SELECT m.now, m.state, m.queue_row, m.latest, (SELECT count(*) FROM picked) AS picked,
    CASE WHEN b.workflow_uuid IS NOT NULL THEN 'row' WHEN p.workflow_uuid IS NOT NULL THEN 'parked' END AS kind,
    coalesce(b.workflow_uuid, p.workflow_uuid) AS id,
    b.name, b.class_name, b.config_name, b.queue_name, b.queue_partition_key, b.priority, b.created_at, b.updated_at,
    b.started_at_epoch_ms, b.recovery_attempts, b.deduplication_id, b.application_name, b.application_version,
    b.owner_xid, b.executor_id, b.workflow_timeout_ms, b.workflow_deadline_epoch_ms, b.serialization,
    b.parent_workflow_id, b.forked_from, b.was_forked_from, b.schedule_name, b.attributes, b.authenticated_user,
    b.assumed_role, b.authenticated_roles, b.rate_limited, b.input_bytes, b.step_count,
    CASE WHEN b.fits AND b.input_fits THEN
        coalesce((SELECT i.inputs FROM dbos.workflow_input i WHERE i.workflow_uuid = b.workflow_uuid), b.inputs)
    END AS input,
    CASE WHEN b.fits AND b.step_count > 0 THEN (
        SELECT json_agg(json_build_array(o.function_id, o.function_name, o.output, o.error, o.child_workflow_id,
            o.serialization, o.started_at_epoch_ms, o.completed_at_epoch_ms) ORDER BY o.function_id)
        FROM (
            SELECT o.*, sum(coalesce(octet_length(o.output), 0) + coalesce(octet_length(o.error), 0))
                OVER (ORDER BY o.function_id) AS upto
            FROM (
                SELECT * FROM dbos.operation_outputs o WHERE o.workflow_uuid = b.workflow_uuid
                ORDER BY o.function_id LIMIT 1000
            ) o
        ) o
        WHERE o.upto <= $4 - CASE WHEN b.input_fits THEN coalesce(b.input_bytes, 0) ELSE 0 END
    ) END AS steps
FROM m
LEFT JOIN (SELECT workflow_uuid, priority, created_at FROM budgeted
    UNION ALL SELECT workflow_uuid, priority, created_at FROM parked) x ON true
LEFT JOIN budgeted b ON b.workflow_uuid = x.workflow_uuid
LEFT JOIN parked p ON p.workflow_uuid = x.workflow_uuid
ORDER BY x.priority, x.created_at, x.workflow_uuid COLLATE "C"
