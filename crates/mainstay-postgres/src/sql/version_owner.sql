-- Who has a version's name; an application's own row first.
-- params: name text, app text
SELECT v.application_name FROM {s}.application_versions v WHERE v.version_name = $1
ORDER BY v.application_name IS NOT DISTINCT FROM $2 DESC, v.application_name IS NULL DESC LIMIT 1
