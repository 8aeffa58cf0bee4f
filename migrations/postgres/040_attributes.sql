ALTER TABLE {{schema}}.workflow_status ADD COLUMN IF NOT EXISTS attributes jsonb;
CREATE INDEX IF NOT EXISTS idx_workflow_status_attributes ON {{schema}}.workflow_status USING gin (attributes)
    WHERE attributes IS NOT NULL;
