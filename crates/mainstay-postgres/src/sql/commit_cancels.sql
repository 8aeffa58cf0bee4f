-- After the outcomes. What each effect moved is kept for the steps that record it, as `ord/effect`. SKIP LOCKED: see
-- commit_lock.
-- params: now bigint, ords int[], effects int[], ids text[]
-- use: part_now
, c AS MATERIALIZED (
    SELECT DISTINCT ON (c.id) c.id, c.ord, c.effect, w.status, w.queue_name AS queue
    FROM unnest($2, $3, $4) AS c (ord, effect, id) CROSS JOIN LATERAL (
        SELECT w.status, w.queue_name FROM {s}.workflow_status w WHERE w.workflow_uuid = c.id OFFSET 0
        FOR NO KEY UPDATE OF w SKIP LOCKED) w
    WHERE c.ord = ANY ((SELECT current_setting('mainstay.good')::int[])::int[])
        AND w.status IN ('DELAYED', 'ENQUEUED', 'PENDING', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    ORDER BY c.id, c.ord, c.effect
),
u AS (
    UPDATE {s}.workflow_status w SET
        status = 'CANCELLED', queue_name = NULL, deduplication_id = NULL, started_at_epoch_ms = NULL,
-- if owner
        owner_xid = NULL,
-- end
-- if inline
        output = NULL, error = NULL,
-- end
        updated_at = greatest(t.now, w.updated_at), completed_at = greatest(t.now, w.updated_at)
    FROM c, t WHERE w.workflow_uuid = c.id AND w.status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED')
    RETURNING c.ord, c.effect, w.workflow_uuid AS id, c.queue, c.status = 'PENDING' AS pending, c.status AS before
),
-- if split
x AS (
    DELETE FROM {s}.workflow_output x WHERE x.workflow_uuid = ANY (ARRAY(
        SELECT u.id FROM u WHERE u.before = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED'))
),
-- end
answers AS MATERIALIZED (
    SELECT set_config('mainstay.answers', coalesce((SELECT json_object_agg(x.key, x.ids)::text FROM (
        SELECT u.ord || '/' || u.effect AS key,
            '[' || string_agg(to_json(u.id)::text, ',' ORDER BY u.id COLLATE "C") || ']' AS ids
        FROM u GROUP BY u.ord, u.effect) x), '{}'), true) AS kept
)
SELECT u.ord, u.effect, u.id, u.pending, u.queue,
    coalesce(u.pending AND (SELECT q.concurrency FROM {s}.queues q WHERE q.name = u.queue) IS NOT NULL, false) AS room
FROM answers CROSS JOIN u ORDER BY u.ord, u.effect, u.id COLLATE "C"
