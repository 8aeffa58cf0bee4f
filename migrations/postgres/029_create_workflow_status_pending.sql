CREATE INDEX {{concurrently}} IF NOT EXISTS idx_workflow_status_pending ON {{schema}}.workflow_status (created_at)
    WHERE status = 'PENDING';
