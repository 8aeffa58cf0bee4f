ALTER TABLE {{schema}}.workflow_status
    ADD COLUMN IF NOT EXISTS debounce_deadline_epoch_ms bigint DEFAULT NULL,
    ADD COLUMN IF NOT EXISTS is_debounced boolean NOT NULL DEFAULT false;
