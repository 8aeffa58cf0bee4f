ALTER TABLE {{schema}}.workflow_status
    ADD COLUMN IF NOT EXISTS application_name text DEFAULT NULL;
