-- Counts the starts of a queue with a rate window where they happen, so that a start counts whatever becomes of its
-- row, and drops what has left the longest window. On a queue without a window neither statement touches a row.
-- name: part_starts
, started AS (
    INSERT INTO mainstay.starts (system, queue, key, at, token, n)
    SELECT $2, $5, coalesce(r.queue_partition_key, ''), m.now, $9, count(*)::int
    FROM ran r, m WHERE m.window_sec > 0 GROUP BY coalesce(r.queue_partition_key, ''), m.now
),
pruned AS (
    DELETE FROM mainstay.starts s
    WHERE s.system = $2 AND s.queue = $5
        AND s.at <= (SELECT CASE WHEN window_sec > 0 THEN now - ceil(window_sec * 1000)::bigint END FROM m)
)
