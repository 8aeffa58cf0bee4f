-- Other attributes of a row; the answer is empty where there is none. SKIP LOCKED: see commit_lock.
-- params: id text, attributes text
WITH g AS MATERIALIZED (
    SELECT w.workflow_uuid AS id FROM {s}.workflow_status w WHERE w.workflow_uuid = $1
    FOR NO KEY UPDATE OF w SKIP LOCKED
)
UPDATE {s}.workflow_status w SET attributes = $2::jsonb FROM g WHERE w.workflow_uuid = g.id
RETURNING w.workflow_uuid AS id
