-- What workflows are that the transaction holds, of those that are there. One that came after the lock is held from here
-- on, unless another holds it: see commit_lock.
-- params: ids text[]
SELECT w.workflow_uuid AS id, w.status, w.name, nullif(w.class_name, '')::text AS class,
    nullif(w.config_name, '')::text AS config, w.forked_from
FROM {s}.workflow_status w WHERE w.workflow_uuid = ANY ($1)
ORDER BY w.workflow_uuid COLLATE "C"
FOR NO KEY UPDATE OF w SKIP LOCKED
