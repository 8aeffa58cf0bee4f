-- Where workflows stand, in the order asked.
-- params: ids text[]
SELECT w.workflow_uuid, w.status,
-- use: part_ended
FROM unnest($1::text[]) WITH ORDINALITY AS a (id, place)
LEFT JOIN LATERAL (SELECT * FROM {s}.workflow_status w WHERE w.workflow_uuid = a.id OFFSET 0) w ON true
ORDER BY a.place
