-- Take-over of a dead executor: BEGIN, take_over_lease, take_over_rows, COMMIT in one trip; called until `more` is
-- false.

-- Ends the lease if its beat is still the observed one. FOR UPDATE first, because the UPDATE alone would not wait for
-- the KEY SHARE of a claim or start that is about to commit. Rows are read by the next statement, which sees those.
-- name: take_over_lease
-- params: system executor beat
WITH l AS MATERIALIZED (
    SELECT system, executor FROM mainstay.leases
    WHERE system = $1::text AND executor = $2::text AND (ended OR beat = $3::bigint)
    FOR UPDATE
),
u AS (
    UPDATE mainstay.leases x SET ended = true FROM l WHERE x.system = l.system AND x.executor = l.executor
    RETURNING x.executor
)
SELECT set_config('mainstay.over', CASE WHEN EXISTS (SELECT 1 FROM u) THEN 'ended' ELSE '' END, true) AS state

-- One page of the pending index, in (created, id) order from where the last call ended; there is no index by executor.
-- `limit` bounds the rows looked at, so a page may move none and still say `more`. The lease row keeps the place, so
-- that no caller can skip a stretch, and goes with the last page: nothing of the dead can become pending behind it.
-- Whether the executor lives is asked here: a lease that another take-over removed meanwhile is still in the snapshot of
-- the statement that waited for it.
-- name: take_over_rows
-- params: now system executor fallback limit
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
l AS MATERIALIZED (
    SELECT walked_created, walked_id FROM mainstay.leases
    WHERE system = $2::text AND executor = $3::text AND current_setting('mainstay.over') = 'ended'
),
page AS MATERIALIZED (
    SELECT w.workflow_uuid, w.created_at, w.executor_id
    FROM dbos.workflow_status w
    WHERE w.status = 'PENDING' AND w.created_at >= (SELECT walked_created FROM l)
        AND (w.created_at, w.workflow_uuid COLLATE "C") > ((SELECT walked_created FROM l), (SELECT walked_id FROM l))
    ORDER BY w.created_at, w.workflow_uuid COLLATE "C"
    LIMIT $5::int
),
held AS MATERIALIZED (
    SELECT w.workflow_uuid, w.status, w.executor_id
    FROM dbos.workflow_status w
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM page WHERE executor_id = $3))
    ORDER BY w.workflow_uuid COLLATE "C"
    FOR NO KEY UPDATE OF w
),
moved AS (
    UPDATE dbos.workflow_status w SET
        status = 'ENQUEUED', owner_xid = NULL, started_at_epoch_ms = NULL,
        queue_name = coalesce(nullif(w.queue_name, ''), $4::text), updated_at = greatest(t.now, w.updated_at)
    FROM t
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM held WHERE status = 'PENDING' AND executor_id = $3))
    RETURNING w.workflow_uuid, w.queue_name
),
walked AS (
    UPDATE mainstay.leases x SET walked_created = p.created_at, walked_id = p.workflow_uuid
    FROM (SELECT created_at, workflow_uuid FROM page ORDER BY created_at DESC, workflow_uuid COLLATE "C" DESC LIMIT 1) p
    WHERE x.system = $2 AND x.executor = $3 AND (SELECT count(*) FROM page) = $5
    RETURNING x.executor
),
through AS (
    DELETE FROM mainstay.leases x
    WHERE x.system = $2 AND x.executor = $3 AND EXISTS (SELECT 1 FROM l) AND (SELECT count(*) FROM page) < $5
)
SELECT t.now, CASE
        WHEN current_setting('mainstay.over') = 'ended' THEN 'ended'
        WHEN EXISTS (SELECT 1 FROM mainstay.leases WHERE system = $2 AND executor = $3) THEN 'alive'
        ELSE 'none' END AS state,
    EXISTS (SELECT 1 FROM walked) AS more,
    m.workflow_uuid AS id, m.queue_name
FROM t LEFT JOIN moved m ON true
ORDER BY m.workflow_uuid COLLATE "C"
