-- Finds the hole in front of a queue: the ineligible rows at the front of the first priority in line, where they are
-- `least` at least. Read only and off the claim's path: sent after a claim that took long, and no more often than costs 1 %
-- of a connection, but after 5 s at the latest, so it alone pays for the stretch. A row that comes into the hole (a recovery
-- or release by another process, a foreign clock, a commit that came late) is seen with the next such look. Bounds and orders
-- begin with the priority, which no other index can serve: with the priority as an equation the planner may take the index on
-- created_at and read finished rows.
-- params: queue text, version text, names text[], classes text[], configs text[], least int, app text
WITH -- the version
-- use: part_newest
, m AS MATERIALIZED (
    SELECT NOT EXISTS (SELECT 1 FROM newest) OR (SELECT version_name FROM newest) = $2::text AS latest
),
reg AS MATERIALIZED (
    SELECT r.name, r.class, r.config FROM unnest($3::text[], $4::text[], $5::text[]) AS r (name, class, config)
),
head AS MATERIALIZED (
    SELECT w.priority FROM {s}.workflow_status w
    WHERE w.queue_name = $1::text AND w.status = 'ENQUEUED' ORDER BY w.priority, w.created_at LIMIT 1
),
far AS MATERIALIZED (
    SELECT w.priority, w.created_at FROM {s}.workflow_status w
    WHERE w.queue_name = $1 AND w.status = 'ENQUEUED' AND w.priority >= (SELECT priority FROM head)
    ORDER BY w.priority, w.created_at OFFSET $6::int - 1 LIMIT 1
),
live AS MATERIALIZED (
    SELECT w.priority, w.created_at FROM {s}.workflow_status w
    WHERE w.queue_name = $1 AND w.status = 'ENQUEUED' AND w.priority >= (SELECT priority FROM head)
        AND (w.application_version = $2 OR (w.application_version IS NULL AND (SELECT latest FROM m)))
        AND (w.application_name = $7 OR w.application_name IS NULL)
        AND ((w.name, coalesce(w.class_name, '')::text, coalesce(w.config_name, '')::text)
            IN (SELECT r.name, r.class, r.config FROM reg r)) IS TRUE
    ORDER BY w.priority, w.created_at LIMIT 1
),
last AS MATERIALIZED (
    SELECT w.created_at FROM {s}.workflow_status w
    WHERE w.queue_name = $1 AND w.status = 'ENQUEUED' AND w.priority <= (SELECT priority FROM head)
    ORDER BY w.priority DESC, w.created_at DESC LIMIT 1
),
hole AS MATERIALIZED (
    SELECT m.latest, head.priority, coalesce((SELECT live.created_at FROM live WHERE live.priority = head.priority),
        (SELECT created_at + 1 FROM last)) AS upto
    FROM m, head
)
SELECT hole.latest AS hole_latest, hole.priority AS hole_priority, hole.upto AS hole_to
FROM hole JOIN far ON far.priority = hole.priority AND far.created_at < hole.upto
