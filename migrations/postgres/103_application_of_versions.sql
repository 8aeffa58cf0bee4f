ALTER TABLE {{schema}}.application_versions
    ADD COLUMN IF NOT EXISTS application_name text DEFAULT NULL;
