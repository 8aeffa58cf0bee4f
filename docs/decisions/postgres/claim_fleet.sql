-- Claim of a queue with a fleet limit. Two trips: BEGIN, fleet_lock, fleet_counts | Admission | fleet_take, COMMIT.
-- One trip where a single queue-wide limit is plain arithmetic: BEGIN, fleet_lock, fleet_one, COMMIT.

-- Lease and queue lock. What follows counts in a later statement: a count in the lock's own statement is read from a
-- snapshot taken before the lock was. The class 1835363956 keeps our locks apart from those of others.
-- name: fleet_lock
-- params: system queue executor
WITH lease AS MATERIALIZED (
    SELECT 1 FROM mainstay.leases WHERE system = $1::text AND executor = $3::text AND NOT ended
    FOR KEY SHARE SKIP LOCKED
),
entry AS MATERIALIZED (
    SELECT CASE
        WHEN EXISTS (SELECT 1 FROM lease) THEN
            CASE WHEN pg_try_advisory_xact_lock(1835363956, hashtext($1 || chr(31) || $2::text)) THEN 'open'
                ELSE 'contended' END
        WHEN EXISTS (SELECT 1 FROM mainstay.leases WHERE system = $1 AND executor = $3 AND NOT ended) THEN 'contended'
        ELSE 'unleased'
    END AS state
)
SELECT set_config('mainstay.claim', entry.state, true) AS state FROM entry

-- What Admission asked for, each count bounded by its limit; a limit of NULL is not counted. A start of ours is a row
-- of mainstay.starts; a foreign one is a flagged row whose executor carries no `~`. `oldest` is the first of the
-- latest `starts_limit` starts: a window opens when that one leaves it. The status of a count comes from a sub-select:
-- `status = 'PENDING'` as a literal implies the predicate of idx_workflow_status_pending, and the count then walks
-- every pending row of the database.
-- name: fleet_counts
-- params: now system queue app revision running_limit starts_limit period_ms
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
queue AS MATERIALIZED (SELECT q.* FROM dbos.queues q WHERE q.name = $3::text),
judged AS MATERIALIZED (
    SELECT CASE
        WHEN current_setting('mainstay.claim') <> 'open' THEN current_setting('mainstay.claim')
        WHEN NOT EXISTS (SELECT 1 FROM queue) THEN 'no_queue'
        WHEN (SELECT updated_at FROM queue) <> $5::bigint THEN 'stale'
        ELSE 'open'
    END AS state
),
m AS MATERIALIZED (
    SELECT t.now, judged.state, set_config('mainstay.claim', judged.state, true) AS kept,
        CASE WHEN judged.state = 'stale' THEN (SELECT to_jsonb(queue) FROM queue) END AS queue_row,
        CASE WHEN judged.state = 'open' THEN coalesce($6::int, 0) ELSE 0 END AS running_limit,
        CASE WHEN judged.state = 'open' THEN coalesce($7::int, 0) ELSE 0 END AS starts_limit
    FROM t, judged
),
starts AS MATERIALIZED (
    SELECT s.at, sum(s.n) OVER (ORDER BY s.at DESC, s.ours ROWS UNBOUNDED PRECEDING) AS upto, s.n FROM (
        (SELECT x.at, x.n, true AS ours FROM mainstay.starts x
            WHERE x.system = $2::text AND x.queue = $3 AND x.at > (SELECT now FROM m) - $8::bigint
            ORDER BY x.at DESC LIMIT (SELECT starts_limit FROM m))
        UNION ALL
        (SELECT w.started_at_epoch_ms, 1, false FROM dbos.workflow_status w
            WHERE w.queue_name = $3 AND w.rate_limited = true AND w.started_at_epoch_ms > (SELECT now FROM m) - $8
                AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND w.executor_id NOT LIKE '%~%'
                AND (w.application_name = $4::text OR w.application_name IS NULL)
            ORDER BY w.started_at_epoch_ms DESC LIMIT (SELECT starts_limit FROM m))
    ) s
)
SELECT m.now, m.state, m.queue_row,
    (SELECT count(*) FROM (SELECT 1 FROM dbos.workflow_status w
        WHERE w.queue_name = $3 AND w.status IN ('ENQUEUED', 'PENDING') AND w.status = (SELECT 'PENDING')
            AND (w.application_name = $4 OR w.application_name IS NULL)
        ORDER BY w.priority, w.created_at LIMIT (SELECT running_limit FROM m)) p) AS running,
    least((SELECT coalesce(sum(n), 0) FROM starts), m.starts_limit) AS starts,
    (SELECT min(at) FROM starts WHERE upto - n < m.starts_limit) AS oldest
FROM m

-- Takes what Admission allows, still under the lock; `room` is its total. The revision is judged once more.
-- name: fleet_take
-- params: now system claim_bytes row_bytes queue executor app version token revision room names classes configs caps park_error hole_priority hole_to hole_latest
WITH RECURSIVE t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
entry AS MATERIALIZED (SELECT current_setting('mainstay.claim') AS state)
-- parts: part_queue part_pick part_flip part_starts part_rows

-- The one-trip form: `counted` narrows the room by the queue's concurrency, or by its window when it has no other
-- limit. The caller compares `taken_room` with Admission for the stop; a test holds the arithmetic against it.
-- name: fleet_one
-- params: now system claim_bytes row_bytes queue executor app version token revision room names classes configs caps park_error hole_priority hole_to hole_latest running_limit starts_limit period_ms
WITH RECURSIVE t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
entry AS MATERIALIZED (SELECT current_setting('mainstay.claim') AS state)
-- parts: part_queue_counted part_pick part_flip part_starts part_rows
