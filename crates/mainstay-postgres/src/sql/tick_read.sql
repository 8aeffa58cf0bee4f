-- Leases, the queue set when its stamp is not the one seen, the recorded number, when the next row is due. The stamp is a
-- sum of hashes over the queues of all, so that it moves with every change, addition and removal, whoever made it.
-- params: now bigint, system text, app text, seen bigint
-- use: part_now
, q AS MATERIALIZED (
    SELECT q.*, q.xmin::text::bigint AS revision FROM {s}.queues q
    WHERE q.application_name = $3 OR q.application_name IS NULL
),
stamp AS MATERIALIZED (
    SELECT mod(coalesce(sum(hashtextextended(concat_ws(' ', a.queue_id, a.xmin), 0)), 0),
        4611686018427387904)::bigint AS stamp
    FROM {s}.queues a
)
SELECT t.now, stamp.stamp,
    CASE WHEN stamp.stamp IS DISTINCT FROM $4 THEN
        (SELECT coalesce(json_agg(to_jsonb(q) ORDER BY q.name COLLATE "C"), '[]') FROM q)::text END AS queues,
    (SELECT max(version) FROM {s}.dbos_migrations) AS catalog,
    (SELECT coalesce(json_agg(json_build_array(l.executor, l.beat, l.ended) ORDER BY l.executor COLLATE "C"), '[]')
        FROM {m}.leases l WHERE l.system = $2 AND l.app = $3)::text AS leases,
    least(
        (SELECT w.delay_until_epoch_ms FROM {s}.workflow_status w
            WHERE w.status = 'DELAYED' AND (w.application_name = $3 OR w.application_name IS NULL)
                AND w.delay_until_epoch_ms IS NOT NULL
            ORDER BY w.delay_until_epoch_ms LIMIT 1),
-- if owner
        (SELECT w.workflow_deadline_epoch_ms FROM {s}.workflow_status w
            WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms IS NOT NULL
                AND (w.application_name = $3 OR w.application_name IS NULL)
            ORDER BY w.workflow_deadline_epoch_ms LIMIT 1)
-- else
        (SELECT min(w.workflow_deadline_epoch_ms) FROM {s}.workflow_status w
            WHERE w.status = 'PENDING' AND (w.application_name = $3 OR w.application_name IS NULL)),
        (SELECT min(w.workflow_deadline_epoch_ms) FROM {s}.workflow_status w
            WHERE w.status = 'ENQUEUED' AND (w.application_name = $3 OR w.application_name IS NULL)),
        (SELECT min(w.workflow_deadline_epoch_ms) FROM {s}.workflow_status w
            WHERE w.status = 'DELAYED' AND (w.application_name = $3 OR w.application_name IS NULL))
-- end
    ) AS next_due
FROM t, stamp
