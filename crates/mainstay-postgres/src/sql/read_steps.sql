-- Recorded steps from a position on: as many as a number of bytes holds, one at least, and the one after those, which shows
-- that there is more; at most 1,001. No row: there is no such workflow. A row without a position: it has no such step.
-- params: id text, from int, bytes bigint
SELECT o.function_id, o.function_name, o.output, o.error, o.child_workflow_id, o.serialization, o.started_at_epoch_ms,
    o.completed_at_epoch_ms
FROM {s}.workflow_status w
LEFT JOIN LATERAL (
    SELECT o.* FROM (
        SELECT o.*, row_number() OVER (ORDER BY o.function_id) AS place,
            sum(coalesce(octet_length(o.error), octet_length(o.output), 0))
                OVER (ORDER BY o.function_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ahead
        FROM (
            SELECT * FROM {s}.operation_outputs o WHERE o.workflow_uuid = $1::text AND o.function_id >= $2::int
            ORDER BY o.function_id LIMIT 1001
        ) o
    ) o
    WHERE o.place <= 2 OR o.ahead <= $3::bigint
) o ON true
WHERE w.workflow_uuid = $1
ORDER BY o.function_id
