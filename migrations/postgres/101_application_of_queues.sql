ALTER TABLE {{schema}}.queues
    ADD COLUMN IF NOT EXISTS application_name text DEFAULT NULL;
