ALTER TABLE {{schema}}.workflow_schedules
    ADD COLUMN IF NOT EXISTS queue_name text DEFAULT NULL;
