CREATE TABLE {{schema}}.queues (
    queue_id text NOT NULL DEFAULT pg_catalog.gen_random_uuid()::text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    concurrency int4,
    worker_concurrency int4,
    rate_limit_max int4,
    rate_limit_period_sec double precision,
    priority_enabled boolean NOT NULL DEFAULT false,
    partition_queue boolean NOT NULL DEFAULT false,
    polling_interval_sec double precision NOT NULL DEFAULT 1.0,
    created_at bigint NOT NULL DEFAULT pg_catalog.floor(extract(epoch FROM pg_catalog.now()) * 1000)::bigint,
    updated_at bigint NOT NULL DEFAULT pg_catalog.floor(extract(epoch FROM pg_catalog.now()) * 1000)::bigint
);
