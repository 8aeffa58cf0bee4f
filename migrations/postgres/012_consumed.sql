ALTER TABLE {{schema}}.notifications ADD COLUMN IF NOT EXISTS consumed boolean NOT NULL DEFAULT false;
CREATE INDEX IF NOT EXISTS idx_notifications ON {{schema}}.notifications (destination_uuid, topic);
