-- Queues with a limit of the fleet that rows of `u` have left: `u.pending` where one was running, `u.queue` where it was.
ARRAY(SELECT q.name FROM {s}.queues q WHERE q.concurrency IS NOT NULL AND q.name = ANY (ARRAY(
    SELECT DISTINCT u.queue FROM u WHERE u.pending AND u.queue IS NOT NULL))) AS rooms
