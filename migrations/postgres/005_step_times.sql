ALTER TABLE {{schema}}.operation_outputs
    ADD COLUMN IF NOT EXISTS started_at_epoch_ms bigint,
    ADD COLUMN IF NOT EXISTS completed_at_epoch_ms bigint;
