DROP INDEX {{concurrently}} IF EXISTS {{schema}}.workflow_status_status_index;
