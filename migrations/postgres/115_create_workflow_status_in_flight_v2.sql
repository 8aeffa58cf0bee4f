CREATE INDEX {{concurrently}} IF NOT EXISTS idx_workflow_status_in_flight_v2
    ON {{schema}}.workflow_status (queue_name, status, priority, created_at)
    INCLUDE (application_name)
    WHERE status IN ('ENQUEUED', 'PENDING');
