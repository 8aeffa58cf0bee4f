DROP INDEX {{concurrently}} IF EXISTS {{schema}}.workflow_status_executor_id_index;
