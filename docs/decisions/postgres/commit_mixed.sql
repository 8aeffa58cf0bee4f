-- A batch of units as one transaction and one trip: BEGIN, [commit_leases,] commit_lock, commit_probe, [commit_submit,
-- commit_judge,] then a statement for each kind of write in the batch, COMMIT. Kinds that a batch lacks are not sent. A
-- batch of one kind goes the same way; a client's single Submit could go in autocommit.
--
-- Units carry an ordinal. The setting mainstay.good holds the ordinals still good; each judging statement narrows it
-- and each write takes only those, so a refused unit writes nothing and nothing is rolled back. What works by kind
-- needs a batch in which no row is touched by two units of different kinds: the backend puts a unit into a second
-- transaction when it follows an outcome or give-back of its own fence, repeats a position, or moves the workflow of
-- another unit's fence.

-- Executors of direct starts: their leases are held to the commit, before any status row.
-- name: commit_leases
-- params: system executors
WITH l AS MATERIALIZED (
    SELECT executor FROM mainstay.leases WHERE system = $1::text AND executor = ANY ($2::text[]) AND NOT ended
    ORDER BY executor COLLATE "C" FOR KEY SHARE
)
SELECT set_config('mainstay.leased', (SELECT coalesce(array_agg(executor), '{}')::text FROM l), true) AS leased

-- Locks every row that the batch will touch (fences, targets of cancels) in id order, and judges the fences. `clients`
-- are the units without one. Answers one row for each refused unit, with all that adopting the outcome needs.
-- name: commit_lock
-- params: now ids ords fence_ids fence_tokens clients
WITH l AS MATERIALIZED (
    SELECT w.workflow_uuid, w.status, w.owner_xid, w.output, w.error FROM dbos.workflow_status w
    WHERE w.workflow_uuid = ANY ($2::text[])
    ORDER BY w.workflow_uuid COLLATE "C"
    FOR NO KEY UPDATE OF w
),
u AS MATERIALIZED (
    SELECT u.ord, u.id, u.token FROM unnest($3::int[], $4::text[], $5::text[]) AS u (ord, id, token)
),
j AS MATERIALIZED (
    SELECT u.ord, l.workflow_uuid AS id, l.status, l.output, l.error,
        coalesce(l.status = 'PENDING' AND l.owner_xid = u.token, false) AS ok
    FROM u LEFT JOIN l ON l.workflow_uuid = u.id
),
good AS MATERIALIZED (
    SELECT set_config('mainstay.good', (SELECT coalesce(array_agg(x.ord), '{}')::text FROM (
        SELECT j.ord FROM j WHERE j.ok UNION ALL SELECT unnest($6::int[])) x), true) AS kept
)
SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now, j.ord, j.status,
    CASE WHEN j.status = 'SUCCESS' THEN coalesce(
        (SELECT o.output FROM dbos.workflow_output o WHERE o.workflow_uuid = j.id), j.output) END AS output,
    CASE WHEN j.status IN ('ERROR', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED') THEN coalesce(
        (SELECT o.error FROM dbos.workflow_output o WHERE o.workflow_uuid = j.id), j.error) END AS error
FROM good LEFT JOIN j ON NOT j.ok
ORDER BY j.ord

