ALTER TABLE {{schema}}.notifications
    ADD COLUMN IF NOT EXISTS consumed_by_function_id int4;
