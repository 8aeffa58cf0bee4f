ALTER TABLE {{schema}}.workflow_status
    ADD COLUMN IF NOT EXISTS queue_partition_key text;
