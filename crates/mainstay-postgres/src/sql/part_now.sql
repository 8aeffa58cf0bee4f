-- The clock, first in a statement: `$1` is a moment that a test gives, or nothing for the server's own clock.
WITH t AS MATERIALIZED (
    SELECT coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) AS now
)
