DROP INDEX {{concurrently}} IF EXISTS {{schema}}.idx_workflow_status_in_flight;
