-- The rotation of partition_keys inside a claim without a queue lock, with the caps that process limits leave:
--   $17 cursor  $18 keys_limit  $19 skip  $20 busy  $21 busy_running  $22 key_limit
-- name: part_keys_walk
, above (key) AS (
    (SELECT w.queue_partition_key FROM dbos.workflow_status w
        WHERE w.queue_name = $5::text AND w.status = 'ENQUEUED' AND w.queue_partition_key > $17::text
        ORDER BY w.queue_partition_key LIMIT 1)
    UNION ALL
    SELECT (SELECT w.queue_partition_key FROM dbos.workflow_status w
        WHERE w.queue_name = $5 AND w.status = 'ENQUEUED' AND w.queue_partition_key > a.key
        ORDER BY w.queue_partition_key LIMIT 1)
    FROM above a WHERE a.key IS NOT NULL
),
first AS MATERIALIZED (
    SELECT a.key FROM above a WHERE a.key IS NOT NULL AND NOT (a.key = ANY ($19::text[]))
    LIMIT (SELECT CASE WHEN entry.state = 'open' THEN $18::int ELSE 0 END FROM entry)
),
below (key) AS (
    (SELECT w.queue_partition_key FROM dbos.workflow_status w
        WHERE w.queue_name = $5 AND w.status = 'ENQUEUED' AND w.queue_partition_key > '' AND w.queue_partition_key <= $17
        ORDER BY w.queue_partition_key LIMIT 1)
    UNION ALL
    SELECT (SELECT w.queue_partition_key FROM dbos.workflow_status w
        WHERE w.queue_name = $5 AND w.status = 'ENQUEUED' AND w.queue_partition_key > b.key
            AND w.queue_partition_key <= $17
        ORDER BY w.queue_partition_key LIMIT 1)
    FROM below b WHERE b.key IS NOT NULL
),
second AS MATERIALIZED (
    SELECT b.key FROM below b WHERE b.key IS NOT NULL AND NOT (b.key = ANY ($19))
    LIMIT (SELECT CASE WHEN entry.state = 'open' THEN $18 ELSE 0 END - (SELECT count(*) FROM first) FROM entry)
),
k AS MATERIALIZED (
    SELECT x.key, row_number() OVER (ORDER BY x.lap, x.key) AS ord,
        coalesce($22::int - coalesce((SELECT b.running FROM unnest($20::text[], $21::int[]) AS b (key, running)
            WHERE b.key = x.key), 0), $11::int) AS cap
    FROM (SELECT 1 AS lap, key FROM first UNION ALL SELECT 2, key FROM second) x
)
