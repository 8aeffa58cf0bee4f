-- Moves a lease's counter forward; an older beat that comes late changes nothing. No row back: the lease is ended or gone.
-- params: system text, executor text, beat bigint
UPDATE {m}.leases SET beat = greatest(beat, $3)
WHERE system = $1 AND executor = $2 AND NOT ended
RETURNING 1 AS alive
