-- Who holds a deduplication key of a queue.
-- params: queue text, key text
SELECT w.workflow_uuid FROM {s}.workflow_status w WHERE w.queue_name = $1::text AND w.deduplication_id = $2::text
