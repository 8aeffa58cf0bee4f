-- Counts the starts of a queue with a rate where they happen, so that a start counts whatever becomes of its row, and
-- drops some that no window reaches any more: they are kept for an hour at least, for a window that is made longer.
, started AS (
    INSERT INTO {m}.starts (system, queue, key, at, token, n)
    SELECT $2, $5, coalesce(r.queue_partition_key, ''), m.now, $9, count(*)::int
    FROM ran r, m WHERE m.rated GROUP BY coalesce(r.queue_partition_key, ''), m.now
    ON CONFLICT (system, queue, key, at, token) DO UPDATE SET n = starts.n + excluded.n
),
pruned AS (
    DELETE FROM {m}.starts s WHERE s.ctid = ANY (ARRAY(
        SELECT x.ctid FROM {m}.starts x
        WHERE x.system = $2 AND x.queue = $5 AND x.at <= (SELECT m.now - m.kept_ms FROM m)
        ORDER BY x.at LIMIT (SELECT 4 * count(*) FROM ran)))
)
