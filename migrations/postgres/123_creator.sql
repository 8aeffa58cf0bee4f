ALTER TABLE {{schema}}.workflow_status
    ADD COLUMN IF NOT EXISTS creator_xid text DEFAULT NULL;
