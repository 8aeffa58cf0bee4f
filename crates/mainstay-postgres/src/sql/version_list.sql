-- The versions of an application and of none, latest first.
-- params: app text
SELECT v.version_name, v.version_timestamp, v.application_name FROM {s}.application_versions v
WHERE v.application_name = $1 OR v.application_name IS NULL
ORDER BY v.version_timestamp DESC, v.version_name COLLATE "C" DESC
