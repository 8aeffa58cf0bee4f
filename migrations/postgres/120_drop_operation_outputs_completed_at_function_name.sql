DROP INDEX {{concurrently}} IF EXISTS {{schema}}.idx_operation_outputs_completed_at_function_name;
