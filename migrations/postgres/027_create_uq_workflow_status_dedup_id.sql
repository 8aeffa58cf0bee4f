CREATE UNIQUE INDEX {{concurrently}} IF NOT EXISTS uq_workflow_status_dedup_id
    ON {{schema}}.workflow_status (queue_name, deduplication_id)
    WHERE deduplication_id IS NOT NULL;
