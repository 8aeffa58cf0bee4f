ALTER TABLE {{schema}}.workflow_status ADD COLUMN IF NOT EXISTS forked_from text;
CREATE INDEX IF NOT EXISTS idx_workflow_status_forked_from ON {{schema}}.workflow_status (forked_from);
