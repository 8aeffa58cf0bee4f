-- Checkpoints, last, because one may record what an effect of its unit did: `answers` names it as `ord/effect`. `wakes`
-- is a sleep's duration: output and completion are the store's now plus it.
-- params: now bigint, ords int[], ids text[], positions int[], names text[], outputs text[], errors text[], wakes bigint[], children text[], codecs text[], tooks bigint[], answers text[]
-- use: part_now
, g AS MATERIALIZED (
    SELECT coalesce(nullif(current_setting('mainstay.answers', true), ''), '{}')::jsonb AS answers,
        9223372036854775807 - greatest(t.now, 0) AS most
    FROM t
)
INSERT INTO {s}.operation_outputs (workflow_uuid, function_id, function_name, output, error, child_workflow_id,
-- if split
    retention_timestamp,
-- end
    serialization, application_name, started_at_epoch_ms, completed_at_epoch_ms)
SELECT s.id, s.position, s.name, coalesce(s.output,
        CASE WHEN s.wake IS NOT NULL THEN (t.now + least(s.wake, g.most))::text END,
        CASE WHEN s.answer IS NOT NULL THEN coalesce(g.answers ->> s.answer, '[]') END), s.error, s.child,
-- if split
    greatest(t.now, w.created_at),
-- end
    s.codec, w.application_name, t.now - s.took, t.now + least(coalesce(s.wake, 0), g.most)
FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        AS s (ord, id, position, name, output, error, wake, child, codec, took, answer)
    CROSS JOIN t CROSS JOIN g CROSS JOIN LATERAL (
        SELECT w.application_name, w.created_at FROM {s}.workflow_status w WHERE w.workflow_uuid = s.id OFFSET 0) w
WHERE s.ord = ANY ((SELECT current_setting('mainstay.good')::int[])::int[])
