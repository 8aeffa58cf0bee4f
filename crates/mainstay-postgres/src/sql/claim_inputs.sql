-- Inputs that a claim has not seen, because the tables that they are in came while it was under way.
-- params: ids text[], row_bytes bigint
SELECT w.workflow_uuid, z.bytes, CASE WHEN z.bytes <= $2::bigint THEN coalesce(
-- if split
        (SELECT i.inputs FROM {s}.workflow_input i WHERE i.workflow_uuid = w.workflow_uuid),
-- end
-- if inline
        w.inputs,
-- end
        NULL) END AS input
FROM {s}.workflow_status w CROSS JOIN LATERAL (SELECT coalesce(
-- if split
        (SELECT octet_length(i.inputs) FROM {s}.workflow_input i WHERE i.workflow_uuid = w.workflow_uuid),
-- end
-- if inline
        octet_length(w.inputs),
-- end
        NULL)::bigint AS bytes OFFSET 0) z
WHERE w.workflow_uuid = ANY ($1::text[])
