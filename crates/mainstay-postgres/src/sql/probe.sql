-- One probe for all lanes of a process: which queues have an eligible row, limits aside. Holes as in part_pick, one for each
-- queue, NULL where none is known; without them a retired backlog would be read every time.
-- params: now bigint, version text, queues text[], names text[], classes text[], configs text[], app text, hole_priorities int[], hole_tos bigint[], hole_latests bool[], internal text
WITH -- the version
-- use: part_newest
, m AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now,
        NOT EXISTS (SELECT 1 FROM newest) OR (SELECT version_name FROM newest) = $2::text AS latest
),
reg AS MATERIALIZED (
    SELECT r.name, r.class, r.config FROM unnest($4::text[], $5::text[], $6::text[]) AS r (name, class, config)
),
q AS MATERIALIZED (
    SELECT u.name, u.ord, CASE WHEN u.latest = m.latest THEN u.priority ELSE 2147483647 END AS priority,
        CASE WHEN u.latest = m.latest THEN u.to_created ELSE '-9223372036854775808' END AS to_created
    FROM unnest($3::text[], $8::int[], $9::bigint[], $10::boolean[])
        WITH ORDINALITY AS u (name, priority, to_created, latest, ord), m
    WHERE u.name = $11::text OR EXISTS (SELECT 1 FROM {s}.queues k WHERE k.name = u.name)
)
SELECT m.now, (SELECT w.delay_until_epoch_ms FROM {s}.workflow_status w
        WHERE w.status = 'DELAYED' AND (w.application_name = $7 OR w.application_name IS NULL)
            AND w.delay_until_epoch_ms IS NOT NULL
        ORDER BY w.delay_until_epoch_ms LIMIT 1) AS next_due,
    ARRAY(
        SELECT q.name FROM q
        WHERE EXISTS (SELECT 1 FROM (
            SELECT w.name FROM {s}.workflow_status w
            WHERE w.queue_name = q.name AND w.status = 'ENQUEUED'
                AND w.priority < q.priority
                AND (w.application_version = $2 OR (w.application_version IS NULL AND m.latest))
                AND (w.application_name = $7 OR w.application_name IS NULL)
                AND ((w.name, coalesce(w.class_name, '')::text, coalesce(w.config_name, '')::text)
                    IN (SELECT r.name, r.class, r.config FROM reg r)) IS TRUE
            ORDER BY w.priority, w.created_at LIMIT 1) x)
        OR EXISTS (SELECT 1 FROM (
            SELECT w.name FROM {s}.workflow_status w
            WHERE w.queue_name = q.name AND w.status = 'ENQUEUED'
                AND (w.priority, w.created_at) >= (q.priority, q.to_created)
                AND (w.application_version = $2 OR (w.application_version IS NULL AND m.latest))
                AND (w.application_name = $7 OR w.application_name IS NULL)
                AND ((w.name, coalesce(w.class_name, '')::text, coalesce(w.config_name, '')::text)
                    IN (SELECT r.name, r.class, r.config FROM reg r)) IS TRUE
            ORDER BY w.priority, w.created_at LIMIT 1) x)
        ORDER BY q.ord
    ) AS due
FROM m
