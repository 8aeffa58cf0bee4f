-- part_queue.sql with the room narrowed inside by one queue-wide limit, for the one-trip form of claim_fleet.sql:
--   $20 running_limit (NULL: none)  $21 starts_limit (NULL: none)  $22 period_ms
-- least() passes over NULL, so a limit that is not set leaves the room alone.
-- The status of a count comes from a sub-select: `status = 'PENDING'` as a literal implies the predicate of
-- idx_workflow_status_pending, and the count then walks every pending row of the database.
-- name: part_queue_counted
, queue AS MATERIALIZED (
    SELECT q.* FROM dbos.queues q WHERE q.name = $5::text
),
newest AS MATERIALIZED (
    SELECT v.version_name FROM (
        (SELECT version_name, version_timestamp FROM dbos.application_versions
            WHERE application_name = $7::text ORDER BY version_timestamp DESC LIMIT 1)
        UNION ALL
        (SELECT version_name, version_timestamp FROM dbos.application_versions
            WHERE application_name IS NULL ORDER BY version_timestamp DESC LIMIT 1)
    ) v ORDER BY v.version_timestamp DESC LIMIT 1
),
reg AS MATERIALIZED (
    SELECT r.name, r.class, r.config, r.cap
    FROM unnest($12::text[], $13::text[], $14::text[], $15::int[]) AS r (name, class, config, cap)
),
judged AS MATERIALIZED (
    SELECT CASE
        WHEN entry.state <> 'open' OR $10::bigint IS NULL THEN entry.state
        WHEN NOT EXISTS (SELECT 1 FROM queue) THEN 'no_queue'
        WHEN (SELECT updated_at FROM queue) <> $10 THEN 'stale'
        ELSE 'open'
    END AS state FROM entry
),
counted AS MATERIALIZED (
    SELECT least(
        CASE WHEN $20::int IS NOT NULL THEN $20 - (SELECT count(*) FROM (
            SELECT 1 FROM dbos.workflow_status w WHERE w.queue_name = $5 AND w.status IN ('ENQUEUED', 'PENDING') AND w.status = (SELECT 'PENDING')
                AND (w.application_name = $7 OR w.application_name IS NULL)
            ORDER BY w.priority, w.created_at
            LIMIT (SELECT CASE WHEN judged.state = 'open' THEN $20 ELSE 0 END FROM judged)) p) END,
        CASE WHEN $21::int IS NOT NULL THEN $21 - (SELECT coalesce(sum(s.n), 0) FROM (
            (SELECT x.n FROM mainstay.starts x
                WHERE x.system = $2::text AND x.queue = $5 AND x.at > (SELECT now FROM t) - $22::bigint
                ORDER BY x.at DESC LIMIT (SELECT CASE WHEN judged.state = 'open' THEN $21 ELSE 0 END FROM judged))
            UNION ALL
            (SELECT 1 FROM dbos.workflow_status w
                WHERE w.queue_name = $5 AND w.rate_limited = true
                    AND w.started_at_epoch_ms > (SELECT now FROM t) - $22
                    AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND w.executor_id NOT LIKE '%~%'
                    AND (w.application_name = $7 OR w.application_name IS NULL)
                ORDER BY w.started_at_epoch_ms DESC
                LIMIT (SELECT CASE WHEN judged.state = 'open' THEN $21 ELSE 0 END FROM judged))
        ) s) END) AS free
),
m AS MATERIALIZED (
    SELECT t.now, judged.state,
        CASE WHEN judged.state = 'stale' THEN (SELECT to_jsonb(queue) FROM queue) END AS queue_row,
        CASE WHEN judged.state = 'open' THEN greatest(0, least($11::int, (SELECT free FROM counted)))::int ELSE 0 END AS room,
        NOT EXISTS (SELECT 1 FROM newest) OR (SELECT version_name FROM newest) = $8::text AS latest,
        coalesce((SELECT greatest(
            CASE WHEN rate_limit_max IS NOT NULL THEN rate_limit_period_sec END,
            CASE WHEN partition_rate_limit_max IS NOT NULL THEN partition_rate_limit_period_sec END) FROM queue), 0)
            AS window_sec
    FROM t, judged
)
