CREATE TABLE {{schema}}.application_versions (
    version_id text NOT NULL PRIMARY KEY,
    version_name text NOT NULL UNIQUE,
    version_timestamp bigint NOT NULL DEFAULT pg_catalog.floor(extract(epoch FROM pg_catalog.now()) * 1000)::bigint,
    created_at bigint NOT NULL DEFAULT pg_catalog.floor(extract(epoch FROM pg_catalog.now()) * 1000)::bigint
);
