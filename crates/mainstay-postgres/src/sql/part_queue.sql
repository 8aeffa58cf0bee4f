-- Queue row, version and registered functions, in every claim that takes. `m` is one row: what the claim may do. A claim
-- that was planned with another revision takes nothing. `latest`: unversioned rows are ours to run.
, queue AS MATERIALIZED (
    SELECT q.xmin::text::bigint AS revision, q.rate_limit_max IS NOT NULL AS rated,
        ceil(least(q.rate_limit_period_sec, 1e12) * 1000)::bigint AS window_ms
    FROM {s}.queues q WHERE q.name = $5::text
),
-- use: part_newest
, reg AS MATERIALIZED (
    SELECT r.name, r.class, r.config, r.cap
    FROM unnest($12::text[], $13::text[], $14::text[], $15::int[]) AS r (name, class, config, cap)
),
judged AS MATERIALIZED (
    SELECT CASE
        WHEN entry.state <> 'open' OR $10::bigint IS NULL THEN entry.state
        WHEN NOT EXISTS (SELECT 1 FROM queue) THEN 'changed'
        WHEN (SELECT queue.revision FROM queue) <> $10 THEN 'changed'
        ELSE 'open'
    END AS state FROM entry
),
m AS MATERIALIZED (
    SELECT t.now, judged.state,
        CASE WHEN judged.state = 'open' THEN $11::int ELSE 0 END AS room,
        NOT EXISTS (SELECT 1 FROM newest) OR (SELECT version_name FROM newest) = $8::text AS latest,
        $10 IS NOT NULL AND coalesce((SELECT queue.rated FROM queue), false) AS rated,
        (SELECT greatest(queue.window_ms, 3600000) FROM queue WHERE queue.rated) AS kept_ms
    FROM t, judged
)
