-- Rows of workflows without their payloads, in the order asked.
-- params: ids text[]
SELECT
-- use: part_columns
FROM unnest($1::text[]) WITH ORDINALITY AS a (id, place)
LEFT JOIN LATERAL (SELECT * FROM {s}.workflow_status w WHERE w.workflow_uuid = a.id OFFSET 0) w ON true
ORDER BY a.place
