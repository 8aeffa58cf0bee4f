-- Outcomes, in the shape of the row: in a table of their own where its input is in one. Judged and locked already, so the
-- update tests nothing: a test of the status would read every pending row.
-- params: now bigint, ords int[], ids text[], statuses text[], outputs text[], errors text[]
-- use: part_now
, g AS MATERIALIZED (
    SELECT g.id, g.status, g.output, g.error, g.status IN ('SUCCESS', 'ERROR') AS stays, w.queue,
-- if inline
        w.inputs IS NULL AND
-- else
        true OR
-- end
-- if split
        (SELECT true FROM {s}.workflow_input i WHERE i.workflow_uuid = g.id) IS NOT NULL
-- else
        false
-- end
        AS split
    FROM unnest($2, $3, $4, $5, $6) AS g (ord, id, status, output, error)
    CROSS JOIN LATERAL (
        SELECT w.queue_name AS queue
-- if inline
            , w.inputs
-- end
        FROM {s}.workflow_status w WHERE w.workflow_uuid = g.id OFFSET 0) w
    WHERE g.ord = ANY ((SELECT current_setting('mainstay.good')::int[])::int[])
),
u AS (
    UPDATE {s}.workflow_status w SET
        status = g.status, deduplication_id = NULL,
-- if owner
        owner_xid = NULL,
-- end
-- if inline
        output = CASE WHEN NOT g.split THEN g.output END, error = CASE WHEN NOT g.split THEN g.error END,
-- end
        queue_name = CASE WHEN g.stays THEN w.queue_name END,
        started_at_epoch_ms = CASE WHEN g.stays THEN w.started_at_epoch_ms END,
        updated_at = greatest(t.now, w.updated_at), completed_at = greatest(t.now, w.updated_at)
    FROM g, t WHERE w.workflow_uuid = g.id
    RETURNING w.workflow_uuid AS id, w.completed_at, g.split, g.status, g.output, g.error, g.queue, true AS pending
)
-- if split
, o AS (
    INSERT INTO {s}.workflow_output (workflow_uuid, output, error, retention_timestamp)
    SELECT u.id, u.output, u.error, u.completed_at FROM u WHERE u.split AND u.status <> 'CANCELLED'
    ON CONFLICT (workflow_uuid) DO UPDATE SET output = excluded.output, error = excluded.error
),
x AS (
    DELETE FROM {s}.workflow_output x WHERE x.workflow_uuid = ANY (ARRAY(
        SELECT u.id FROM u WHERE NOT u.split OR u.status = 'CANCELLED'))
)
-- end
SELECT ARRAY(SELECT u.id FROM u) AS ended,
-- use: part_rooms
