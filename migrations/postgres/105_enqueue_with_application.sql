-- An older signature beside the new one would make calls ambiguous.
DROP FUNCTION IF EXISTS {{schema}}.enqueue_workflow(
    text, text, json[], json, text, text, text, text, bigint, bigint, text, int4, text, text, text, bigint
);
CREATE FUNCTION {{schema}}.enqueue_workflow(
    workflow_name text,
    queue_name text,
    positional_args json[] DEFAULT ARRAY[]::json[],
    named_args json DEFAULT '{}'::json,
    class_name text DEFAULT NULL,
    config_name text DEFAULT NULL,
    workflow_id text DEFAULT NULL,
    app_version text DEFAULT NULL,
    timeout_ms bigint DEFAULT NULL,
    deadline_epoch_ms bigint DEFAULT NULL,
    deduplication_id text DEFAULT NULL,
    priority int4 DEFAULT NULL,
    queue_partition_key text DEFAULT NULL,
    authenticated_user text DEFAULT NULL,
    authenticated_roles text DEFAULT NULL,
    delay_until_epoch_ms bigint DEFAULT NULL,
    application_name text DEFAULT NULL
) RETURNS text
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS {{body}}
DECLARE
    id text := coalesce(enqueue_workflow.workflow_id, pg_catalog.gen_random_uuid()::text);
    token text := pg_catalog.gen_random_uuid()::text;
    moment bigint := pg_catalog.floor(extract(epoch FROM pg_catalog.now()) * 1000)::bigint;
    arguments text;
BEGIN
    IF coalesce(enqueue_workflow.workflow_name, '') = '' THEN
        RAISE EXCEPTION 'Workflow name cannot be null or empty';
    END IF;
    IF coalesce(enqueue_workflow.queue_name, '') = '' THEN
        RAISE EXCEPTION 'Queue name cannot be null or empty';
    END IF;
    IF pg_catalog.json_typeof(enqueue_workflow.named_args) <> 'object' THEN
        RAISE EXCEPTION 'Named args must be a JSON object';
    END IF;
    IF enqueue_workflow.workflow_id = '' THEN
        RAISE EXCEPTION 'Workflow ID cannot be an empty string if provided.';
    END IF;
    IF enqueue_workflow.delay_until_epoch_ms < 0 THEN
        RAISE EXCEPTION 'delay_until_epoch_ms must be >= 0';
    END IF;
    arguments := pg_catalog.json_build_object(
        'positionalArgs', enqueue_workflow.positional_args, 'namedArgs', enqueue_workflow.named_args)::text;
    INSERT INTO {{schema}}.workflow_status AS w (
        workflow_uuid, status, inputs, name, class_name, config_name, queue_name, application_version,
        workflow_timeout_ms, workflow_deadline_epoch_ms, deduplication_id, priority, queue_partition_key,
        serialization, recovery_attempts, created_at, updated_at, owner_xid, authenticated_user,
        authenticated_roles, delay_until_epoch_ms, application_name
    ) VALUES (
        id, CASE WHEN enqueue_workflow.delay_until_epoch_ms IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
        arguments, enqueue_workflow.workflow_name, enqueue_workflow.class_name, enqueue_workflow.config_name,
        enqueue_workflow.queue_name, enqueue_workflow.app_version, enqueue_workflow.timeout_ms,
        enqueue_workflow.deadline_epoch_ms, enqueue_workflow.deduplication_id,
        coalesce(enqueue_workflow.priority, 0), enqueue_workflow.queue_partition_key, 'portable_json', 0,
        moment, moment, token, enqueue_workflow.authenticated_user, enqueue_workflow.authenticated_roles,
        enqueue_workflow.delay_until_epoch_ms, enqueue_workflow.application_name
    )
    ON CONFLICT (workflow_uuid) DO UPDATE SET updated_at = EXCLUDED.updated_at;
    RETURN id;
EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION 'DBOS queue duplicated' USING ERRCODE = 'unique_violation', DETAIL = pg_catalog.format(
        'Workflow %s with queue %s and deduplication ID %s already exists',
        id, enqueue_workflow.queue_name, enqueue_workflow.deduplication_id);
END
{{body}};
