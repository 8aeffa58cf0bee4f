-- Removes a queue of an application or of none; its rows stay.
-- params: name text, app text
DELETE FROM {s}.queues q WHERE q.name = $1 AND (q.application_name = $2 OR q.application_name IS NULL)
RETURNING 1 AS gone
