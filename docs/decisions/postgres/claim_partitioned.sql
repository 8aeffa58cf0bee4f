-- Claim of a partitioned queue. With a fleet limit two trips: BEGIN, fleet_lock, fleet_counts, partition_keys |
-- Admission | partition_take, COMMIT. With process limits alone one statement in autocommit: partition_local.

-- Keys that have rows, in rotation order from behind the cursor and around the end, at most `keys_limit` of them, and
-- what Admission asked for of each. A key costs one index descent, not a scan of its rows. `skip` names keys that
-- lately held nothing for this claimer. Foreign starts are read once for all keys, as many as `foreign_limit`.
-- name: partition_keys
-- params: now system queue app cursor keys_limit skip running_limit starts_limit period_ms foreign_limit
WITH RECURSIVE m AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now,
        CASE WHEN current_setting('mainstay.claim') = 'open' THEN $6::int ELSE 0 END AS keys_limit,
        coalesce($8::int, 0) AS running_limit, coalesce($9::int, 0) AS starts_limit
),
above (key) AS (
    (SELECT w.queue_partition_key FROM dbos.workflow_status w
        WHERE w.queue_name = $3::text AND w.status = 'ENQUEUED' AND w.queue_partition_key > $5::text
        ORDER BY w.queue_partition_key LIMIT 1)
    UNION ALL
    SELECT (SELECT w.queue_partition_key FROM dbos.workflow_status w
        WHERE w.queue_name = $3 AND w.status = 'ENQUEUED' AND w.queue_partition_key > a.key
        ORDER BY w.queue_partition_key LIMIT 1)
    FROM above a WHERE a.key IS NOT NULL
),
first AS MATERIALIZED (
    SELECT a.key FROM above a WHERE a.key IS NOT NULL AND NOT (a.key = ANY ($7::text[]))
    LIMIT (SELECT keys_limit FROM m)
),
below (key) AS (
    (SELECT w.queue_partition_key FROM dbos.workflow_status w
        WHERE w.queue_name = $3 AND w.status = 'ENQUEUED' AND w.queue_partition_key > '' AND w.queue_partition_key <= $5
        ORDER BY w.queue_partition_key LIMIT 1)
    UNION ALL
    SELECT (SELECT w.queue_partition_key FROM dbos.workflow_status w
        WHERE w.queue_name = $3 AND w.status = 'ENQUEUED' AND w.queue_partition_key > b.key AND w.queue_partition_key <= $5
        ORDER BY w.queue_partition_key LIMIT 1)
    FROM below b WHERE b.key IS NOT NULL
),
second AS MATERIALIZED (
    SELECT b.key FROM below b WHERE b.key IS NOT NULL AND NOT (b.key = ANY ($7))
    LIMIT (SELECT keys_limit - (SELECT count(*) FROM first) FROM m)
),
k AS MATERIALIZED (
    SELECT x.key, row_number() OVER (ORDER BY x.lap, x.key) AS ord
    FROM (SELECT 1 AS lap, key FROM first UNION ALL SELECT 2, key FROM second) x
),
theirs AS MATERIALIZED (
    SELECT w.queue_partition_key AS key, w.started_at_epoch_ms AS at FROM dbos.workflow_status w
    WHERE w.queue_name = $3 AND w.rate_limited = true AND w.started_at_epoch_ms > (SELECT now FROM m) - $10::bigint
        AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND w.executor_id NOT LIKE '%~%'
        AND (w.application_name = $4::text OR w.application_name IS NULL)
    ORDER BY w.started_at_epoch_ms DESC
    LIMIT (SELECT CASE WHEN starts_limit > 0 THEN $11::int ELSE 0 END FROM m)
)
SELECT k.key, p.running, least(coalesce(s.n, 0), m.starts_limit) AS starts, s.oldest
FROM k CROSS JOIN m
CROSS JOIN LATERAL (
    SELECT count(*) AS running FROM (
        SELECT 1 FROM dbos.workflow_status w
        WHERE w.queue_name = $3 AND w.status IN ('ENQUEUED', 'PENDING') AND w.status = (SELECT 'PENDING')
            AND w.queue_partition_key >= k.key AND w.queue_partition_key <= k.key
            AND (w.application_name = $4 OR w.application_name IS NULL)
        ORDER BY w.queue_partition_key, w.priority LIMIT m.running_limit
    ) p
) p
CROSS JOIN LATERAL (
    SELECT sum(y.n) AS n, min(y.at) FILTER (WHERE y.upto - y.n < m.starts_limit) AS oldest FROM (
        SELECT u.at, u.n, sum(u.n) OVER (ORDER BY u.at DESC ROWS UNBOUNDED PRECEDING) AS upto FROM (
            (SELECT x.at, x.n FROM mainstay.starts x
                WHERE x.system = $2::text AND x.queue = $3 AND x.key = k.key AND x.at > m.now - $10
                ORDER BY x.at DESC LIMIT m.starts_limit)
            UNION ALL
            SELECT f.at, 1 FROM theirs f WHERE f.key = k.key
        ) u
    ) y
) s
ORDER BY k.ord

-- Takes what Admission allows: `caps` stands beside `keys`, in rotation order.
-- name: partition_take
-- params: now system claim_bytes row_bytes queue executor app version token revision room names classes configs caps park_error keys key_caps
WITH RECURSIVE t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
entry AS MATERIALIZED (SELECT current_setting('mainstay.claim') AS state),
k AS MATERIALIZED (
    SELECT u.key, u.cap, u.ord FROM unnest($17::text[], $18::int[]) WITH ORDINALITY AS u (key, cap, ord) WHERE u.cap > 0
)
-- parts: part_queue part_keys_pick part_flip part_starts part_rows

-- Process limits alone: no lock, no count. `busy` and `busy_running` are the keys that run in this process, with
-- counts; `key_limit` is the limit for one key (NULL: none).
-- name: partition_local
-- params: now system claim_bytes row_bytes queue executor app version token revision room names classes configs caps park_error cursor keys_limit skip busy busy_running key_limit
-- parts: part_gate part_keys_walk part_queue part_keys_pick part_flip part_rows
