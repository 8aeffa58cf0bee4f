-- A queue's row, held until it has been changed, and the latest version of an application.
-- params: name text, app text
SELECT to_jsonb(r)::text AS queue,
    (SELECT v.version_name FROM {s}.application_versions v
        WHERE v.application_name = $2 OR v.application_name IS NULL
        ORDER BY v.version_timestamp DESC, v.version_name COLLATE "C" DESC LIMIT 1) AS latest
FROM {s}.queues q, LATERAL (SELECT q.*, q.xmin::text::bigint AS revision) r
WHERE q.name = $1
FOR UPDATE OF q
