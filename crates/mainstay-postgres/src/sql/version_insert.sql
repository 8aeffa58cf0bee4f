-- Registers a version as the latest, if it is new. Its stamp is later than every other, so that two registrations of one
-- millisecond have an order too. No arbiter is named: the constraint on the bare name is not promised to stay.
-- params: now bigint, name text, app text
-- use: part_now
INSERT INTO {s}.application_versions (version_id, version_name, version_timestamp, created_at, application_name)
SELECT gen_random_uuid()::text, $2,
    greatest(t.now, (SELECT max(least(v.version_timestamp, 9223372036854775806)) + 1 FROM {s}.application_versions v)),
    t.now, $3
FROM t WHERE NOT EXISTS (SELECT 1 FROM {s}.application_versions v WHERE v.version_name = $2)
ON CONFLICT DO NOTHING
RETURNING 1 AS made
