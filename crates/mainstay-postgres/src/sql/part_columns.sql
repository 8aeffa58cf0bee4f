-- Columns of a workflow row `w`, as `row::workflow` reads them.
w.workflow_uuid, w.status, w.name, w.created_at, w.updated_at, w.class_name::text AS class_name,
w.config_name::text AS config_name, w.queue_name, w.queue_partition_key, w.deduplication_id, w.executor_id,
w.application_name, w.application_version, w.serialization, w.parent_workflow_id, w.forked_from, w.schedule_name,
w.started_at_epoch_ms, w.completed_at, w.delay_until_epoch_ms, w.workflow_deadline_epoch_ms, w.workflow_timeout_ms,
w.attributes::text AS attributes, w.priority, w.recovery_attempts, w.rate_limited, w.was_forked_from,
w.authenticated_user, w.assumed_role, w.authenticated_roles
