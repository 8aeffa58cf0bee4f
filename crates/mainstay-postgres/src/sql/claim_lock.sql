-- Lease and lock of a queue with a fleet limit. What follows counts in a later statement: a count in the lock's own one is
-- read from a snapshot taken before the lock was. The class 1835363956 keeps our locks apart from those of others.
-- params: system text, queue text, executor text
WITH lease AS MATERIALIZED (
    SELECT 1 FROM {m}.leases WHERE system = $1::text AND executor = $3::text AND NOT ended
    FOR KEY SHARE SKIP LOCKED
),
entry AS MATERIALIZED (
    SELECT CASE
        WHEN EXISTS (SELECT 1 FROM lease) THEN
            CASE WHEN pg_try_advisory_xact_lock(1835363956, hashtext($1 || chr(31) || $2::text)) THEN 'open'
                ELSE 'contended' END
        WHEN EXISTS (SELECT 1 FROM {m}.leases WHERE system = $1 AND executor = $3 AND NOT ended) THEN 'contended'
        ELSE 'unleased'
    END AS state
)
SELECT set_config('mainstay.claim', entry.state, true) AS state FROM entry
