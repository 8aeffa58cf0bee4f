-- Other attributes of a row; the answer is empty where there is none.
-- params: id text, attributes text
UPDATE {s}.workflow_status w SET attributes = $2::jsonb WHERE w.workflow_uuid = $1
RETURNING w.workflow_uuid AS id