-- After the lock, so that nothing is stale: positions written already (with the rows), messages consumed already or not
-- the receiver's, receivers that do not exist. Narrows the good ones.
-- name: commit_probe
-- params: step_ords step_ids positions take_ords take_ids messages mail_ords mail_ids
WITH s AS MATERIALIZED (
    SELECT s.ord, s.id, s.position FROM unnest($1::int[], $2::text[], $3::int[]) AS s (ord, id, position)
),
bad AS MATERIALIZED (
    SELECT s.ord, 'recorded' AS why, o.function_id AS position, o.function_name AS name, o.output, o.error,
        o.child_workflow_id AS child, o.serialization AS codec, o.started_at_epoch_ms AS started_at,
        o.completed_at_epoch_ms AS completed_at
    FROM s CROSS JOIN LATERAL (
        SELECT o.* FROM dbos.operation_outputs o WHERE o.workflow_uuid = s.id AND o.function_id = s.position OFFSET 0) o
    UNION ALL
    SELECT k.ord, 'consumed', NULL, k.message, NULL, NULL, NULL, NULL, NULL, NULL
    FROM unnest($4::int[], $5::text[], $6::text[]) AS k (ord, id, message)
    WHERE NOT EXISTS (SELECT 1 FROM (
        SELECT n.consumed, n.destination_uuid FROM dbos.notifications n WHERE n.message_uuid = k.message OFFSET 0) n
        WHERE NOT n.consumed AND n.destination_uuid = k.id)
    UNION ALL
    SELECT m.ord, 'missing', NULL, m.id, NULL, NULL, NULL, NULL, NULL, NULL
    FROM unnest($7::int[], $8::text[]) AS m (ord, id)
    WHERE NOT EXISTS (SELECT 1 FROM (
        SELECT 1 FROM dbos.workflow_status w WHERE w.workflow_uuid = m.id OFFSET 0) w)
),
good AS MATERIALIZED (
    SELECT set_config('mainstay.good', (SELECT coalesce(array_agg(g.ord), '{}')::text
        FROM unnest(current_setting('mainstay.good')::int[]) AS g (ord) WHERE g.ord NOT IN (SELECT bad.ord FROM bad)), true) AS kept
)
SELECT bad.* FROM good LEFT JOIN bad ON true ORDER BY bad.ord, bad.position

-- Submits, with their inputs in the split shape. DO NOTHING without a target swallows a deduplication clash as well as
-- a taken id. `reusable` marks ids that can recur (a caller's own, a child's): what an orphan left under one is
-- removed. A moment is given as a duration from now (`delays`, `lives`) or as an instant (`dues`, `deadlines`).
-- name: commit_submit
-- params: now ords ids tokens names classes configs codecs executors queues keys delays dues priorities dedups parents apps versions timeouts lives deadlines attributes schedules users roles all_roles inputs reusable
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now,
        current_setting('mainstay.good')::int[] AS good,
        coalesce(nullif(current_setting('mainstay.leased', true), ''), '{}')::text[] AS leased
),
s AS MATERIALIZED (
    SELECT s.* FROM unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
            $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::int[], $15::text[], $16::text[], $17::text[],
            $18::text[], $19::bigint[], $20::bigint[], $21::bigint[], $22::text[], $23::text[], $24::text[], $25::text[],
            $26::text[], $27::text[], $28::boolean[])
        AS s (ord, id, token, name, class, config, codec, executor, queue, key, delay, due, priority, dedup, parent, app,
            version, timeout, life, deadline, attributes, schedule, username, role, roles, input, reusable)
    WHERE s.ord = ANY ((SELECT good FROM t)::int[])
        AND (s.executor IS NULL OR s.executor = ANY ((SELECT leased FROM t)::text[]))
),
made AS (
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, class_name, config_name, serialization, executor_id,
        queue_name, queue_partition_key, delay_until_epoch_ms, priority, deduplication_id, parent_workflow_id,
        application_name, application_version, workflow_timeout_ms, workflow_deadline_epoch_ms, attributes, schedule_name,
        authenticated_user, assumed_role, authenticated_roles, created_at, updated_at, started_at_epoch_ms,
        recovery_attempts, owner_xid, creator_xid)
    SELECT s.id, CASE WHEN s.queue IS NULL THEN 'PENDING' WHEN coalesce(s.due, s.delay) IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
        s.name, s.class, s.config, s.codec, s.executor, s.queue, s.key, coalesce(s.due, t.now + s.delay),
        s.priority, s.dedup, s.parent, s.app, s.version, s.timeout,
        coalesce(s.deadline, t.now + s.life, CASE WHEN s.queue IS NULL THEN t.now + s.timeout END),
        s.attributes::jsonb, s.schedule, s.username, s.role, s.roles, t.now, t.now,
        CASE WHEN s.queue IS NULL THEN t.now END, CASE WHEN s.queue IS NULL THEN 1 ELSE 0 END,
        CASE WHEN s.queue IS NULL THEN s.token END, s.token
    FROM s, t ORDER BY s.id COLLATE "C"
    ON CONFLICT DO NOTHING
    RETURNING workflow_uuid, creator_xid
),
input AS (
    INSERT INTO dbos.workflow_input (workflow_uuid, inputs, retention_timestamp)
    SELECT s.id, s.input, t.now FROM s JOIN made ON made.workflow_uuid = s.id AND made.creator_xid = s.token, t
    ON CONFLICT (workflow_uuid) DO UPDATE SET inputs = excluded.inputs, retention_timestamp = excluded.retention_timestamp
),
steps AS (
    DELETE FROM dbos.operation_outputs o WHERE o.workflow_uuid = ANY (ARRAY(
        SELECT made.workflow_uuid FROM made JOIN s ON s.id = made.workflow_uuid AND s.reusable))
),
outputs AS (
    DELETE FROM dbos.workflow_output o WHERE o.workflow_uuid = ANY (ARRAY(
        SELECT made.workflow_uuid FROM made JOIN s ON s.id = made.workflow_uuid AND s.reusable))
)
SELECT set_config('mainstay.made', (SELECT coalesce(array_agg(workflow_uuid), '{}')::text FROM made), true) AS made

