-- Workflows with all their descendants, as far as they are there. A walk down the index of parents, a row of which is named
-- by its parent alone, also where the parent is gone.
-- params: ids text[]
WITH RECURSIVE f AS (
    SELECT i.id FROM unnest($1) AS i (id)
    UNION
    SELECT c.workflow_uuid FROM f CROSS JOIN LATERAL (
        SELECT w.workflow_uuid FROM {s}.workflow_status w WHERE w.parent_workflow_id = f.id OFFSET 0) c
)
SELECT f.id FROM f CROSS JOIN LATERAL (SELECT 1 FROM {s}.workflow_status w WHERE w.workflow_uuid = f.id OFFSET 0) w
