-- Claim of a queue without a fleet limit: one statement in autocommit, READ COMMITTED, one trip.
-- Parameters: part_gate.sql and part_pick.sql. A reply with `picked` = room answers More, with fewer Drained.
-- name: claim_plain
-- params: now system claim_bytes row_bytes queue executor app version token revision room names classes configs caps park_error hole_priority hole_to hole_latest
-- parts: part_gate part_queue part_pick part_flip part_rows

-- The same token again: rows of the queue that it still holds, in order. Linear in the queue's running rows, so it is
-- sent only for a repeat, before the claim itself. The status: see fleet_counts.
-- name: claim_repeat
-- params: now system claim_bytes row_bytes queue token executor
WITH m AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now, CASE WHEN EXISTS (
            SELECT 1 FROM mainstay.leases WHERE system = $2::text AND executor = $7::text AND NOT ended
        ) THEN 'open' ELSE 'unleased' END AS state, NULL::jsonb AS queue_row, NULL::boolean AS latest
),
ran AS MATERIALIZED (
    SELECT w.* FROM dbos.workflow_status w
    WHERE w.queue_name = $5::text AND w.status IN ('ENQUEUED', 'PENDING') AND w.status = (SELECT 'PENDING')
        AND w.owner_xid = $6::text AND (SELECT state FROM m) = 'open'
    ORDER BY w.priority, w.created_at
),
picked AS MATERIALIZED (SELECT workflow_uuid FROM ran),
parked AS (SELECT workflow_uuid, priority, created_at FROM ran WHERE false)
-- parts: part_rows

-- Finds the hole in front of a queue: the ineligible rows at the front of the first priority in line. Read only and off
-- the claim's path: sent after a claim that took over 20 ms, then no more often than costs 1 % of a connection, so it
-- alone pays for the stretch. A row that comes back into the hole (a recovery, a release, a foreign clock) is seen with
-- the next such look at the latest. Bounds and orders begin with the priority, which no other index can serve: with
-- the priority as an equation the planner may take the index on created_at and read finished rows.
-- name: claim_hole
-- params: queue app version names classes configs
WITH newest AS MATERIALIZED (
    SELECT v.version_name FROM (
        (SELECT version_name, version_timestamp FROM dbos.application_versions
            WHERE application_name = $2::text ORDER BY version_timestamp DESC LIMIT 1)
        UNION ALL
        (SELECT version_name, version_timestamp FROM dbos.application_versions
            WHERE application_name IS NULL ORDER BY version_timestamp DESC LIMIT 1)
    ) v ORDER BY v.version_timestamp DESC LIMIT 1
),
m AS MATERIALIZED (
    SELECT NOT EXISTS (SELECT 1 FROM newest) OR (SELECT version_name FROM newest) = $3::text AS latest
),
reg AS MATERIALIZED (
    SELECT r.name, r.class, r.config FROM unnest($4::text[], $5::text[], $6::text[]) AS r (name, class, config)
),
head AS MATERIALIZED (
    SELECT w.priority FROM dbos.workflow_status w
    WHERE w.queue_name = $1::text AND w.status = 'ENQUEUED' ORDER BY w.priority, w.created_at LIMIT 1
),
live AS MATERIALIZED (
    SELECT w.priority, w.created_at FROM dbos.workflow_status w
    WHERE w.queue_name = $1 AND w.status = 'ENQUEUED' AND w.priority >= (SELECT priority FROM head)
        AND (w.application_version = $3 OR (w.application_version IS NULL AND (SELECT latest FROM m)))
        AND (w.application_name = $2 OR w.application_name IS NULL)
        AND ((w.name, coalesce(w.class_name, '')::text, coalesce(w.config_name, '')::text)
            IN (SELECT r.name, r.class, r.config FROM reg r)) IS TRUE
    ORDER BY w.priority, w.created_at LIMIT 1
),
last AS MATERIALIZED (
    SELECT w.created_at FROM dbos.workflow_status w
    WHERE w.queue_name = $1 AND w.status = 'ENQUEUED' AND w.priority <= (SELECT priority FROM head)
    ORDER BY w.priority DESC, w.created_at DESC LIMIT 1
)
SELECT m.latest AS hole_latest, head.priority AS hole_priority,
    coalesce((SELECT live.created_at FROM live WHERE live.priority = head.priority), (SELECT created_at + 1 FROM last)) AS hole_to
FROM m, head
