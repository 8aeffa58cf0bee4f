ALTER TABLE {{schema}}.workflow_status ADD COLUMN IF NOT EXISTS delay_until_epoch_ms bigint DEFAULT NULL;
CREATE INDEX IF NOT EXISTS idx_workflow_status_delayed ON {{schema}}.workflow_status (delay_until_epoch_ms)
    WHERE status = 'DELAYED';
