-- Another due time of a row that is delayed; the answer is empty where it is not. SKIP LOCKED: see commit_lock.
-- params: now bigint, id text, delay bigint, due bigint
-- use: part_now
, g AS MATERIALIZED (
    SELECT w.workflow_uuid AS id, w.status FROM {s}.workflow_status w WHERE w.workflow_uuid = $2
    FOR NO KEY UPDATE OF w SKIP LOCKED
)
UPDATE {s}.workflow_status w SET
    delay_until_epoch_ms = coalesce($4,
        CASE WHEN $3 IS NOT NULL THEN t.now + least($3, 9223372036854775807 - greatest(t.now, 0)) END)
FROM g, t WHERE w.workflow_uuid = g.id AND g.status = 'DELAYED'
RETURNING w.workflow_uuid AS id
