-- What became of each submit, from a snapshot that shows whoever won: made by this token, another's by id or by key.
-- Narrows the good ones, and takes back what a unit of several submits had made before one of them lost. A submit that
-- lost to a row which then vanished divides by zero: the transaction is undone, and tried again.
-- params: ords int[], effects int[], ids text[], tokens text[], names text[], classes text[], configs text[], executors text[], queues text[], dedups text[], keep bool[]
WITH t AS MATERIALIZED (
    SELECT current_setting('mainstay.good')::int[] AS good, current_setting('mainstay.made')::text[] AS made,
        coalesce(nullif(current_setting('mainstay.leased', true), ''), '{}')::text[] AS leased
),
s AS MATERIALIZED (
    SELECT s.* FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        AS s (ord, effect, id, token, name, class, config, executor, queue, dedup, keep)
    WHERE s.ord = ANY ((SELECT t.good FROM t)::int[])
),
j AS MATERIALIZED (
    SELECT s.ord, s.effect, s.id, d.workflow_uuid AS holder, w.status, w.created_at, w.deadline, w.name, w.class,
        w.config,
        CASE WHEN w.status = 'PENDING' AND s.executor IS NOT NULL AND w.started_at_epoch_ms = w.created_at
-- if owner
            AND w.owner_xid = s.token
-- else
            AND w.recovery_attempts = 1 AND w.executor_id = s.executor
-- end
            THEN w.fence END AS fence,
        CASE
            WHEN w.id IS NOT NULL AND coalesce(w.status, '') NOT IN ('DELAYED', 'ENQUEUED', 'PENDING', 'SUCCESS', 'ERROR',
                'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED') THEN 'unreadable'
            WHEN w.id IS NOT NULL AND (w.name IS DISTINCT FROM s.name OR w.class IS DISTINCT FROM s.class
                OR w.config IS DISTINCT FROM s.config) THEN 'conflict'
            WHEN w.creator = s.token THEN 'created'
            WHEN w.id IS NOT NULL AND s.keep THEN 'existing'
            WHEN w.id IS NOT NULL THEN 'exists'
            WHEN s.executor IS NOT NULL AND s.executor <> ALL ((SELECT t.leased FROM t)::text[]) THEN 'unleased'
            WHEN d.workflow_uuid IS NOT NULL THEN 'held'
            ELSE 'again'
        END AS verdict
    FROM s
    LEFT JOIN LATERAL (
        SELECT w.workflow_uuid AS id, w.status, w.name, nullif(w.class_name, '')::text AS class,
            nullif(w.config_name, '')::text AS config, {creator w} AS creator, w.created_at, w.executor_id, w.owner_xid,
            w.recovery_attempts, w.started_at_epoch_ms, w.workflow_deadline_epoch_ms AS deadline, {fence w} AS fence
        FROM {s}.workflow_status w WHERE w.workflow_uuid = s.id OFFSET 0) w ON true
    LEFT JOIN LATERAL (
        SELECT w.workflow_uuid FROM {s}.workflow_status w WHERE w.queue_name = s.queue AND w.deduplication_id = s.dedup
        OFFSET 0) d ON true
),
lost AS MATERIALIZED (SELECT DISTINCT j.ord FROM j WHERE j.verdict NOT IN ('created', 'existing')),
back AS MATERIALIZED (
    SELECT array_agg(j.id) AS ids FROM j JOIN lost ON lost.ord = j.ord
    WHERE j.verdict = 'created' AND j.id = ANY ((SELECT t.made FROM t)::text[])
),
rows_back AS (
    DELETE FROM {s}.workflow_status w WHERE w.workflow_uuid = ANY ((SELECT back.ids FROM back)::text[])
),
-- if split
inputs_back AS (
    DELETE FROM {s}.workflow_input i WHERE i.workflow_uuid = ANY ((SELECT back.ids FROM back)::text[])
),
-- end
good AS MATERIALIZED (
    SELECT set_config('mainstay.good', (SELECT coalesce(array_agg(g.ord), '{}')::text
        FROM unnest((SELECT t.good FROM t)) AS g (ord) WHERE g.ord NOT IN (SELECT lost.ord FROM lost)), true) AS kept
)
SELECT j.ord, j.effect, j.verdict, j.holder, j.status, j.created_at, j.deadline, j.name, j.class, j.config, j.fence,
    j.id = ANY ((SELECT t.made FROM t)::text[]) AS made, e.output, e.error,
    1 / CASE WHEN j.verdict = 'again' THEN 0 ELSE 1 END AS sound
FROM good CROSS JOIN j LEFT JOIN LATERAL (
    SELECT
-- use: part_ended
    FROM {s}.workflow_status w WHERE w.workflow_uuid = j.id AND j.verdict = 'existing' OFFSET 0) e ON true
ORDER BY j.ord, j.effect
