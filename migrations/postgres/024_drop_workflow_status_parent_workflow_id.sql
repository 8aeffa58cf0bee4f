DROP INDEX {{concurrently}} IF EXISTS {{schema}}.idx_workflow_status_parent_workflow_id;
