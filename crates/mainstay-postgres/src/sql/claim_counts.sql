-- What Admission asks for, under the lock, each count bounded by its limit; a limit of NULL is not counted. A start of ours
-- is a row of `starts`; a foreign one is a flagged row whose executor carries no `~`. `oldest` is the first of the latest
-- `starts_limit` starts: a window opens when that one leaves it. The status of a count comes from a sub-select:
-- `status = 'PENDING'` as a literal implies the predicate of idx_workflow_status_pending, and the count then walks every
-- pending row of the database.
-- params: now bigint, system text, queue text, app text, planned bigint, running_limit int, starts_limit int, period_ms bigint
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
queue AS MATERIALIZED (SELECT q.xmin::text::bigint AS revision FROM {s}.queues q WHERE q.name = $3::text),
judged AS MATERIALIZED (
    SELECT CASE
        WHEN current_setting('mainstay.claim') <> 'open' THEN current_setting('mainstay.claim')
        WHEN NOT EXISTS (SELECT 1 FROM queue) THEN 'changed'
        WHEN (SELECT queue.revision FROM queue) <> $5::bigint THEN 'changed'
        ELSE 'open'
    END AS state
),
m AS MATERIALIZED (
    SELECT t.now, judged.state,
        CASE WHEN judged.state = 'open' THEN coalesce($6::int, 0) ELSE 0 END AS running_limit,
        CASE WHEN judged.state = 'open' THEN coalesce($7::int, 0) ELSE 0 END AS starts_limit
    FROM t, judged
),
starts AS MATERIALIZED (
    SELECT s.at, sum(s.n) OVER (ORDER BY s.at DESC, s.ours ROWS UNBOUNDED PRECEDING) AS upto, s.n FROM (
        (SELECT x.at, x.n, true AS ours FROM {m}.starts x
            WHERE x.system = $2::text AND x.queue = $3 AND x.at > (SELECT now FROM m) - $8::bigint
            ORDER BY x.at DESC LIMIT (SELECT starts_limit FROM m))
        UNION ALL
        (SELECT w.started_at_epoch_ms, 1, false FROM {s}.workflow_status w
            WHERE w.queue_name = $3 AND w.rate_limited = true AND w.started_at_epoch_ms > (SELECT now FROM m) - $8
                AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND w.executor_id NOT LIKE '%~%'
                AND (w.application_name = $4::text OR w.application_name IS NULL)
            ORDER BY w.started_at_epoch_ms DESC LIMIT (SELECT starts_limit FROM m))
    ) s
)
SELECT m.now, m.state,
    (SELECT count(*) FROM (SELECT 1 FROM {s}.workflow_status w
        WHERE w.queue_name = $3 AND w.status IN ('ENQUEUED', 'PENDING') AND w.status = (SELECT 'PENDING')
            AND (w.application_name = $4 OR w.application_name IS NULL)
        ORDER BY w.priority, w.created_at LIMIT (SELECT running_limit FROM m)) p) AS running,
    least((SELECT coalesce(sum(n), 0) FROM starts), m.starts_limit)::bigint AS starts,
    (SELECT min(at) FROM starts WHERE upto - n < m.starts_limit) AS oldest
FROM m
