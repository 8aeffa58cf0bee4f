-- Where workflows stand, in the order asked.
-- params: ids text[]
SELECT w.workflow_uuid, w.status,
    CASE WHEN w.status = 'SUCCESS' THEN coalesce(
-- if split
        (SELECT o.output FROM {s}.workflow_output o WHERE o.workflow_uuid = w.workflow_uuid),
-- end
-- if inline
        w.output,
-- end
        NULL) END AS output,
    CASE WHEN w.status IN ('ERROR', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED') THEN coalesce(
-- if split
        (SELECT o.error FROM {s}.workflow_output o WHERE o.workflow_uuid = w.workflow_uuid),
-- end
-- if inline
        w.error,
-- end
        NULL) END AS error
FROM unnest($1::text[]) WITH ORDINALITY AS a (id, place)
LEFT JOIN LATERAL (SELECT * FROM {s}.workflow_status w WHERE w.workflow_uuid = a.id OFFSET 0) w ON true
ORDER BY a.place
