-- Picks rows of a queue in order and locks them, passing over what a peer holds.
--   $17 hole_priority  $18 hole_to  $19 hole_latest
-- A hole is the front of one priority, created before `hole_to`, known to hold nothing for this claimer (claim_front):
-- the scan takes the priorities before it, then goes on behind it. It counts only while `latest` is what it was. Only a
-- lower bound is a row comparison: as an upper one it does not end an index scan inside the first column.
-- `moved` are rows that ran and came back after the snapshot was taken: it does not show what they recorded meanwhile.
-- The IS TRUE keeps the list of functions a hashed sub-plan: a plain IN may become a join, whose order is not the index's.
, hole AS MATERIALIZED (
    SELECT CASE WHEN m.latest = $19::boolean THEN $17::int ELSE 2147483647 END AS priority,
        CASE WHEN m.latest = $19 THEN $18::bigint ELSE '-9223372036854775808' END AS to_created
    FROM m
),
before AS MATERIALIZED (
    SELECT w.workflow_uuid, w.xmin AS written, coalesce(w.recovery_attempts, 0) AS attempts,
        coalesce(w.recovery_attempts, 0) >= (SELECT r.cap FROM reg r WHERE r.name = w.name
            AND r.class = coalesce(w.class_name, '') AND r.config = coalesce(w.config_name, '') LIMIT 1) AS over
    FROM {s}.workflow_status w
    WHERE w.queue_name = $5 AND w.status = 'ENQUEUED'
        AND w.priority < (SELECT priority FROM hole)
        AND (w.application_version = $8 OR (w.application_version IS NULL AND (SELECT latest FROM m)))
        AND (w.application_name = $7 OR w.application_name IS NULL)
        AND ((w.name, coalesce(w.class_name, '')::text, coalesce(w.config_name, '')::text)
            IN (SELECT r.name, r.class, r.config FROM reg r)) IS TRUE
    ORDER BY w.priority, w.created_at, w.workflow_uuid COLLATE "C"
    LIMIT (SELECT room FROM m)
    FOR NO KEY UPDATE OF w SKIP LOCKED
),
behind AS MATERIALIZED (
    SELECT w.workflow_uuid, w.xmin AS written, coalesce(w.recovery_attempts, 0) AS attempts,
        coalesce(w.recovery_attempts, 0) >= (SELECT r.cap FROM reg r WHERE r.name = w.name
            AND r.class = coalesce(w.class_name, '') AND r.config = coalesce(w.config_name, '') LIMIT 1) AS over
    FROM {s}.workflow_status w
    WHERE w.queue_name = $5 AND w.status = 'ENQUEUED'
        AND (w.priority, w.created_at) >= ((SELECT priority FROM hole), (SELECT to_created FROM hole))
        AND (w.application_version = $8 OR (w.application_version IS NULL AND (SELECT latest FROM m)))
        AND (w.application_name = $7 OR w.application_name IS NULL)
        AND ((w.name, coalesce(w.class_name, '')::text, coalesce(w.config_name, '')::text)
            IN (SELECT r.name, r.class, r.config FROM reg r)) IS TRUE
    ORDER BY w.priority, w.created_at, w.workflow_uuid COLLATE "C"
    LIMIT (SELECT room - (SELECT count(*) FROM before) FROM m)
    FOR NO KEY UPDATE OF w SKIP LOCKED
),
picked AS MATERIALIZED (
    SELECT workflow_uuid, written, attempts, over FROM before
    UNION ALL SELECT workflow_uuid, written, attempts, over FROM behind
),
moved AS MATERIALIZED (
    SELECT p.workflow_uuid FROM picked p WHERE p.written IS DISTINCT FROM (
        SELECT w.xmin FROM {s}.workflow_status w WHERE w.workflow_uuid = p.workflow_uuid)
)
