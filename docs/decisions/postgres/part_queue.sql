-- Queue row, version and registered functions, in every claim that takes. `m` is one row: what the claim may do.
-- A claim planned with another revision of the row takes nothing. `latest`: unversioned rows are ours to run.
-- name: part_queue
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
m AS MATERIALIZED (
    SELECT t.now, judged.state,
        CASE WHEN judged.state = 'stale' THEN (SELECT to_jsonb(queue) FROM queue) END AS queue_row,
        CASE WHEN judged.state = 'open' THEN $11::int ELSE 0 END AS room,
        NOT EXISTS (SELECT 1 FROM newest) OR (SELECT version_name FROM newest) = $8::text AS latest,
        coalesce((SELECT greatest(
            CASE WHEN rate_limit_max IS NOT NULL THEN rate_limit_period_sec END,
            CASE WHEN partition_rate_limit_max IS NOT NULL THEN partition_rate_limit_period_sec END) FROM queue), 0)
            AS window_sec
    FROM t, judged
)
