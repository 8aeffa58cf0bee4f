-- The supervisor's round: [lease_beat when due,] tick_sweep, tick_read with one Sync: one transaction and one trip. A
-- tick that finds nothing due writes nothing and takes no transaction id.

-- Opens a lease at beat 1, moves it forward later; an older beat that comes late changes nothing. No row back: gone.
-- name: lease_open
-- params: system executor app
INSERT INTO mainstay.leases (system, executor, app, beat) VALUES ($1::text, $2::text, $3::text, 1)
ON CONFLICT (system, executor) DO UPDATE SET beat = leases.beat WHERE NOT leases.ended RETURNING beat

-- name: lease_beat
-- params: system executor beat
UPDATE mainstay.leases SET beat = greatest(beat, $3::bigint)
WHERE system = $1::text AND executor = $2::text AND NOT ended RETURNING beat

-- Releases due rows and cancels those past their deadline, at most `limit` of each, passing over what is held. A due
-- row that is past its deadline is left to the second part: one statement writes a row once.
-- name: tick_sweep
-- params: now app limit
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
due AS MATERIALIZED (
    SELECT w.workflow_uuid FROM dbos.workflow_status w
    WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms <= (SELECT now FROM t)
        AND (w.application_name = $2::text OR w.application_name IS NULL)
        AND (w.workflow_deadline_epoch_ms IS NULL OR w.workflow_deadline_epoch_ms > (SELECT now FROM t))
    ORDER BY w.delay_until_epoch_ms, w.workflow_uuid COLLATE "C" LIMIT $3::int
    FOR NO KEY UPDATE OF w SKIP LOCKED
),
late AS MATERIALIZED (
    SELECT w.workflow_uuid FROM dbos.workflow_status w
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms <= (SELECT now FROM t)
        AND (w.application_name = $2 OR w.application_name IS NULL)
    ORDER BY w.workflow_deadline_epoch_ms, w.workflow_uuid COLLATE "C" LIMIT $3
    FOR NO KEY UPDATE OF w SKIP LOCKED
),
released AS (
    UPDATE dbos.workflow_status w SET
        status = 'ENQUEUED', updated_at = greatest(t.now, w.updated_at),
        deduplication_id = CASE WHEN NOT w.is_debounced THEN w.deduplication_id END
    FROM t WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM due))
    RETURNING w.workflow_uuid, w.queue_name
),
ended AS (
    UPDATE dbos.workflow_status w SET
        status = 'CANCELLED', queue_name = NULL, deduplication_id = NULL, owner_xid = NULL, started_at_epoch_ms = NULL,
        updated_at = greatest(t.now, w.updated_at), completed_at = greatest(t.now, w.updated_at)
    FROM t WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM late))
    RETURNING w.workflow_uuid
)
SELECT 'released' AS kind, workflow_uuid AS id, queue_name FROM released
UNION ALL SELECT 'cancelled', workflow_uuid, NULL FROM ended

-- Leases, the queue set when its stamp is not the one seen, the catalog number, when the next row is due. The stamp is
-- a sum of hashes, so that it moves with every change, addition and removal, whoever made it.
-- name: tick_read
-- params: now system app seen
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
q AS MATERIALIZED (
    SELECT * FROM dbos.queues WHERE application_name = $3::text OR application_name IS NULL
),
stamp AS MATERIALIZED (
    SELECT mod(coalesce(sum(hashtextextended(q.name || ' ' || q.updated_at, 0)), 0), 4611686018427387904)::bigint AS stamp FROM q
)
SELECT t.now, stamp.stamp,
    CASE WHEN stamp.stamp IS DISTINCT FROM $4::bigint THEN (SELECT json_agg(to_json(q) ORDER BY q.name) FROM q) END AS queues,
    (SELECT max(version) FROM dbos.dbos_migrations) AS catalog,
    (SELECT json_agg(json_build_array(l.executor, l.beat, l.ended) ORDER BY l.executor COLLATE "C")
        FROM mainstay.leases l WHERE l.system = $2::text AND l.app = $3) AS leases,
    least(
        (SELECT w.delay_until_epoch_ms FROM dbos.workflow_status w
            WHERE w.status = 'DELAYED' AND (w.application_name = $3 OR w.application_name IS NULL)
                AND w.delay_until_epoch_ms IS NOT NULL
            ORDER BY w.delay_until_epoch_ms LIMIT 1),
        (SELECT w.workflow_deadline_epoch_ms FROM dbos.workflow_status w
            WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms IS NOT NULL
                AND (w.application_name = $3 OR w.application_name IS NULL)
            ORDER BY w.workflow_deadline_epoch_ms LIMIT 1)) AS next_due
FROM t, stamp
