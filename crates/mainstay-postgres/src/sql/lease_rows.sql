-- One page of the pending index in (created, id) order from where the last call ended; there is no index by executor. The
-- limit bounds the rows looked at. The lease keeps the place and goes with the last page: nothing of the dead can become
-- pending behind it. Whether the executor lives is asked here, where a lease that another take-over removed is gone.
-- params: now bigint, system text, executor text, fallback text, limit int
-- use: part_now
, l AS MATERIALIZED (
    SELECT walked_created, walked_id FROM {m}.leases
    WHERE system = $2 AND executor = $3 AND current_setting('mainstay.over') = 'ended'
),
page AS MATERIALIZED (
    SELECT w.workflow_uuid, w.created_at, w.executor_id
    FROM {s}.workflow_status w
    WHERE w.status = 'PENDING' AND w.created_at >= (SELECT walked_created FROM l)
        AND (w.created_at, w.workflow_uuid COLLATE "C") > ((SELECT walked_created FROM l), (SELECT walked_id FROM l))
    ORDER BY w.created_at, w.workflow_uuid COLLATE "C"
    LIMIT $5
),
held AS MATERIALIZED (
    SELECT w.workflow_uuid, w.status, w.executor_id
    FROM {s}.workflow_status w
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM page WHERE executor_id = $3))
    ORDER BY w.workflow_uuid COLLATE "C"
    FOR NO KEY UPDATE OF w
),
moved AS (
    UPDATE {s}.workflow_status w SET
        status = 'ENQUEUED', started_at_epoch_ms = NULL,
-- if owner
        owner_xid = NULL,
-- end
        queue_name = coalesce(nullif(w.queue_name, ''), $4), updated_at = greatest(t.now, w.updated_at)
    FROM t
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM held WHERE status = 'PENDING' AND executor_id = $3))
    RETURNING w.workflow_uuid, w.queue_name
),
walked AS (
    UPDATE {m}.leases x SET walked_created = p.created_at, walked_id = p.workflow_uuid
    FROM (SELECT created_at, workflow_uuid FROM page ORDER BY created_at DESC, workflow_uuid COLLATE "C" DESC LIMIT 1) p
    WHERE x.system = $2 AND x.executor = $3 AND (SELECT count(*) FROM page) = $5
    RETURNING x.executor
),
through AS (
    DELETE FROM {m}.leases x
    WHERE x.system = $2 AND x.executor = $3 AND EXISTS (SELECT 1 FROM l) AND (SELECT count(*) FROM page) < $5
)
SELECT EXISTS (SELECT 1 FROM walked) AS more, m.workflow_uuid, m.queue_name,
    current_setting('mainstay.over') <> 'ended'
        AND EXISTS (SELECT 1 FROM {m}.leases WHERE system = $2 AND executor = $3) AS alive
FROM t LEFT JOIN moved m ON true
ORDER BY m.workflow_uuid COLLATE "C"
