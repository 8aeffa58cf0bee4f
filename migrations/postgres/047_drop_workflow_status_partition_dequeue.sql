DROP INDEX {{concurrently}} IF EXISTS {{schema}}.idx_workflow_status_partition_dequeue;
