-- Opens a lease at beat 1; one that is there and not ended stays as it is. No row back: it is ended.
-- params: system text, executor text, app text
INSERT INTO {m}.leases AS l (system, executor, app, beat) VALUES ($1, $2, $3, 1)
ON CONFLICT (system, executor) DO UPDATE SET beat = l.beat WHERE NOT l.ended
RETURNING 1 AS alive
