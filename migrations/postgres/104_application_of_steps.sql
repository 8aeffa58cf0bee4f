ALTER TABLE {{schema}}.operation_outputs
    ADD COLUMN IF NOT EXISTS application_name text DEFAULT NULL;