-- What became of each submit, from a snapshot that shows whoever won: mine by its token, another's by id or by key.
-- Narrows the good ones, and takes back what a unit of several submits had made before one of them lost.
-- name: commit_judge
-- params: submit_ords submit_ids submit_tokens submit_names submit_classes submit_configs submit_executors submit_queues submit_dedups submit_keep
WITH t AS MATERIALIZED (
    SELECT current_setting('mainstay.good')::int[] AS good, current_setting('mainstay.made')::text[] AS made,
        coalesce(nullif(current_setting('mainstay.leased', true), ''), '{}')::text[] AS leased
),
s AS MATERIALIZED (
    SELECT s.* FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
            $9::text[], $10::boolean[])
        AS s (ord, id, token, name, class, config, executor, queue, dedup, keep)
    WHERE s.ord = ANY ((SELECT good FROM t)::int[])
),
j AS MATERIALIZED (
    SELECT s.ord, s.id, s.token, w.workflow_uuid AS found, d.workflow_uuid AS holder, w.status, w.owner_xid, w.created_at,
        w.workflow_deadline_epoch_ms AS deadline, w.name, w.class_name, w.config_name, w.output, w.error,
        CASE
            WHEN w.workflow_uuid IS NOT NULL AND (w.name IS DISTINCT FROM s.name OR w.class_name IS DISTINCT FROM s.class
                OR w.config_name IS DISTINCT FROM s.config) THEN 'conflict'
            WHEN w.creator_xid = s.token THEN 'created'
            WHEN w.workflow_uuid IS NOT NULL AND s.keep THEN 'existing'
            WHEN w.workflow_uuid IS NOT NULL THEN 'exists'
            WHEN s.executor IS NOT NULL AND NOT (s.executor = ANY ((SELECT leased FROM t)::text[])) THEN 'unleased'
            WHEN d.workflow_uuid IS NOT NULL THEN 'held'
            ELSE 'again'
        END AS verdict
    FROM s
    LEFT JOIN LATERAL (SELECT * FROM dbos.workflow_status w WHERE w.workflow_uuid = s.id OFFSET 0) w ON true
    LEFT JOIN LATERAL (SELECT w.workflow_uuid FROM dbos.workflow_status w
        WHERE w.queue_name = s.queue AND w.deduplication_id = s.dedup OFFSET 0) d ON true
),
lost AS MATERIALIZED (SELECT DISTINCT j.ord FROM j WHERE j.verdict NOT IN ('created', 'existing')),
back AS MATERIALIZED (
    SELECT j.id FROM j JOIN lost ON lost.ord = j.ord WHERE j.verdict = 'created' AND j.id = ANY ((SELECT made FROM t)::text[])
),
rows_back AS (DELETE FROM dbos.workflow_status w WHERE w.workflow_uuid = ANY (ARRAY(SELECT id FROM back))),
inputs_back AS (DELETE FROM dbos.workflow_input i WHERE i.workflow_uuid = ANY (ARRAY(SELECT id FROM back))),
good AS MATERIALIZED (
    SELECT set_config('mainstay.good', (SELECT coalesce(array_agg(g.ord), '{}')::text
        FROM unnest((SELECT good FROM t)) AS g (ord) WHERE g.ord NOT IN (SELECT lost.ord FROM lost)), true) AS kept
)
SELECT j.ord, j.id, j.verdict, j.holder, j.status, j.owner_xid = j.token AS mine, j.created_at, j.deadline, j.name,
    j.class_name, j.config_name,
    CASE WHEN j.verdict = 'existing' AND j.status = 'SUCCESS' THEN coalesce(
        (SELECT o.output FROM dbos.workflow_output o WHERE o.workflow_uuid = j.id), j.output) END AS output,
    CASE WHEN j.verdict = 'existing' AND j.status IN ('ERROR', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED') THEN coalesce(
        (SELECT o.error FROM dbos.workflow_output o WHERE o.workflow_uuid = j.id), j.error) END AS error
