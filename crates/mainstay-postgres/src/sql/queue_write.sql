-- Changes a queue that is held.
-- params: now bigint, name text, app text, concurrency int, worker int, rate_max int, rate_sec float, part int, part_worker int, part_rate_max int, part_rate_sec float, partitioned bool, polling float
-- use: part_now
UPDATE {s}.queues q SET application_name = $3, concurrency = $4, worker_concurrency = $5, rate_limit_max = $6,
    rate_limit_period_sec = $7, partition_concurrency = $8, partition_worker_concurrency = $9,
    partition_rate_limit_max = $10, partition_rate_limit_period_sec = $11, priority_enabled = true,
    partition_queue = $12, polling_interval_sec = $13, updated_at = greatest(t.now, q.updated_at)
FROM t WHERE q.name = $2
RETURNING (to_jsonb(q) || jsonb_build_object('revision', q.xmin::text::bigint))::text AS queue
