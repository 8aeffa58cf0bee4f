-- Picks from a list of keys (`k`: key, cap, ord in rotation order): rank 1 of every key, then rank 2, up to the room.
-- Candidates are chosen without locks, then locked by id; what changed or is held by a peer meanwhile drops out.
-- The key is a range and leads the order: as an equation it drops out
-- of the order, which the index of the whole queue could then serve as well.
-- The judgement is made on the locked rows, because tests on the table itself invite a partial index.
-- name: part_keys_pick
, candidates AS MATERIALIZED (
    SELECT c.workflow_uuid, c.rank, k.ord
    FROM k CROSS JOIN LATERAL (
        SELECT w.workflow_uuid,
            row_number() OVER (ORDER BY w.priority, w.created_at, w.workflow_uuid COLLATE "C") AS rank
        FROM (
            SELECT w.workflow_uuid, w.priority, w.created_at
            FROM dbos.workflow_status w
            WHERE w.queue_name = $5 AND w.status = 'ENQUEUED'
                AND w.queue_partition_key >= k.key AND w.queue_partition_key <= k.key
                AND (w.application_version = $8 OR (w.application_version IS NULL AND (SELECT latest FROM m)))
                AND (w.application_name = $7 OR w.application_name IS NULL)
                AND ((w.name, coalesce(w.class_name, '')::text, coalesce(w.config_name, '')::text)
                    IN (SELECT r.name, r.class, r.config FROM reg r)) IS TRUE
            ORDER BY w.queue_partition_key, w.priority, w.created_at, w.workflow_uuid COLLATE "C"
            LIMIT least(k.cap, (SELECT room FROM m))
        ) w
    ) c
    ORDER BY c.rank, k.ord
    LIMIT (SELECT room FROM m)
),
locked AS MATERIALIZED (
    SELECT w.workflow_uuid, w.status, w.queue_name, w.queue_partition_key, w.application_version, w.application_name,
        w.name, w.class_name, w.config_name, w.recovery_attempts
    FROM dbos.workflow_status w
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM candidates))
    ORDER BY w.workflow_uuid COLLATE "C"
    FOR NO KEY UPDATE OF w SKIP LOCKED
),
picked AS MATERIALIZED (
    SELECT l.workflow_uuid, l.recovery_attempts >= r.cap AS over
    FROM locked l
    CROSS JOIN LATERAL (SELECT r.cap FROM reg r WHERE r.name = l.name AND r.class = coalesce(l.class_name, '')
        AND r.config = coalesce(l.config_name, '') LIMIT 1) r
    WHERE l.status = 'ENQUEUED' AND l.queue_name = $5 AND l.queue_partition_key IS NOT NULL
        AND (l.application_version = $8 OR (l.application_version IS NULL AND (SELECT latest FROM m)))
        AND (l.application_name = $7 OR l.application_name IS NULL)
)