FROM good JOIN j ON true ORDER BY j.ord

-- name: commit_takes
-- params: take_ords take_positions messages
WITH k AS MATERIALIZED (
    SELECT k.position, k.message FROM unnest($1::int[], $2::int[], $3::text[]) AS k (ord, position, message)
    WHERE k.ord = ANY ((SELECT current_setting('mainstay.good')::int[])::int[])
)
UPDATE dbos.notifications n SET consumed = true, consumed_by_function_id = k.position
FROM k WHERE n.message_uuid = k.message

-- name: commit_mail
-- params: now mail_ords message_ids mail_ids topics bodies mail_codecs
INSERT INTO dbos.notifications (message_uuid, destination_uuid, topic, message, serialization, created_at_epoch_ms)
SELECT m.message, m.id, coalesce(m.topic, '__null__topic__'), m.body, m.codec,
    coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint)
FROM unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
    AS m (ord, message, id, topic, body, codec)
WHERE m.ord = ANY ((SELECT current_setting('mainstay.good')::int[])::int[])
ORDER BY m.message COLLATE "C"
ON CONFLICT (message_uuid) DO NOTHING

-- Outcomes, in the shape of the row: split where it has no inline input. Judged and locked already, so the update
-- tests nothing: a status test on the table would read every pending row.
-- name: commit_outcomes
-- params: now outcome_ords outcome_ids statuses outputs errors
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now,
        current_setting('mainstay.good')::int[] AS good
),
g AS MATERIALIZED (
    SELECT g.id, g.status, g.output, g.error
    FROM unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::text[]) AS g (ord, id, status, output, error)
    WHERE g.ord = ANY ((SELECT good FROM t)::int[])
),
u AS (
    UPDATE dbos.workflow_status w SET
        status = g.status, owner_xid = NULL, deduplication_id = NULL,
        queue_name = CASE WHEN g.status IN ('SUCCESS', 'ERROR') THEN w.queue_name END,
        started_at_epoch_ms = CASE WHEN g.status IN ('SUCCESS', 'ERROR') THEN w.started_at_epoch_ms END,
        updated_at = greatest(t.now, w.updated_at), completed_at = greatest(t.now, w.updated_at),
        output = CASE WHEN w.inputs IS NOT NULL THEN g.output END, error = CASE WHEN w.inputs IS NOT NULL THEN g.error END
    FROM g, t WHERE w.workflow_uuid = g.id
    RETURNING w.workflow_uuid, w.completed_at, w.inputs IS NULL AS split, g.output AS value, g.error AS failure
),
o AS (
    INSERT INTO dbos.workflow_output (workflow_uuid, output, error, retention_timestamp)
    SELECT u.workflow_uuid, u.value, u.failure, u.completed_at FROM u WHERE u.split
    ON CONFLICT (workflow_uuid) DO UPDATE SET output = excluded.output, error = excluded.error
),
inline AS (
    DELETE FROM dbos.workflow_output x WHERE x.workflow_uuid = ANY (ARRAY(SELECT u.workflow_uuid FROM u WHERE NOT u.split))
)
SELECT u.workflow_uuid AS id FROM u

