ALTER TABLE {{schema}}.workflow_status DROP CONSTRAINT IF EXISTS uq_workflow_status_queue_name_dedup_id;
