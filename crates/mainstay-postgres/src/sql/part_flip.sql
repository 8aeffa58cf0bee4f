-- Flips picked rows to this executor, and parks those that have had their attempts. By id array and not by a join with
-- `picked`: a LIMIT that is no constant is guessed as a tenth of the table, which makes a merge of whole keys look
-- cheap. In `park_error` 4294967295 stands for the number of attempts.
, ran AS (
    UPDATE {s}.workflow_status w SET
        status = 'PENDING', executor_id = $6, application_version = $8,
-- if owner
        owner_xid = $9::text,
-- end
        application_name = coalesce(w.application_name, $7), recovery_attempts = coalesce(w.recovery_attempts, 0) + 1,
        started_at_epoch_ms = greatest(m.now, least(w.updated_at, 9223372036854775806) + 1),
        updated_at = greatest(m.now, least(w.updated_at, 9223372036854775806) + 1),
        rate_limited = m.rated,
        workflow_deadline_epoch_ms = coalesce(w.workflow_deadline_epoch_ms,
            CASE WHEN w.workflow_timeout_ms > 9223372036854775807 - m.now THEN 9223372036854775807
                ELSE m.now + w.workflow_timeout_ms END)
    FROM m
    WHERE w.workflow_uuid = ANY (ARRAY(SELECT workflow_uuid FROM picked WHERE NOT over))
    RETURNING w.*, {fence w} AS fence
),
spent AS MATERIALIZED (
    SELECT p.workflow_uuid, replace($16::text, '4294967295', p.attempts::text) AS reason, 0 AS unbegun
    FROM picked p WHERE p.over
)
-- use: part_park
-- if !owner
, noted AS (
    INSERT INTO {m}.claims (system, token, at, fences)
    SELECT $2, $9::text, m.now, jsonb_agg(jsonb_build_array(r.workflow_uuid, r.fence)) FROM ran r, m GROUP BY m.now
    ON CONFLICT (system, token) DO UPDATE SET at = excluded.at, fences = claims.fences || excluded.fences
)
-- end
