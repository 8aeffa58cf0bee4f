-- Two names, by who made the table.
ALTER TABLE {{schema}}.operation_outputs
    DROP CONSTRAINT IF EXISTS operation_outputs_workflow_uuid_foreign,
    DROP CONSTRAINT IF EXISTS operation_outputs_workflow_uuid_fkey;
