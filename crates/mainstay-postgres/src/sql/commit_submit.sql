-- New rows with their inputs. DO NOTHING without a target swallows a deduplication clash as well as a taken id. Rows with
-- a key come first, in order of key, so that batches of two processes do not wait for each other in a ring. `reusable`
-- marks ids that can recur: what another SDK's delete left under one is removed. A moment is a duration from now
-- (`delays`, `lives`) or an instant (`dues`, `deadlines`).
-- params: now bigint, ords int[], ids text[], tokens text[], names text[], classes text[], configs text[], codecs text[], executors text[], queues text[], keys text[], delays bigint[], dues bigint[], priorities int[], dedups text[], parents text[], apps text[], versions text[], timeouts bigint[], lives bigint[], deadlines bigint[], attributes text[], schedules text[], users text[], roles text[], all_roles text[], inputs text[], reusable bool[]
-- use: part_now
, g AS MATERIALIZED (
    SELECT current_setting('mainstay.good')::int[] AS good,
        coalesce(nullif(current_setting('mainstay.leased', true), ''), '{}')::text[] AS leased,
        9223372036854775807 - greatest(t.now, 0) AS most
    FROM t
),
s AS MATERIALIZED (
    SELECT s.* FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
            $22, $23, $24, $25, $26, $27, $28)
        AS s (ord, id, token, name, class, config, codec, executor, queue, key, delay, due, priority, dedup, parent, app,
            version, timeout, life, deadline, attributes, schedule, username, role, roles, input, reusable)
    WHERE s.ord = ANY ((SELECT g.good FROM g)::int[])
        AND (s.executor IS NULL OR s.executor = ANY ((SELECT g.leased FROM g)::text[]))
),
made AS (
    INSERT INTO {s}.workflow_status AS w (workflow_uuid, status, name, class_name, config_name, serialization,
        executor_id, queue_name, queue_partition_key, delay_until_epoch_ms, priority, deduplication_id,
        parent_workflow_id, application_name, application_version, workflow_timeout_ms, workflow_deadline_epoch_ms,
        attributes, schedule_name, authenticated_user, assumed_role, authenticated_roles, created_at, updated_at,
        started_at_epoch_ms, recovery_attempts,
-- if owner
        creator_xid,
-- end
-- if !write_split
        inputs,
-- end
        owner_xid)
    SELECT s.id,
        CASE WHEN s.queue IS NULL THEN 'PENDING' WHEN coalesce(s.due, s.delay) IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
        s.name, s.class, s.config, s.codec, s.executor, s.queue, s.key, coalesce(s.due,
            CASE WHEN s.delay IS NOT NULL THEN t.now + least(s.delay, g.most) END),
        s.priority, s.dedup, s.parent, s.app, s.version, s.timeout,
        coalesce(s.deadline, CASE WHEN s.life IS NOT NULL THEN t.now + least(s.life, g.most) END,
            CASE WHEN s.queue IS NULL AND s.timeout IS NOT NULL THEN t.now + least(s.timeout, g.most) END),
        s.attributes::jsonb, s.schedule, s.username, s.role, s.roles, t.now, t.now,
        CASE WHEN s.queue IS NULL THEN t.now END, CASE WHEN s.queue IS NULL THEN 1 ELSE 0 END,
-- if owner
        s.token,
-- end
-- if !write_split
        s.input,
-- end
-- if owner
        CASE WHEN s.queue IS NULL THEN s.token END
-- else
        s.token
-- end
    FROM s, t, g
    ORDER BY s.dedup IS NULL, CASE WHEN s.dedup IS NOT NULL THEN s.queue END COLLATE "C", s.dedup COLLATE "C", s.id COLLATE "C"
    ON CONFLICT DO NOTHING
    RETURNING w.workflow_uuid
),
-- if write_split
input AS (
    INSERT INTO {s}.workflow_input (workflow_uuid, inputs, retention_timestamp)
    SELECT s.id, s.input, t.now FROM made JOIN s ON s.id = made.workflow_uuid, t
    ON CONFLICT (workflow_uuid) DO UPDATE SET inputs = excluded.inputs, retention_timestamp = excluded.retention_timestamp
),
-- end
again AS MATERIALIZED (
    SELECT array_agg(made.workflow_uuid) AS ids FROM made JOIN s ON s.id = made.workflow_uuid WHERE s.reusable
),
steps AS (
    DELETE FROM {s}.operation_outputs o WHERE o.workflow_uuid = ANY ((SELECT again.ids FROM again)::text[])
)
-- if split
, outputs AS (
    DELETE FROM {s}.workflow_output o WHERE o.workflow_uuid = ANY ((SELECT again.ids FROM again)::text[])
)
, inputs AS (
    DELETE FROM {s}.workflow_input i WHERE i.workflow_uuid = ANY ((SELECT again.ids FROM again
-- end
-- if write_split
    WHERE false
-- end
-- if split
    )::text[])
)
-- end
SELECT set_config('mainstay.made', (SELECT coalesce(array_agg(made.workflow_uuid), '{}')::text FROM made), true) AS made
