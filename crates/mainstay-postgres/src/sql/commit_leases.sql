-- Executors of direct starts: their leases are held against a take-over until the commit, before any workflow row.
-- params: system text, executors text[]
WITH l AS MATERIALIZED (
    SELECT l.executor FROM {m}.leases l WHERE l.system = $1 AND l.executor = ANY ($2) AND NOT l.ended
    ORDER BY l.executor COLLATE "C" FOR KEY SHARE OF l
)
SELECT set_config('mainstay.leased', (SELECT coalesce(array_agg(l.executor), '{}')::text FROM l), true) AS leased
