-- Locks every row that the batch will touch in order of id, and judges the fences. The ordinals of units that may write,
-- and of those without a fence (`clients`), stand in a setting of the transaction that each later judge narrows. The locked
-- rows are counted, because a row is locked when it is read, and no fence has to read them all. A row that comes after this
-- is out of order: what follows takes it where it is free, and passes over it as not there yet where another holds it.
-- params: now bigint, ids text[], ords int[], fence_ids text[], fences text[], clients int[]
-- use: part_now
, l AS MATERIALIZED (
    SELECT w.workflow_uuid AS id, w.status, {fence w} AS fence FROM {s}.workflow_status w
    WHERE w.workflow_uuid = ANY ($2)
    ORDER BY w.workflow_uuid COLLATE "C"
    FOR NO KEY UPDATE OF w
),
f AS MATERIALIZED (
    SELECT f.ord, f.id, f.fence FROM unnest($3, $4, $5) AS f (ord, id, fence)
),
good AS MATERIALIZED (
    SELECT set_config('mainstay.good', (SELECT coalesce(array_agg(x.ord), '{}')::text FROM (
        SELECT f.ord FROM f JOIN l ON l.id = f.id AND l.status = 'PENDING' AND l.fence = f.fence
        UNION ALL SELECT unnest($6)) x), true) AS kept
)
SELECT t.now, good.kept, (SELECT count(*) FROM l) AS held FROM t, good
