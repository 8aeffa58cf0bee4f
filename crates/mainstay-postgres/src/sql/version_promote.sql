-- Makes a version the latest, unless it is already, or another application's. No row back: there is none of the name.
-- params: now bigint, name text, app text
-- use: part_now
, v AS MATERIALIZED (
    SELECT x.version_id, x.application_name FROM {s}.application_versions x WHERE x.version_name = $2
    ORDER BY x.application_name IS NOT DISTINCT FROM $3 DESC, x.application_name IS NULL DESC LIMIT 1
    FOR UPDATE
),
moved AS (
    UPDATE {s}.application_versions x SET version_timestamp =
        greatest(t.now, (SELECT max(least(o.version_timestamp, 9223372036854775806)) + 1 FROM {s}.application_versions o))
    FROM t, v
    WHERE x.version_id = v.version_id AND (v.application_name = $3 OR v.application_name IS NULL)
        AND $2 <> (SELECT o.version_name FROM {s}.application_versions o
            WHERE o.application_name = $3 OR o.application_name IS NULL
            ORDER BY o.version_timestamp DESC, o.version_name COLLATE "C" DESC LIMIT 1)
    RETURNING 1
)
SELECT v.application_name, EXISTS (SELECT 1 FROM moved) AS moved FROM v
