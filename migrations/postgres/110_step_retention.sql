-- The default is stable, so the server stores its value once and does not write the table anew.
ALTER TABLE {{schema}}.operation_outputs ADD COLUMN IF NOT EXISTS retention_timestamp bigint NOT NULL
    DEFAULT pg_catalog.floor(extract(epoch FROM pg_catalog.now()) * 1000)::bigint;
