-- Forgets what claims have noted for their repeats: a repeat comes within seconds. Only where no column holds the token.
-- params: now bigint, system text, kept_ms bigint
DELETE FROM {m}.claims c
WHERE c.system = $2::text
    AND c.at <= coalesce($1::bigint, floor(extract(epoch FROM now()) * 1000)::bigint) - $3::bigint
