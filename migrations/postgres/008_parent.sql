ALTER TABLE {{schema}}.workflow_status ADD COLUMN IF NOT EXISTS parent_workflow_id text DEFAULT NULL;
CREATE INDEX IF NOT EXISTS idx_workflow_status_parent_workflow_id ON {{schema}}.workflow_status (parent_workflow_id);
