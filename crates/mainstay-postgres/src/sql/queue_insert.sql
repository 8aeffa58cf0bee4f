-- Makes a queue, unless its name is there. Every queue has priorities; peers that look at the flags find them set.
-- params: now bigint, name text, app text, concurrency int, worker int, rate_max int, rate_sec float, part int, part_worker int, part_rate_max int, part_rate_sec float, partitioned bool, polling float
-- use: part_now
INSERT INTO {s}.queues AS q (name, application_name, concurrency, worker_concurrency, rate_limit_max,
    rate_limit_period_sec, partition_concurrency, partition_worker_concurrency, partition_rate_limit_max,
    partition_rate_limit_period_sec, priority_enabled, partition_queue, polling_interval_sec, created_at, updated_at)
SELECT $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, true, $12, $13, t.now, t.now FROM t
ON CONFLICT DO NOTHING
RETURNING (to_jsonb(q) || jsonb_build_object('revision', q.xmin::text::bigint))::text AS queue
