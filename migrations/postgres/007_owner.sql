ALTER TABLE {{schema}}.workflow_status
    ADD COLUMN IF NOT EXISTS owner_xid text DEFAULT NULL;
