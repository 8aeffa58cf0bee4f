CREATE UNIQUE INDEX {{concurrently}} IF NOT EXISTS uq_application_versions_unclaimed_version
    ON {{schema}}.application_versions (version_name)
    WHERE application_name IS NULL;