-- After the outcomes: a cancel that meets one in its batch moves nothing, as if it came later. What each effect moved
-- is kept for the step rows that record it.
-- name: commit_cancels
-- params: now cancel_ords cancel_effects cancel_ids
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
c AS MATERIALIZED (
    SELECT DISTINCT ON (c.id) c.id, c.ord, c.effect FROM unnest($2::int[], $3::int[], $4::text[]) AS c (ord, effect, id)
    WHERE c.ord = ANY ((SELECT current_setting('mainstay.good')::int[])::int[]) ORDER BY c.id, c.ord, c.effect
),
u AS (
    UPDATE dbos.workflow_status w SET
        status = 'CANCELLED', queue_name = NULL, deduplication_id = NULL, owner_xid = NULL, started_at_epoch_ms = NULL,
        updated_at = greatest(t.now, w.updated_at), completed_at = greatest(t.now, w.updated_at)
    FROM c, t WHERE w.workflow_uuid = c.id AND w.status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED')
    RETURNING c.ord, c.effect, w.workflow_uuid AS id, w.executor_id
),
answers AS MATERIALIZED (
    SELECT set_config('mainstay.answers', coalesce((SELECT json_object_agg(x.key, x.ids)::text FROM (
        SELECT u.ord || '/' || u.effect AS key,
            '[' || string_agg(to_json(u.id)::text, ',' ORDER BY u.id COLLATE "C") || ']' AS ids
        FROM u GROUP BY u.ord, u.effect) x), '{}'), true) AS kept
)
SELECT u.ord, u.effect, u.id, u.executor_id FROM answers LEFT JOIN u ON true ORDER BY u.ord, u.effect, u.id COLLATE "C"

-- Back to the queue, or for later when a delay is given.
-- name: commit_give_back
-- params: now give_ords give_ids give_delays fallback
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
b AS MATERIALIZED (
    SELECT b.ord, b.id, b.delay FROM unnest($2::int[], $3::text[], $4::bigint[]) AS b (ord, id, delay)
    WHERE b.ord = ANY ((SELECT current_setting('mainstay.good')::int[])::int[])
)
UPDATE dbos.workflow_status w SET
    status = CASE WHEN b.delay IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
    delay_until_epoch_ms = coalesce(t.now + b.delay, w.delay_until_epoch_ms),
    queue_name = coalesce(nullif(w.queue_name, ''), $5::text), owner_xid = NULL, started_at_epoch_ms = NULL,
    updated_at = greatest(t.now, w.updated_at)
FROM b, t WHERE w.workflow_uuid = b.id
RETURNING b.ord, w.workflow_uuid AS id, w.queue_name

-- Step rows, last, because one may record what an effect of its unit did: `answers` names it as `ord/effect`. `wakes`
-- is a sleep's duration: output and completion are the store's now plus it. One row back for each written.
-- name: commit_steps
-- params: now step_ords step_ids positions step_names outputs errors wakes children step_codecs step_apps tooks answers
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now,
        current_setting('mainstay.good')::int[] AS good,
        coalesce(nullif(current_setting('mainstay.answers', true), ''), '{}')::json AS answers
)
INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output, error, child_workflow_id,
    serialization, application_name, started_at_epoch_ms, completed_at_epoch_ms)
SELECT s.id, s.position, s.name, coalesce(s.output, (t.now + s.wake)::text,
        CASE WHEN s.answer IS NOT NULL THEN coalesce(t.answers ->> s.answer, '[]') END), s.error, s.child, s.codec, s.app,
    t.now - s.took, t.now + coalesce(s.wake, 0)
FROM unnest($2::int[], $3::text[], $4::int[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[],
        $11::text[], $12::bigint[], $13::text[])
    AS s (ord, id, position, name, output, error, wake, child, codec, app, took, answer), t
WHERE s.ord = ANY ((SELECT good FROM t)::int[])
RETURNING workflow_uuid AS id, function_id AS position
