ALTER TABLE {{schema}}.workflow_schedules
    ADD COLUMN IF NOT EXISTS application_name text DEFAULT NULL;
