-- Back to the queue, or for later where a delay is given. The attempt of what has not begun is taken off.
-- params: now bigint, ords int[], ids text[], delays bigint[], begun bool[], fallback text
-- use: part_now
, b AS MATERIALIZED (
    SELECT b.id, b.delay, b.begun FROM unnest($2, $3, $4, $5) AS b (ord, id, delay, begun)
    WHERE b.ord = ANY ((SELECT current_setting('mainstay.good')::int[])::int[])
),
u AS (
    UPDATE {s}.workflow_status w SET
        status = CASE WHEN b.delay IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
        delay_until_epoch_ms = CASE WHEN b.delay IS NULL THEN w.delay_until_epoch_ms
            ELSE t.now + least(b.delay, 9223372036854775807 - greatest(t.now, 0)) END,
        queue_name = coalesce(nullif(w.queue_name, ''), $6), started_at_epoch_ms = NULL,
-- if owner
        owner_xid = NULL,
-- end
        recovery_attempts = CASE WHEN b.begun THEN w.recovery_attempts ELSE greatest(0, w.recovery_attempts - 1) END,
        updated_at = greatest(t.now, w.updated_at)
    FROM b, t WHERE w.workflow_uuid = b.id
    RETURNING w.queue_name AS queue, b.delay IS NULL AS claimable, true AS pending
)
SELECT ARRAY(SELECT DISTINCT u.queue FROM u WHERE u.claimable) AS claimable,
-- use: part_rooms
