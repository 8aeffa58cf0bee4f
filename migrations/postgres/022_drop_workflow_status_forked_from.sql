DROP INDEX {{concurrently}} IF EXISTS {{schema}}.idx_workflow_status_forked_from;
