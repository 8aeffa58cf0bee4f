-- What a copy takes over from its source, in either shape: the input, and the checkpoints below a position.
-- params: now bigint, source text, id text, below int
-- use: part_now
, o AS MATERIALIZED (
    SELECT coalesce(
-- if split
        (SELECT i.inputs FROM {s}.workflow_input i WHERE i.workflow_uuid = w.workflow_uuid),
-- end
-- if inline
        w.inputs,
-- end
        NULL) AS inputs
    FROM {s}.workflow_status w WHERE w.workflow_uuid = $2
),
steps AS (
    INSERT INTO {s}.operation_outputs (workflow_uuid, function_id, function_name, output, error, child_workflow_id,
        started_at_epoch_ms, completed_at_epoch_ms, serialization,
-- if split
        retention_timestamp,
-- end
        application_name)
    SELECT $3, s.function_id, s.function_name, s.output, s.error, s.child_workflow_id, s.started_at_epoch_ms,
        s.completed_at_epoch_ms, s.serialization,
-- if split
        t.now,
-- end
        s.application_name
    FROM t, {s}.operation_outputs s WHERE s.workflow_uuid = $2 AND s.function_id < $4
),
-- if write_split
input AS (
    INSERT INTO {s}.workflow_input (workflow_uuid, inputs, retention_timestamp) SELECT $3, o.inputs, t.now FROM o, t
),
-- else
input AS (
    UPDATE {s}.workflow_status w SET inputs = o.inputs FROM o WHERE w.workflow_uuid = $3
),
-- end
source AS (
    UPDATE {s}.workflow_status w SET was_forked_from = true WHERE w.workflow_uuid = $2
)
SELECT 1
