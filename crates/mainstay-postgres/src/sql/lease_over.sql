-- Ends a lease if its beat is still the observed one. FOR UPDATE first, because the UPDATE alone would not wait for the
-- KEY SHARE of a claim or a start that is about to commit; the next statement sees the rows of those.
-- params: system text, executor text, beat bigint
WITH l AS MATERIALIZED (
    SELECT system, executor FROM {m}.leases
    WHERE system = $1 AND executor = $2 AND (ended OR beat = $3)
    FOR UPDATE
),
u AS (
    UPDATE {m}.leases x SET ended = true FROM l WHERE x.system = l.system AND x.executor = l.executor
    RETURNING x.executor
)
SELECT set_config('mainstay.over', CASE WHEN EXISTS (SELECT 1 FROM u) THEN 'ended' ELSE '' END, true) IS NOT NULL AS set
