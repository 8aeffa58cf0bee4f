-- One registration or promotion of a version at a time: the latest of two at once has the later stamp.
-- params: system text
SELECT pg_advisory_xact_lock(hashtextextended('mainstay.versions.' || $1, 0)) IS NULL AS turn
