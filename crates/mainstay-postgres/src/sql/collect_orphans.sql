-- Removes what the statement before has locked, unless a workflow of that id has come meanwhile.
WITH o AS MATERIALIZED (
    SELECT current_setting('mainstay.orphans')::json AS found
),
inputs AS (
    DELETE FROM {s}.workflow_input x
    WHERE x.workflow_uuid = ANY (ARRAY(SELECT json_array_elements_text(found -> 'input') FROM o))
        AND NOT EXISTS (SELECT 1 FROM {s}.workflow_status w WHERE w.workflow_uuid = x.workflow_uuid)
    RETURNING 1
),
outputs AS (
    DELETE FROM {s}.workflow_output x
    WHERE x.workflow_uuid = ANY (ARRAY(SELECT json_array_elements_text(found -> 'output') FROM o))
        AND NOT EXISTS (SELECT 1 FROM {s}.workflow_status w WHERE w.workflow_uuid = x.workflow_uuid)
    RETURNING 1
),
steps AS (
    DELETE FROM {s}.operation_outputs x
    USING (SELECT s.id, s.n FROM o, json_to_recordset(found -> 'step') AS s (id text, n int)) s
    WHERE x.workflow_uuid = s.id AND x.function_id = s.n
        AND NOT EXISTS (SELECT 1 FROM {s}.workflow_status w WHERE w.workflow_uuid = x.workflow_uuid)
    RETURNING 1
)
SELECT (SELECT count(*) FROM inputs) AS inputs, (SELECT count(*) FROM outputs) AS outputs,
    (SELECT count(*) FROM steps) AS steps
