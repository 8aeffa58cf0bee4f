-- The latest version of the application $7 or of none.
newest AS MATERIALIZED (
    SELECT v.version_name FROM (
        (SELECT a.version_name, a.version_timestamp FROM {s}.application_versions a
            WHERE a.application_name = $7::text
            ORDER BY a.version_timestamp DESC, a.version_name COLLATE "C" DESC LIMIT 1)
        UNION ALL
        (SELECT a.version_name, a.version_timestamp FROM {s}.application_versions a
            WHERE a.application_name IS NULL
            ORDER BY a.version_timestamp DESC, a.version_name COLLATE "C" DESC LIMIT 1)
    ) v ORDER BY v.version_timestamp DESC, v.version_name COLLATE "C" DESC LIMIT 1
)
