ALTER TABLE {{schema}}.workflow_status ADD COLUMN IF NOT EXISTS serialization text DEFAULT NULL;
ALTER TABLE {{schema}}.notifications ADD COLUMN IF NOT EXISTS serialization text DEFAULT NULL;
ALTER TABLE {{schema}}.workflow_events ADD COLUMN IF NOT EXISTS serialization text DEFAULT NULL;
ALTER TABLE {{schema}}.workflow_events_history ADD COLUMN IF NOT EXISTS serialization text DEFAULT NULL;
ALTER TABLE {{schema}}.operation_outputs ADD COLUMN IF NOT EXISTS serialization text DEFAULT NULL;
ALTER TABLE {{schema}}.streams ADD COLUMN IF NOT EXISTS serialization text DEFAULT NULL;
