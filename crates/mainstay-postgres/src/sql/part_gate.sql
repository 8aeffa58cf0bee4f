-- Head of a claim that holds no lock of the queue: clock and lease. The parameters of every claim begin so:
--   $1 now  $2 system  $3 claim_bytes  $4 row_bytes  $5 queue  $6 executor  $7 app  $8 version  $9 token
--   $10 planned (the revision of the queue's row that the claim is planned with; NULL for the internal queue)  $11 room
--   $12 names  $13 classes  $14 configs ('' for none)  $15 caps  $16 park_error (see part_flip)
-- The lease row is held against a take-over until the commit; a beat does not wait for it. SKIP LOCKED, because a claim
-- never waits: a lease that stands in the snapshot and could not be locked is being taken over.
WITH RECURSIVE t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
),
lease AS MATERIALIZED (
    SELECT 1 FROM {m}.leases WHERE system = $2::text AND executor = $6::text AND NOT ended
    FOR KEY SHARE SKIP LOCKED
),
entry AS MATERIALIZED (
    SELECT CASE
        WHEN EXISTS (SELECT 1 FROM lease) THEN 'open'
        WHEN EXISTS (SELECT 1 FROM {m}.leases WHERE system = $2 AND executor = $6 AND NOT ended) THEN 'contended'
        ELSE 'unleased'
    END AS state
)
