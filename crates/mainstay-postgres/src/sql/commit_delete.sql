-- Workflows with all that hangs on them. Messages, events and streams go by their foreign keys. SKIP LOCKED: see
-- commit_lock.
-- params: ids text[]
WITH c AS MATERIALIZED (
    SELECT i.id, w.status = 'PENDING' AS pending, w.queue_name AS queue FROM unnest($1) AS i (id) CROSS JOIN LATERAL (
        SELECT w.status, w.queue_name FROM {s}.workflow_status w WHERE w.workflow_uuid = i.id OFFSET 0
        FOR NO KEY UPDATE OF w SKIP LOCKED) w
),
steps AS (
    DELETE FROM {s}.operation_outputs o WHERE o.workflow_uuid = ANY (ARRAY(SELECT c.id FROM c))
),
-- if split
inputs AS (
    DELETE FROM {s}.workflow_input i WHERE i.workflow_uuid = ANY (ARRAY(SELECT c.id FROM c))
),
outputs AS (
    DELETE FROM {s}.workflow_output o WHERE o.workflow_uuid = ANY (ARRAY(SELECT c.id FROM c))
),
-- end
gone AS (
    DELETE FROM {s}.workflow_status w WHERE w.workflow_uuid = ANY (ARRAY(SELECT c.id FROM c)) RETURNING w.workflow_uuid
),
u AS (
    SELECT c.id, c.pending, c.queue FROM gone JOIN c ON c.id = gone.workflow_uuid
)
SELECT ARRAY(SELECT u.id FROM u) AS gone,
-- use: part_rooms
