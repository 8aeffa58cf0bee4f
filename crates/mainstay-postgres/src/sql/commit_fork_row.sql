-- The row of a copy; nothing where the id is taken. Its source is held.
-- params: now bigint, source text, id text, version text, queue text, key text
-- use: part_now
, made AS (
    INSERT INTO {s}.workflow_status AS w (workflow_uuid, status, name, authenticated_user, assumed_role,
        authenticated_roles, created_at, updated_at, application_version, class_name, config_name, queue_name,
        queue_partition_key, forked_from, serialization, attributes,
        application_name)
    SELECT $3, 'ENQUEUED', o.name, o.authenticated_user, o.assumed_role, o.authenticated_roles, t.now, t.now,
        coalesce($4, o.application_version), o.class_name, o.config_name, $5, $6, o.workflow_uuid, o.serialization,
        o.attributes,
        o.application_name
    FROM t, {s}.workflow_status o WHERE o.workflow_uuid = $2
    ON CONFLICT DO NOTHING
    RETURNING w.workflow_uuid
)
SELECT made.workflow_uuid AS id FROM made
