-- What another SDK's delete may have left under the id of a copy.
-- params: id text
WITH steps AS (
    DELETE FROM {s}.operation_outputs o WHERE o.workflow_uuid = $1
)
-- if split
, outputs AS (
    DELETE FROM {s}.workflow_output o WHERE o.workflow_uuid = $1
),
inputs AS (
    DELETE FROM {s}.workflow_input i WHERE i.workflow_uuid = $1
)
-- end
SELECT 1
