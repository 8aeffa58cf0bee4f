-- The leases of an application, by executor; at least one row, for the clock.
-- params: now bigint, system text, app text
-- use: part_now
SELECT t.now, l.executor, l.app, l.beat, l.ended
FROM t LEFT JOIN {m}.leases l ON l.system = $2 AND l.app = $3
ORDER BY l.executor COLLATE "C"
