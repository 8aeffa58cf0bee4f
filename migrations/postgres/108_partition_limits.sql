ALTER TABLE {{schema}}.queues
    ADD COLUMN IF NOT EXISTS partition_concurrency int4 DEFAULT NULL,
    ADD COLUMN IF NOT EXISTS partition_worker_concurrency int4 DEFAULT NULL,
    ADD COLUMN IF NOT EXISTS partition_rate_limit_max int4 DEFAULT NULL,
    ADD COLUMN IF NOT EXISTS partition_rate_limit_period_sec double precision DEFAULT NULL;
