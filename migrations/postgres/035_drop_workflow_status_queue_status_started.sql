DROP INDEX {{concurrently}} IF EXISTS {{schema}}.idx_workflow_status_queue_status_started;
