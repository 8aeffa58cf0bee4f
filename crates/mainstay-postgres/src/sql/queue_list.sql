-- The queues of an application and of none, by name.
-- params: app text
SELECT q.name, to_jsonb(r)::text AS queue
FROM {s}.queues q, LATERAL (SELECT q.*, q.xmin::text::bigint AS revision) r
WHERE q.application_name = $1 OR q.application_name IS NULL
ORDER BY q.name COLLATE "C"
