-- The input of a workflow. No row: there is no such workflow.
-- params: id text
SELECT coalesce(
-- if split
    (SELECT i.inputs FROM {s}.workflow_input i WHERE i.workflow_uuid = w.workflow_uuid),
-- end
-- if inline
    w.inputs,
-- end
    NULL) AS inputs
FROM {s}.workflow_status w WHERE w.workflow_uuid = $1::text
