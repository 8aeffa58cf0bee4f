-- Head of a claim that holds no queue lock: clock, lease, queue row, version. Every claim calls its parameters so:
--   $1 now (NULL: the server's)  $2 system  $3 claim_bytes  $4 row_bytes  $5 queue  $6 executor  $7 app  $8 version
--   $9 token  $10 revision (NULL: the internal queue, which has no row)  $11 room  $12 names  $13 classes  $14 configs
--   ('' where a function has none)  $15 caps  $16 park_error
-- The lease row is held against a take-over until the commit; a beat does not wait for it. SKIP LOCKED, because a claim
-- never waits: a lease that exists in the snapshot and could not be locked is being taken over.
-- name: part_gate
WITH RECURSIVE t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
lease AS MATERIALIZED (
    SELECT 1 FROM mainstay.leases WHERE system = $2::text AND executor = $6::text AND NOT ended
    FOR KEY SHARE SKIP LOCKED
),
entry AS MATERIALIZED (
    SELECT CASE
        WHEN EXISTS (SELECT 1 FROM lease) THEN 'open'
        WHEN EXISTS (SELECT 1 FROM mainstay.leases WHERE system = $2 AND executor = $6 AND NOT ended) THEN 'contended'
        ELSE 'unleased'
    END AS state
)
