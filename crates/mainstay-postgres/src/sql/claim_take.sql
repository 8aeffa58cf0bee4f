-- Takes what Admission allows, still under the lock of the queue; `room` is its total. The plan is judged once more. Starts
-- are stamped as they happen, not as their transaction began: a window by stamps that lie before would let more start.
-- params: now bigint, system text, claim_bytes bigint, row_bytes bigint, queue text, executor text, app text, version text, token text, planned bigint, room int, names text[], classes text[], configs text[], caps int[], park_error text, hole_priority int, hole_to bigint, hole_latest bool
WITH RECURSIVE t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint) AS now
),
entry AS MATERIALIZED (SELECT current_setting('mainstay.claim') AS state)
-- use: part_queue
-- use: part_pick
-- use: part_flip
-- use: part_starts
-- use: part_rows
