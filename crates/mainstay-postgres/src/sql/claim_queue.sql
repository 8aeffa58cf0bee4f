-- What a claim is planned with: the lease, and the queue's row.
-- params: now bigint, system text, executor text, queue text
SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now,
    EXISTS (SELECT 1 FROM {m}.leases WHERE system = $2::text AND executor = $3::text AND NOT ended) AS leased,
    (SELECT to_jsonb(r)::text FROM (SELECT q.*, q.xmin::text::bigint AS revision FROM {s}.queues q
        WHERE q.name = $4::text) r) AS queue
